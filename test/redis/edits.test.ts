/** Edits and parts of one message, against a real Redis: an edit changes what waits, joins what runs; parts are their sender's. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { InboundMessage } from "../../src/bus/messages.js";
import { inboundKeyOf, routeKeyOf, turnIdOf } from "../../src/bus/messages.js";
import { type BusFixture, createBusFixture, PLAIN } from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";
import { keyOf, messageIn, open, settle } from "../support/session-steps.js";

let redis: TestRedis;
let f: BusFixture;

beforeAll(async () => {
  redis = await TestRedis.start();
  f = await createBusFixture(redis.address);
});
afterAll(async () => {
  await f.close();
  await redis.stop();
});

function editOf(message: InboundMessage, content: string, ifAnswered: "ignore" | "answer" = "ignore"): InboundMessage {
  return {
    ...message,
    kind: "edit",
    id: `${message.id}:${content}`,
    content,
    edits: { id: message.id, ifAnswered },
  };
}

describe("an edit", () => {
  it("replaces a message that waits: same place, same turn, once", async () => {
    const [first, second] = [messageIn("e1", "half a"), messageIn("e1", "behind")];
    await f.bus.publishInbound(first, PLAIN);
    await f.bus.publishInbound(second, PLAIN);
    const edit = editOf(first, "half a sentence");
    const taken = await f.bus.publishInbound(edit, PLAIN);
    expect(taken).toMatchObject({ status: "stored", turnId: turnIdOf(inboundKeyOf(first)) });
    expect((await f.bus.publishInbound(edit, PLAIN)).status).toBe("duplicate");
    const claim = await open(f, "e1");
    expect(claim.next?.message.key).toBe(inboundKeyOf(first));
    expect(claim.next?.message.message).toEqual({ ...first, content: "half a sentence" });
    const next = await settle(f, "e1", claim);
    expect(next).toMatchObject({ kind: "next", message: { message: { content: "behind" } } });
  });

  it("of a message whose turn runs is taken in by that turn", async () => {
    const first = messageIn("e2", "old");
    await f.bus.publishInbound(first, PLAIN);
    const claim = await open(f, "e2");
    await f.bus.publishInbound(editOf(first, "new"), PLAIN);
    const { taken } = await f.bus.check({
      key: keyOf("e2"),
      fence: claim.fence,
      inboundKeys: [inboundKeyOf(first)],
      route: routeKeyOf(first.route),
      take: 3,
    });
    expect(taken.map(({ message }) => [message.kind, message.content])).toEqual([["edit", "new"]]);
  });

  it("of a message that is answered does nothing, or starts a turn where that is wanted", async () => {
    const first = messageIn("e3", "old");
    await f.bus.publishInbound(first, PLAIN);
    await settle(f, "e3", await open(f, "e3"));
    expect((await f.bus.publishInbound(editOf(first, "late"), PLAIN)).status).toBe("ignored");
    expect(await f.bus.peek(keyOf("e3"))).toBeNull();
    expect((await f.bus.publishInbound(editOf(first, "again", "answer"), PLAIN)).status).toBe("stored");
    expect((await open(f, "e3")).next?.message.message.content).toBe("again");
  });

  it("of somebody else's message changes nothing of it", async () => {
    const first = messageIn("e4", "mine", { senderId: "alice" });
    await f.bus.publishInbound(first, PLAIN);
    const foreign = editOf({ ...first, senderId: "mallory" }, "yours");
    expect((await f.bus.publishInbound(foreign, PLAIN)).status).toBe("ignored");
    expect((await open(f, "e4")).next?.message.message.content).toBe("mine");
  });
});

describe("parts of one message", () => {
  const gathered = { ...PLAIN, debounceMs: 60_000 };

  it("are handed over together, although somebody else spoke in between; that one is next", async () => {
    const said = [
      messageIn("g1", "photo 1", { senderId: "alice" }),
      messageIn("g1", "photo of bob", { senderId: "bob" }),
      messageIn("g1", "photo 2", { senderId: "alice" }),
    ];
    for (const message of said) await f.bus.publishInbound(message, gathered);
    const claim = await open(f, "g1");
    const brief = [claim.next?.message, ...(claim.next?.fragments ?? [])].map((each) => each?.message.content);
    expect(brief).toEqual(["photo 1", "photo 2"]);
    const ids = [said[0], said[2]].flatMap((each) => (each === undefined ? [] : [inboundKeyOf(each)]));
    const result = { outcome: "completed" as const, text: "", turnId: "t", usage: null };
    const next = await f.bus.settle({
      key: keyOf("g1"),
      fence: claim.fence,
      settled: ids.map((inboundKey) => ({ inboundKey, result })),
      outgoing: [],
      file: null,
      afterwards: "next",
      honoursStop: false,
    });
    expect(next).toMatchObject({ kind: "next", message: { message: { content: "photo of bob" } }, fragments: [] });
  });
});

/** Deliveries: lanes, parts, receipts, retries, dead letters; through the whole manager. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MAX_ATTEMPTS } from "../../src/channels/caller.js";
import { DeliveryError, type DeliveryFailure } from "../../src/channels/channel.js";
import { NanogateError } from "../../src/errors.js";
import { Delivering } from "./delivery-harness.js";

let world: Delivering;
beforeEach(() => {
  world = new Delivering();
});
afterEach(() => world.close());

const fails = (failure: DeliveryFailure) => new DeliveryError(failure, `the platform says ${failure.kind}`);
const transient = (retryAfterMs: number | null = null) => fails({ kind: "transient", retryAfterMs });

/** Fails the sends of one text as scripted; the rest succeeds. */
function script(text: string, ...failures: Array<Error | null>): void {
  world.channel.onSend = async (part) => {
    if (part.content !== text) return;
    const failure = failures.shift();
    if (failure) throw failure;
  };
}

it("delivers each chat in order, and consumes what is delivered", async () => {
  for (const text of ["a", "b"]) world.put("c1", text);
  await world.manager().start();
  world.put("c1", "c");
  await world.settle();
  expect(world.channel.got).toEqual(["c1:a", "c1:b", "c1:c"]);
  expect([world.outbox.entries, world.outbox.deadLetters]).toEqual([[], []]);
  expect(world.receipts("a")).toEqual(["0:p1"]);
});

describe("a part that fails for now", () => {
  it("parks only its own chat, exactly as long as the platform asks", async () => {
    script("a", transient(7_000));
    for (const [chat, text] of [
      ["c1", "a"],
      ["c1", "after a"],
      ["c2", "other"],
    ] as const)
      world.put(chat, text);
    await world.manager().start();
    await world.settle();
    expect(world.channel.got).toEqual(["c2:other"]);
    await world.clock.advance(6_999);
    expect(world.channel.got).toEqual(["c2:other"]);
    await world.clock.advance(1);
    expect(world.channel.got).toEqual(["c2:other", "c1:a", "c1:after a"]);
  });

  it("is tried again after 1, 2, 4 … s, and given up after half an hour", async () => {
    const tries: number[] = [];
    world.channel.onSend = async (part) => {
      if (part.content !== "a") return;
      tries.push(world.clock.nowMs());
      throw transient();
    };
    for (const text of ["a", "b"]) world.put("c1", text);
    await world.manager().start();
    await world.clock.advance(1_900_000);
    expect(tries.slice(0, 8)).toEqual([0, 1, 3, 7, 15, 31, 63, 123].map((s) => s * 1_000));
    expect(tries).toHaveLength(MAX_ATTEMPTS);
    expect(tries.at(-1)).toBeGreaterThan(1_700_000);
    expect(world.channel.got).toEqual(["c1:b"]);
    expect(world.outbox.deadLetters).toEqual([
      {
        id: "a",
        channel: "recording",
        chatId: "c1",
        text: "a",
        error: "the platform says transient",
        attempts: MAX_ATTEMPTS,
      },
    ]);
  });

  it("does not send the parts before it again", async () => {
    script("two", transient(1_000));
    world.put("c1", "one|two|three");
    await world.manager().start();
    await world.clock.advance(1_000);
    expect(world.channel.got).toEqual(["c1:one", "c1:two", "c1:three"]);
    expect(world.receipts("one|two|three")).toEqual(["0:p1", "1:p2", "2:p3"]);
  });
});

it("keeps what was refused for good as a dead letter, without the parts behind it", async () => {
  script("two", fails({ kind: "permanent" }));
  for (const text of ["one|two|three", "next"]) world.put("c1", text);
  await world.manager().start();
  await world.settle();
  expect(world.channel.got).toEqual(["c1:one", "c1:next"]);
  expect(world.outbox.deadLetters).toMatchObject([{ id: "one|two|three", text: "one|two|three", attempts: 1 }]);
  expect(world.outbox.entries).toEqual([]);
});

it.each([
  ["said by the channel", () => fails({ kind: "unknown" })],
  ["an error that says nothing", () => new TypeError("socket hang up")],
])("does not repeat an unclear part, sends the rest, and shows it (%s)", async (_what, failure) => {
  script("two", failure());
  world.put("c1", "one|two|three");
  await world.manager().start();
  await world.clock.advance(120_000);
  expect(world.channel.got).toEqual(["c1:one", "c1:three"]);
  expect(world.receipts("one|two|three")).toEqual(["0:p1", "1:?", "2:p2"]);
  expect(world.outbox.deadLetters).toMatchObject([{ error: expect.stringContaining("part 2 of 3: outcome unknown") }]);
});

it("takes a send that never returns for unclear", async () => {
  world.channel.onSend = (part) => (part.content === "a" ? new Promise(() => {}) : Promise.resolve());
  for (const text of ["a", "b"]) world.put("c1", text);
  await world.manager().start();
  await world.clock.advance(62_000);
  expect(world.channel.got).toEqual(["c1:b"]);
  expect(world.receipts("a")).toEqual(["0:?"]);
});

describe("receipts", () => {
  it("keep a new owner from sending a part again", async () => {
    world.outbox.receipts.set("one|two", new Map([["0", { state: "sent", platformId: "p0" }]]));
    world.put("c1", "one|two");
    await world.manager().start();
    await world.settle();
    expect(world.channel.got).toEqual(["c1:two"]);
  });

  it("are stored until they are, without another send, and the place between is named", async () => {
    const down = new NanogateError("BUS_UNAVAILABLE", "away");
    world.channel.onSend = async () => {
      world.outbox.failure = down;
    };
    world.put("c1", "a");
    await world.manager().start();
    await world.clock.advance(1_000);
    expect([world.channel.got, world.faults]).toEqual([["c1:a"], ["deliver.sent after c1:a"]]);
    expect(world.receipts("a")).toEqual(["0:begun"]);
    world.outbox.failure = null;
    await world.clock.advance(3_000);
    expect([world.channel.got, world.receipts("a"), world.outbox.entries]).toEqual([["c1:a"], ["0:p1"], []]);
  });

  describe("of a process that ended while it sent", () => {
    /** Its first part was sent, and nothing of that was noted but that it was begun. */
    const begun = (atMs: number) => {
      world.put("c1", "a|b");
      world.outbox.receipts.set("a|b", new Map([["0", { state: "begun", atMs }]]));
    };

    it("leave that part unknown, for a person to decide, and the rest is sent", async () => {
      begun(0);
      await world.manager().start();
      await world.clock.advance(2_000);
      expect([world.channel.got, world.receipts("a|b"), world.outbox.entries]).toEqual([["c1:b"], ["0:?", "1:p1"], []]);
      expect(world.outbox.deadLetters[0]?.error).toContain("part 1 of 2: outcome unknown");
    });

    it("are sent again as long as the platform knows a repeated message, and not later", async () => {
      world.channel.repeatableMs = 60_000;
      begun(world.clock.nowMs() - 59_000);
      await world.manager().start();
      await world.settle();
      expect(world.channel.got).toEqual(["c1:a", "c1:b"]);
    });

    it("are not sent again when the platform has forgotten", async () => {
      world.channel.repeatableMs = 60_000;
      begun(world.clock.nowMs() - 61_000);
      await world.manager().start();
      await world.settle();
      expect(world.channel.got).toEqual(["c1:b"]);
    });
  });

  it("say nothing of a send that surely failed: whoever comes next tries it", async () => {
    world.channel.onSend = async () => {
      throw new DeliveryError({ kind: "transient", retryAfterMs: 30_000 }, "too many");
    };
    world.put("c1", "a");
    await world.manager().start();
    await world.clock.advance(1_000);
    expect(world.receipts("a")).toEqual([]);
  });

  it("that could not be stored before the account was lost still count when it comes back", async () => {
    world.channel.onSend = async () => {
      world.outbox.failure = new NanogateError("BUS_UNAVAILABLE", "away");
    };
    world.put("c1", "a");
    await world.manager().start();
    await world.clock.advance(40_000);
    world.outbox.failure = null;
    await world.clock.advance(20_000);
    expect([world.channel.got, world.receipts("a"), world.outbox.entries]).toEqual([["c1:a"], ["0:p1"], []]);
  });
});

it("a message that was given up leaves no mark on the part that was refused: sent again by a person, it arrives", async () => {
  script("two", fails({ kind: "permanent" }));
  world.put("c1", "one|two");
  await world.manager().start();
  await world.settle();
  expect(world.receipts("one|two")).toEqual(["0:p1"]);
  world.put("c1", "one|two");
  await world.settle();
  expect([world.channel.got, world.receipts("one|two")]).toEqual([
    ["c1:one", "c1:two"],
    ["0:p1", "1:p2"],
  ]);
});

it("what was not sent because the account may be another's leaves no mark either", async () => {
  await world.manager().start();
  const { receipts } = world.outbox;
  const set = receipts.set.bind(receipts);
  receipts.set = (id, parts) => {
    receipts.set = set;
    // The process stalls between the note and the send.
    world.clock.stall(13_000);
    return set(id, parts);
  };
  world.put("c1", "late");
  await world.settle();
  expect([world.channel.got, world.receipts("late")]).toEqual([[], []]);
  await world.clock.advance(30_000);
  expect([world.channel.got, world.outbox.deadLetters]).toEqual([["c1:late"], []]);
});

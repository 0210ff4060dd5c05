/** Refusals that change a message, waits that the platform states, and limits known in advance; through the whole manager. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DeliveryError, type DeliveryFailure } from "../../src/channels/channel.js";
import { NanogateError } from "../../src/errors.js";
import { Delivering } from "./delivery-harness.js";

let world: Delivering;
beforeEach(() => {
  world = new Delivering();
});
afterEach(() => world.close());

const fails = (failure: DeliveryFailure) => new DeliveryError(failure, `the platform says ${failure.kind}`);
const change = (...texts: string[]) => fails({ kind: "change", into: texts.map((content) => ({ content })) });

/** How each text fails, every time it is sent. */
function refuse(refusals: Record<string, () => Error>): string[] {
  const tried: string[] = [];
  world.channel.onSend = async ({ content }) => {
    tried.push(content);
    const error = refusals[content]?.();
    if (error) throw error;
  };
  return tried;
}

describe("a part that must be changed", () => {
  it("is replaced by what says the same, each with a receipt and a key of its own", async () => {
    const tried = refuse({ "*b*": () => change("b", "b2") });
    world.put("c1", "a|*b*|c");
    await world.manager().start();
    await world.settle();
    expect(tried).toEqual(["a", "*b*", "b", "b2", "c"]);
    expect(world.receipts("a|*b*|c")).toEqual(["0:p1", "1:changed", "1.0:p2", "1.1:p3", "2:p4"]);
    expect(world.channel.keys).toEqual(["0", "1", "1.0", "1.1", "2"].map((name) => `a|*b*|c.${name}`));
    expect([world.outbox.entries, world.outbox.deadLetters]).toEqual([[], []]);
  });

  it("is not asked about again by a new owner: what was sent of it stays, the rest follows", async () => {
    const tried = refuse({});
    world.outbox.receipts.set(
      "*a*",
      new Map([
        ["0", { state: "changed", into: [{ content: "one" }, { content: "two" }] }],
        ["0.0", { state: "sent", platformId: "p0" }],
      ]),
    );
    world.put("c1", "*a*");
    await world.manager().start();
    await world.settle();
    expect(tried).toEqual(["two"]);
    expect(world.outbox.entries).toEqual([]);
  });

  it("is never sent again unchanged, and changed three times at most", async () => {
    const tried = refuse({
      same: () => change("same"),
      0: () => change("1"),
      1: () => change("2"),
      2: () => change("3"),
      3: () => change("4"),
    });
    for (const text of ["same", "0"]) world.put("c1", text);
    await world.manager().start();
    await world.settle();
    expect(tried).toEqual(["same", "0", "1", "2", "3"]);
    expect(world.outbox.deadLetters.map(({ id }) => id)).toEqual(["same", "0"]);
  });

  it("names what is unclear by the part that a reader sees", async () => {
    refuse({ a: () => change("a1", "a2"), a2: () => fails({ kind: "unknown" }) });
    world.put("c1", "a");
    await world.manager().start();
    await world.settle();
    expect(world.outbox.deadLetters[0]?.error).toContain("part 1.2 of 1: outcome unknown");
  });
});

describe("a wait that the platform states", () => {
  it("is no failure: it may come more often than a part may fail", async () => {
    let left = 20;
    world.channel.onSend = async () => {
      if (left-- > 0) throw fails({ kind: "transient", retryAfterMs: 5_000 });
    };
    world.put("c1", "a");
    await world.manager().start();
    await world.clock.advance(99_999);
    expect(world.channel.got).toEqual([]);
    await world.clock.advance(1);
    expect(world.channel.got).toEqual(["c1:a"]);
  });

  it("ends as a dead letter when it would last longer than an hour", async () => {
    world.channel.onSend = async () => {
      throw fails({ kind: "transient", retryAfterMs: 1_500_000 });
    };
    world.put("c1", "a");
    await world.manager().start();
    await world.clock.advance(2_999_999);
    expect(world.outbox.deadLetters).toEqual([]);
    await world.clock.advance(1);
    expect(world.outbox.deadLetters).toMatchObject([{ id: "a", attempts: 3 }]);
  });

  it("is stored for the narrowest limit, so that a new owner keeps to it", async () => {
    const limits = (chat: string) => [
      { bucket: "bot", count: 30, perMs: 1_000, cost: 1 },
      { bucket: `chat:${chat}`, count: 1, perMs: 1_000, cost: 1 },
    ];
    world.channel.limits = ({ chatId }) => limits(chatId);
    let isRefusing = true;
    world.channel.onSend = async ({ content }) => {
      if (isRefusing && content === "a") throw fails({ kind: "transient", retryAfterMs: 60_000 });
    };
    for (const [chat, text] of [
      ["c1", "a"],
      ["c2", "b"],
    ] as const)
      world.put(chat, text);
    const first = world.manager("one");
    await first.start();
    await world.clock.advance(10_000);
    await first.stop();
    isRefusing = false;
    await world.manager("two").start();
    await world.clock.advance(49_999);
    expect([world.channel.got, [...world.limiter.parked.keys()]]).toEqual([["c2:b"], ["chat:c1"]]);
    await world.clock.advance(1);
    expect(world.channel.got).toEqual(["c2:b", "c1:a"]);
  });
});

describe("limits known in advance", () => {
  it("hold back one chat only, in order, and nothing is refused", async () => {
    world.channel.limits = ({ chatId }) => [{ bucket: `chat:${chatId}`, count: 1, perMs: 1_000, cost: 1 }];
    for (const text of ["a1", "a2", "a3"]) world.put("a", text);
    world.put("b", "b1");
    await world.manager().start();
    await world.settle();
    expect(world.channel.got).toEqual(["a:a1", "b:b1"]);
    await world.clock.advance(1_999);
    expect(world.channel.got).toEqual(["a:a1", "b:b1", "a:a2"]);
    await world.clock.advance(1);
    expect(world.channel.got.at(-1)).toBe("a:a3");
  });

  it("are asked about once a message, however many wait, and nobody is overtaken for ever", async () => {
    world.channel.limits = () => [{ bucket: "bot", count: 30, perMs: 1_000, cost: 1 }];
    for (let chat = 0; chat < 300; chat += 1) world.put(`c${chat}`, `m${chat}`);
    await world.manager().start();
    await world.clock.advance(8_999);
    expect(world.channel.got).toHaveLength(270);
    await world.clock.advance(1);
    expect(world.channel.got).toEqual(Array.from({ length: 300 }, (_, chat) => `c${chat}:m${chat}`));
    // The first question of each, and of each head of the line at most two more.
    expect(world.limiter.asked).toBeLessThan(3 * 300);
  });

  it("that cannot be asked about stop everything until they can", async () => {
    world.channel.limits = () => [{ bucket: "bot", count: 30, perMs: 1_000, cost: 1 }];
    world.limiter.failure = new NanogateError("BUS_UNAVAILABLE", "away");
    world.put("c1", "a");
    await world.manager().start();
    await world.clock.advance(10_000);
    expect(world.channel.got).toEqual([]);
    world.limiter.failure = null;
    await world.clock.advance(500);
    expect(world.channel.got).toEqual(["c1:a"]);
  });

  it("do not keep a gateway that stops: what waits is the next owner's", async () => {
    world.channel.limits = () => [{ bucket: "bot", count: 1, perMs: 60_000, cost: 1 }];
    for (const text of ["a", "b"]) world.put("c1", text);
    const manager = world.manager();
    await manager.start();
    await world.settle();
    await manager.stop();
    expect([world.channel.got, world.outbox.entries.length, world.outbox.deadLetters]).toEqual([["c1:a"], 1, []]);
  });
});

it("topics of one chat do not wait for each other", async () => {
  world.channel.onSend = async (_part, { message }) => {
    if (message.threadId === "1") throw fails({ kind: "transient", retryAfterMs: null });
  };
  world.put("c1", "stuck", "1");
  world.put("c1", "free", "2");
  await world.manager().start();
  await world.settle();
  expect(world.channel.got).toEqual(["c1/2:free"]);
});

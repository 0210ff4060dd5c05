/** An answer is shown while it is made: previews at the pace of the chat, and one message that becomes the answer. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DeliveryError, type DeliveryFailure } from "../../src/channels/channel.js";
import { Delivering } from "./delivery-harness.js";
import { SpokenTurn } from "./live-harness.js";

let world: Delivering;
let turn: SpokenTurn;
beforeEach(async () => {
  world = new Delivering();
  world.channel.showing("edits", 1_000);
  turn = new SpokenTurn(world, "t1");
  await world.manager().start();
  await world.settle();
});
afterEach(() => world.close());

const calls = () => world.channel.calls;
const shows = () => [...world.channel.shows.values()];
const fails = (failure: DeliveryFailure) => new DeliveryError(failure, `the platform says ${failure.kind}`);

describe("a stream", () => {
  it("is shown at once, then once an interval with the newest text, then as its answer", async () => {
    turn.delta("s", "a");
    await world.settle();
    turn.delta("s", "b");
    turn.delta("s", "c");
    await world.clock.advance(999);
    expect(calls()).toEqual(["send p1 c1:a"]);
    await world.clock.advance(1);
    turn.delta("s", "d");
    turn.answer("abcd!", "s");
    await world.settle();
    expect(calls()).toEqual(["send p1 c1:a", "edit p1 abc", "edit p1 abcd!"]);
    await world.clock.advance(10_000);
    expect([shows(), world.outbox.entries, world.outbox.deadLetters]).toEqual([["abcd!"], [], []]);
    expect(world.outbox.receipts.get("t1")?.size).toBe(0);
  });

  it("is one change an interval for a chat, whichever topics and turns show something", async () => {
    const turns = ["1", "2", "3"].map((threadId) => new SpokenTurn(world, `x${threadId}`, { chatId: "g", threadId }));
    for (const each of turns) each.delta(`${each.turnId}.s`, "a");
    await world.settle();
    expect(calls()).toHaveLength(1);
    await world.clock.advance(1_000);
    expect(calls()).toHaveLength(2);
    await world.clock.advance(1_000);
    expect(calls()).toEqual(["send p1 g/1:a", "send p2 g/2:a", "send p3 g/3:a"]);
  });

  it("grows over several messages, and what is too much of them is taken away", async () => {
    turn.delta("s", "one|tw");
    await world.clock.advance(1_000);
    turn.delta("s", "o|three");
    await world.clock.advance(3_000);
    expect(shows()).toEqual(["one", "two", "three"]);
    const id = turn.answer("one|two", "s");
    await world.settle();
    expect([shows(), world.receipts(id)]).toEqual([
      ["one", "two"],
      ["0:p1", "1:p2"],
    ]);
  });

  it("with a hole in it waits for its answer", async () => {
    turn.delta("s", "a");
    await world.settle();
    turn.lose("s", "b");
    turn.delta("s", "c");
    await world.clock.advance(5_000);
    expect(calls()).toEqual(["send p1 c1:a"]);
    turn.answer("abc", "s");
    await world.settle();
    expect(shows()).toEqual(["abc"]);
  });

  it("does not come back after its answer, nor twice, nor from a holder that was overtaken", async () => {
    const late = turn.delta("s", "a");
    turn.answer("answer", "s");
    await world.settle();
    const sent = calls().length;
    turn.world.live.publish("bot", late);
    turn.world.live.publish("bot", { ...late, seq: 3, event: { type: "delta", streamId: "old", offset: 0 } });
    await world.clock.advance(5_000);
    expect(calls()).toHaveLength(sent);
    expect(shows()).toEqual(["answer"]);
  });

  it("of a holder that was overtaken is not shown beside that of the present one", async () => {
    const old = turn.say({ type: "delta", streamId: "old", offset: 0 }, "old");
    turn.delta("new", "new");
    await world.settle();
    world.live.publish("bot", old);
    await world.clock.advance(5_000);
    expect(shows()).toEqual(["new"]);
  });

  it("that is not the answer stands as it ended, before the answer", async () => {
    turn.delta("s1", "let me lo");
    await world.settle();
    turn.show({ type: "stream_end", streamId: "s1" }, "let me look");
    await world.clock.advance(1_000);
    turn.delta("s2", "it is");
    await world.clock.advance(1_000);
    turn.answer("it is so", "s2");
    await world.settle();
    expect(shows()).toEqual(["let me look", "it is so"]);
  });

  it("has its last change also when the answer overtakes it, and sends nothing new behind it", async () => {
    turn.delta("s1", "let me lo");
    await world.settle();
    turn.show({ type: "stream_end", streamId: "s1" }, "let me look|at more");
    turn.answer("found");
    turn.end();
    await world.clock.advance(5_000);
    expect(shows()).toEqual(["let me look", "found"]);
    expect(world.outbox.receipts.get("t1")?.size).toBe(0);
  });

  it("that is void is gone on with by the next one of its turn", async () => {
    turn.delta("s1", "wrong|way");
    await world.clock.advance(2_000);
    turn.show({ type: "stream_reset", streamId: "s1" });
    turn.delta("s2", "right");
    await world.clock.advance(2_000);
    expect(calls()).toEqual(["send p1 c1:wrong", "send p2 c1:way", "edit p1 right"]);
    turn.answer("right!", "s2");
    await world.settle();
    expect(shows()).toEqual(["right!"]);
  });

  it("that is void is taken away by an answer that was not streamed, and by an apology", async () => {
    for (const [id, say] of [
      ["x", "answer"],
      ["y", "notice"],
    ] as const) {
      const other = new SpokenTurn(world, id, { chatId: id });
      other.delta(`${id}.s`, "wrong");
      await world.settle();
      other.show({ type: "stream_reset", streamId: `${id}.s` });
      other[say]("instead");
      await world.settle();
    }
    expect(shows()).toEqual(["instead", "instead"]);
  });

  it("goes on after a word of the gateway in between", async () => {
    turn.delta("s", "a");
    await world.settle();
    turn.notice("by the way");
    await world.settle();
    turn.delta("s", "b");
    await world.clock.advance(1_000);
    turn.answer("ab", "s");
    await world.settle();
    expect(shows()).toEqual(["ab", "by the way"]);
  });

  it("whose topic waits for an answer holds up no other topic", async () => {
    const [stuck, free] = ["1", "2"].map(
      (threadId) => new SpokenTurn(world, `x${threadId}`, { chatId: "g", threadId }),
    );
    world.channel.onSend = async (_part, { message }) => {
      if (message.threadId === "1") throw fails({ kind: "transient", retryAfterMs: 60_000 });
    };
    stuck?.answer("waits");
    await world.settle();
    stuck?.delta("s1", "a");
    free?.delta("s2", "b");
    await world.clock.advance(1_000);
    expect(calls()).toEqual(["send p1 g/2:b"]);
  });

  it("is shown in its own topic", async () => {
    const topic = new SpokenTurn(world, "t2", { chatId: "c1", threadId: "7" });
    topic.delta("s", "a");
    turn.delta("r", "b");
    await world.clock.advance(1_000);
    expect(calls()).toEqual(["send p1 c1/7:a", "send p2 c1:b"]);
  });

  it("of blanks is not shown", async () => {
    turn.delta("s", " \n");
    await world.clock.advance(1_000);
    expect(calls()).toEqual([]);
  });
});

describe("when the platform says no to a preview", () => {
  it("with a wait, the whole chat rests exactly so long, and the answer too", async () => {
    turn.delta("s", "a");
    await world.settle();
    const waits = [fails({ kind: "transient", retryAfterMs: 7_000 })];
    world.channel.limits = () => [{ bucket: "chat", count: 100, perMs: 1_000, cost: 1 }];
    world.channel.onEdit = async () => {
      const error = waits.shift();
      if (error) throw error;
    };
    turn.delta("s", "b");
    await world.clock.advance(1_000);
    turn.delta("s", "c");
    turn.answer("abc", "s");
    await world.clock.advance(6_999);
    expect(calls()).toEqual(["send p1 c1:a"]);
    await world.clock.advance(1);
    expect(calls()).toEqual(["send p1 c1:a", "edit p1 abc"]);
  });

  it("for good, it is not shown any further, and the answer comes whole, in order, in one place", async () => {
    world.channel.onEdit = async () => {
      throw fails({ kind: "permanent" });
    };
    turn.delta("s", "a|b");
    await world.clock.advance(3_000);
    turn.delta("s", "c");
    await world.clock.advance(3_000);
    const id = turn.answer("a!|bc", "s");
    await world.settle();
    expect(shows()).toEqual(["a!", "bc"]);
    expect(world.receipts(id)).toEqual(["0:p3", "1:p4"]);
    expect(world.outbox.deadLetters).toEqual([]);
  });

  it("because one message of several is gone, the answer stands in order all the same", async () => {
    turn.delta("s", "a|b");
    await world.clock.advance(3_000);
    world.channel.onEdit = async (platformId) => {
      if (platformId === "p1") throw fails({ kind: "permanent" });
    };
    turn.answer("a!|b!", "s");
    await world.settle();
    expect([...world.channel.shows]).toEqual([
      ["p3", "a!"],
      ["p4", "b!"],
    ]);
  });

  it("and nobody knows whether it was sent, the answer is sent anew and the preview is not repeated", async () => {
    world.channel.onSend = async ({ content }) => {
      if (content === "a") throw fails({ kind: "unknown" });
    };
    turn.delta("s", "a");
    await world.clock.advance(1_000);
    turn.delta("s", "b");
    await world.clock.advance(5_000);
    expect(world.channel.keys).toEqual(["s.0"]);
    turn.answer("ab", "s");
    await world.settle();
    expect(shows()).toEqual(["ab"]);
  });
});

describe("the answer to a stream", () => {
  it("is an edit that is repeated while nobody knows what became of it", async () => {
    turn.delta("s", "a");
    await world.settle();
    const ends = [
      fails({ kind: "unknown" }),
      new Error("socket hang up"),
      fails({ kind: "transient", retryAfterMs: null }),
    ];
    world.channel.onEdit = async () => {
      const error = ends.shift();
      if (error) throw error;
    };
    const id = turn.answer("ab", "s");
    await world.clock.advance(7_000);
    expect([shows(), world.receipts(id), world.outbox.deadLetters]).toEqual([["ab"], ["0:p1"], []]);
  });

  it("changes the shown message also in another way", async () => {
    turn.delta("s", "a");
    await world.settle();
    world.channel.onEdit = async (_id, { part }) => {
      if (part.content === "*a*") throw fails({ kind: "change", into: [{ content: "a1" }, { content: "a2" }] });
    };
    const id = turn.answer("*a*|b", "s");
    await world.settle();
    expect(shows()).toEqual(["a1", "a2", "b"]);
    expect(world.receipts(id)).toEqual(["0:changed", "0.0:p1", "0.1:p2", "1:p3"]);
  });

  it("does not wait for a preview that waits for room, and is not starved by previews", async () => {
    world.channel.limits = () => [{ bucket: "bot", count: 10, perMs: 60_000, cost: 1 }];
    const turns = Array.from({ length: 20 }, (_, at) => new SpokenTurn(world, `x${at}`, { chatId: `x${at}` }));
    for (const each of turns) each.delta(`${each.turnId}.s`, "a");
    await world.clock.advance(5_000);
    expect(calls()).toHaveLength(8);
    turn.answer("answer");
    await world.settle();
    expect(calls().at(-1)).toBe("send p9 c1:answer");
  });

  it("waits for a preview that is on its way, so that it has the last word", async () => {
    turn.delta("s", "a");
    await world.settle();
    let arrive = () => {};
    world.channel.onEdit = (_id, { part }) =>
      part.content === "ab"
        ? new Promise((resolve) => {
            arrive = resolve;
          })
        : Promise.resolve();
    turn.delta("s", "b");
    await world.clock.advance(1_000);
    turn.answer("abc", "s");
    await world.settle();
    expect(calls()).toEqual(["send p1 c1:a"]);
    arrive();
    await world.settle();
    expect(calls()).toEqual(["send p1 c1:a", "edit p1 ab", "edit p1 abc"]);
  });
});

/** Streams over a change of owner: what a process has shown, the next one finds; drafts; chats that show whole answers only. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { NanogateError } from "../../src/errors.js";
import { RecordingChannel } from "../fakes/recording-channel.js";
import { Delivering, SETTINGS } from "./delivery-harness.js";
import { SpokenTurn } from "./live-harness.js";

let world: Delivering;
let turn: SpokenTurn;
beforeEach(() => {
  world = new Delivering();
  world.channel.showing("edits", 1_000);
  turn = new SpokenTurn(world, "t1");
});
afterEach(() => world.close());

const shows = () => [...world.channel.shows.values()];

/** The owner is gone without a word; another process takes over on the same platform. */
async function takeOver(): Promise<void> {
  await world.manager("one").start();
  await world.settle();
  turn.delta("s1", "half of ");
  await world.settle();
  world.outbox.owners.set("bot", { process: "two", untilMs: 0, fence: 1e6 });
  await world.clock.advance(14_000);
}

it("a new owner changes what its predecessor has shown into the answer", async () => {
  await takeOver();
  turn.answer("half of it", "s1");
  await world.clock.advance(10_000);
  expect(shows()).toEqual(["half of it"]);
});

it("a new owner goes on with a stream only when it is whole, in the same message", async () => {
  await takeOver();
  turn.delta("s1", "it");
  await world.clock.advance(10_000);
  expect(shows()).toEqual(["half of "]);
  turn.show({ type: "stream_end", streamId: "s1" }, "half of it");
  await world.clock.advance(1_000);
  expect(shows()).toEqual(["half of it"]);
});

it("a new owner gives a message of a stream that nobody went on with to the next stream of the turn", async () => {
  await takeOver();
  turn.delta("s2", "anew");
  await world.clock.advance(1_000);
  expect(shows()).toEqual(["anew"]);
  turn.answer("anew!", "s2");
  await world.clock.advance(1_000);
  expect(shows()).toEqual(["anew!"]);
});

it("a process that stands by shows nothing and listens to nothing", async () => {
  const standby = new RecordingChannel().showing();
  await world.manager("one").start();
  await world.manager("two", [standby]).start();
  await world.settle();
  expect(world.live.followers("bot")).toBe(1);
  turn.delta("s", "a");
  turn.typing();
  await world.settle();
  expect([standby.calls, standby.signs]).toEqual([[], []]);
});

it("a fallback that was broken off is gone on with in order", async () => {
  const answer = turn.say({ type: "final", streamId: "s" }, "a|b");
  world.outbox.receipts.set(
    "t1",
    new Map(["0", "1"].map((at) => [`s.${at}`, { state: "sent", platformId: `old${at}` }])),
  );
  world.outbox.receipts.set(answer.id, new Map([["0", { state: "sent", platformId: "new0" }]]));
  for (const [id, text] of [
    ["old0", "a"],
    ["old1", "b"],
    ["new0", "a"],
  ] as const)
    world.channel.shows.set(id, text);
  const route = { via: "outbox", account: "bot", channel: "recording", chatId: "c1", isStreaming: true } as const;
  world.outbox.put({ route, message: answer });
  await world.manager().start();
  await world.settle();
  expect([...world.channel.shows]).toEqual([
    ["new0", "a"],
    ["p1", "b"],
  ]);
});

it("live events that cannot be followed hold up no answer, and are followed later", async () => {
  world.live.failure = new NanogateError("BUS_UNAVAILABLE", "away");
  await world.manager().start();
  turn.answer("answer");
  await world.settle();
  expect(shows()).toEqual(["answer"]);
  world.live.failure = null;
  await world.clock.advance(1_000);
  expect(world.live.followers("bot")).toBe(1);
});

it("nothing is listened to any more when the gateway stops", async () => {
  const manager = world.manager();
  await manager.start();
  await world.settle();
  const stopped = manager.stop();
  await world.clock.advance(SETTINGS.drainMs);
  await stopped;
  expect(world.live.followers("bot")).toBe(0);
});

it("a draft shows where the text has come to; the answer is a message of its own", async () => {
  world.channel.showing("drafts", 1_000);
  await world.manager().start();
  await world.settle();
  turn.delta("s", "one|t");
  await world.settle();
  turn.delta("s", "wo");
  await world.clock.advance(1_000);
  turn.answer("one|two", "s");
  await world.settle();
  expect(world.channel.calls).toEqual(["draft s t", "draft s two", "send p1 c1:one", "send p2 c1:two"]);
});

it("a chat that shows whole answers only gets whole answers only", async () => {
  world.channel.showing("none");
  await world.manager().start();
  await world.settle();
  turn.delta("s", "one");
  turn.show({ type: "stream_end", streamId: "s" }, "one");
  await world.clock.advance(5_000);
  turn.answer("two", "r");
  await world.settle();
  expect(world.channel.calls).toEqual(["send p1 c1:two"]);
});

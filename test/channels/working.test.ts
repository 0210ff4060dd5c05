/** Signs of work: begun with a turn, kept up, ended once whatever becomes of it. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { DeliveryError } from "../../src/channels/channel.js";
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

const signs = () => world.channel.signs;

it("is shown at once, again in time, and until the answer is there", async () => {
  turn.typing();
  await world.clock.advance(8_000);
  expect(signs()).toEqual(["begin c1", "again c1", "again c1"]);
  turn.answer("done");
  await world.clock.advance(60_000);
  expect(signs()).toEqual(["begin c1", "again c1", "again c1", "end c1"]);
});

it.each([
  ["a notice", (on: SpokenTurn) => void on.notice("sorry")],
  ["the end of a silent turn", (on: SpokenTurn) => void on.end()],
  ["a stop", (on: SpokenTurn) => void on.end("stopped")],
])("ends with %s, once", async (_what, end) => {
  turn.typing();
  await world.settle();
  end(turn);
  turn.end();
  await world.clock.advance(60_000);
  expect(signs()).toEqual(["begin c1", "end c1"]);
});

it("ends also when the answer is given up", async () => {
  world.channel.onSend = async () => {
    throw new DeliveryError({ kind: "permanent" }, "blocked");
  };
  turn.typing();
  await world.settle();
  turn.answer("nobody reads it");
  await world.settle();
  expect(signs()).toEqual(["begin c1", "end c1"]);
});

it("is not begun by what comes late", async () => {
  const late = turn.typing();
  turn.end();
  await world.settle();
  world.live.publish("bot", late);
  turn.typing();
  await world.clock.advance(60_000);
  expect(signs()).toEqual(["begin c1", "end c1"]);
});

it("begins again when a turn goes on after an answer", async () => {
  turn.typing();
  await world.settle();
  turn.answer("first");
  await world.settle();
  turn.typing();
  await world.settle();
  turn.answer("second");
  await world.settle();
  expect(signs()).toEqual(["begin c1", "end c1", "begin c1", "end c1"]);
});

it("ends when its turn has been silent for ten minutes, and not before", async () => {
  turn.typing();
  await world.clock.advance(500_000);
  turn.typing();
  await world.clock.advance(596_000);
  expect(signs().at(-1)).toBe("again c1");
  await world.clock.advance(8_000);
  expect(signs().at(-1)).toBe("end c1");
  const shown = signs().length;
  await world.clock.advance(60_000);
  expect(signs()).toHaveLength(shown);
});

it("that hangs or fails is nobody's trouble: it ends, and the answer comes", async () => {
  let isHanging = true;
  world.channel.onWorking = (phase) => {
    if (phase === "again") return Promise.reject(new Error("no"));
    return isHanging ? new Promise(() => {}) : Promise.resolve();
  };
  turn.typing();
  await world.settle();
  turn.answer("done");
  await world.settle();
  expect(world.channel.got).toEqual(["c1:done"]);
  isHanging = false;
  await world.clock.advance(10_000);
  expect(signs()).toEqual(["end c1"]);
});

it("of another owner is taken away with the answer; a command's answer takes nothing away", async () => {
  turn.notice("a command's answer");
  await world.settle();
  expect(signs()).toEqual([]);
  new SpokenTurn(world, "t2").answer("begun elsewhere");
  await world.settle();
  expect(signs()).toEqual(["end c1"]);
});

it("ends when the gateway stops", async () => {
  const other = new Delivering();
  other.channel.showing();
  const manager = other.manager();
  await manager.start();
  await other.settle();
  new SpokenTurn(other, "t1").typing();
  await other.settle();
  await manager.stop();
  expect(other.channel.signs).toEqual(["begin c1", "end c1"]);
});

it("that is being taken away when the gateway stops is gone before the channel is stopped", async () => {
  const other = new Delivering();
  other.channel.showing();
  const manager = other.manager();
  await manager.start();
  await other.settle();
  let release = () => {};
  other.channel.onWorking = (phase) =>
    phase === "end" ? new Promise<void>((resolve) => (release = resolve)) : Promise.resolve();
  const one = new SpokenTurn(other, "t1");
  one.typing();
  await other.settle();
  one.answer("done");
  await other.settle();
  const stopped = manager.stop();
  await other.settle();
  expect(other.channel.life).toEqual(["start"]);
  release();
  await stopped;
  expect([other.channel.signs, other.channel.life]).toEqual([
    ["begin c1", "end c1"],
    ["start", "stop"],
  ]);
});

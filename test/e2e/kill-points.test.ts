/** A worker is killed at each place a message passes; the answer arrives once all the same. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { Stage } from "./support/stage.js";
import { COUNTED_CALL, countedRuns, endsOf, seedCounter, storyFaults } from "./support/story.js";

const DONE = "used: Replaced 1 in counted.txt";
const LOST = "used: Interrupted";

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.open();
  await seedCounter(stage);
});
afterEach(() => stage.close());

/**
 * Where the worker dies; how often the model is asked (2 without a death: for the call, for the answer), how often the tool
 * runs, how the answer begins. Appends: user row, call, result, answer.
 */
const POINTS: ReadonlyArray<[string, { asked: number; runs: readonly number[]; answer: string }]> = [
  ["wake.fetched", { asked: 2, runs: [1], answer: DONE }],
  ["lease.opened", { asked: 2, runs: [1], answer: DONE }],
  ["session.fenced", { asked: 2, runs: [1], answer: DONE }],
  ["append.before", { asked: 2, runs: [1], answer: DONE }],
  ["append.after", { asked: 2, runs: [1], answer: DONE }],
  ["append.before#2", { asked: 3, runs: [1], answer: DONE }],
  ["append.after#2", { asked: 2, runs: [0], answer: LOST }],
  // The first thing shown is the start of the call, and the tool runs beside it.
  ["emit.before", { asked: 2, runs: [0, 1], answer: "used: " }],
  ["tool.finished", { asked: 2, runs: [1], answer: LOST }],
  ["append.before#3", { asked: 2, runs: [1], answer: LOST }],
  ["append.after#3", { asked: 2, runs: [1], answer: DONE }],
  ["append.before#4", { asked: 3, runs: [1], answer: DONE }],
  ["append.after#4", { asked: 2, runs: [1], answer: DONE }],
  ["turn.finished", { asked: 2, runs: [1], answer: DONE }],
  ["settle.before", { asked: 2, runs: [1], answer: DONE }],
  ["settle.after", { asked: 2, runs: [1], answer: DONE }],
];

it.each(POINTS)("worker killed at %s", async (point, { asked, runs, answer }) => {
  const [door, victim] = await Promise.all([
    stage.gateway({ role: "channels" }),
    stage.gateway({ role: "worker", fault: `kill:${point}` }),
  ]);
  const client = new Client("c1");
  await client.connect(await door.url("alice"));
  await client.say(COUNTED_CALL, "m1");
  expect((await victim.ended).signal).toBe("SIGKILL");
  await stage.gateway({ role: "worker" });
  await client.end("m1");
  expect(stage.model.asked(COUNTED_CALL)).toBe(asked);
  await client.say("second", "m2");
  await client.end("m2");
  expect(await storyFaults(stage, client)).toEqual([]);
  expect(endsOf(client)).toEqual(["m1: completed", "m2: completed"]);
  expect(client.answers).toEqual([expect.stringContaining(answer), "re: second"]);
  expect(runs).toContain(await countedRuns(stage));
});

it("voids a stream whose worker died, and shows the answer once", async () => {
  const [door, victim] = await Promise.all([
    stage.gateway({ role: "channels" }),
    stage.gateway({ role: "worker", fault: "kill:emit.before#3" }),
  ]);
  const client = new Client("c1");
  await client.connect(await door.url("alice"));
  const text = `slowly ${"word ".repeat(60)}`;
  await client.say(text, "m1");
  await victim.ended;
  await stage.gateway({ role: "worker" });
  await client.end("m1");
  expect(await storyFaults(stage, client)).toEqual([]);
  expect(client.answers).toEqual([`re: ${text}`]);
  expect(client.events.filter((event) => event.event === "stream_reset")).toHaveLength(1);
  expect(stage.model.asked("slowly")).toBe(2);
});

it("ends the stream of a dead worker with the answer that it had stored", async () => {
  const [door, victim] = await Promise.all([
    stage.gateway({ role: "channels" }),
    stage.gateway({ role: "worker", fault: "kill:settle.before" }),
  ]);
  const client = new Client("c1");
  await client.connect(await door.url("alice"));
  await client.say("once", "m1");
  await victim.ended;
  await stage.gateway({ role: "worker" });
  await client.end("m1");
  expect(await storyFaults(stage, client)).toEqual([]);
  const streams = client.events.filter((event) => event.stream_id !== undefined);
  expect(new Set(streams.map((event) => event.stream_id)).size).toBe(1);
  expect(streams.at(-1)).toMatchObject({ event: "stream_end", text: "re: once" });
  expect(streams[0]?.event).toBe("delta");
  expect(stage.model.asked("once")).toBe(1);
});

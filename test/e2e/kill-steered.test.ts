/** A worker is killed around the place where it takes a second message into its turn: both are answered, each once. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { type GatewayProcess, Stage } from "./support/stage.js";
import { COUNTED_CALL, countedRuns, endsOf, seedCounter, storyFaults } from "./support/story.js";

let stage: Stage;
let door: GatewayProcess;
beforeEach(async () => {
  stage = await Stage.open();
  await seedCounter(stage);
  door = await stage.gateway({ role: "channels" });
});
afterEach(() => stage.close());

/** Says `text`, and `then this` while the model thinks about it; the worker dies and another one finishes. */
async function steeredAndKilled(text: string, point: string): Promise<Client> {
  const victim = await stage.gateway({ role: "worker", fault: `kill:${point}` });
  const client = new Client("c1");
  await client.connect(await door.url("alice"));
  const release = stage.model.hold(text);
  const asked = stage.model.arrival(text);
  await client.say(text, "m1");
  await asked;
  await client.say("then this", "m2");
  release();
  await victim.ended;
  await stage.gateway({ role: "worker" });
  await Promise.all([client.end("m1"), client.end("m2")]);
  expect(await storyFaults(stage, client)).toEqual([]);
  return client;
}

const ONE_TURN = ["m1+m2: completed"];
const TWO_TURNS = ["m1: completed", "m2: completed"];

describe("taken in after a tool", () => {
  // Appends: user row, call, result, second user row, answer.
  it.each(["append.before#4", "append.after#4", "append.before#5", "settle.before"])("killed at %s", async (point) => {
    const client = await steeredAndKilled(COUNTED_CALL, point);
    expect(endsOf(client)).toEqual(ONE_TURN);
    expect(client.answers.at(-1)).toBe("re: then this");
    expect(await countedRuns(stage)).toBe(1);
  });
});

describe("taken in after an answer", () => {
  // Appends: user row, answer, second user row, second answer. Settlements: the first answer alone, then the end.
  it.each([
    ["append.after#2", TWO_TURNS],
    ["append.before#3", TWO_TURNS],
    ["append.after#3", ONE_TURN],
    ["settle.before", ONE_TURN],
    ["settle.after", ONE_TURN],
    ["append.before#4", ONE_TURN],
    ["settle.before#2", ONE_TURN],
  ])("killed at %s", async (point, ends) => {
    const client = await steeredAndKilled("first", point);
    expect(endsOf(client)).toEqual(ends);
    expect(client.answers).toEqual(["re: first", "re: then this"]);
    expect(stage.model.asked("first")).toBe(1);
  });
});

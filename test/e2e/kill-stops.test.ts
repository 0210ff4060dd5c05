/** What was stopped stays stopped, also when the worker that had it dies a moment later, or slept while the stop came. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { type GatewayProcess, Stage } from "./support/stage.js";
import { COUNTED_CALL, countedRuns, endsOf, seedCounter, storyFaults } from "./support/story.js";

let stage: Stage;
let door: GatewayProcess;
let client: Client;
beforeEach(async () => {
  stage = await Stage.open();
  await seedCounter(stage);
  door = await stage.gateway({ role: "channels" });
  client = new Client("c1");
  await client.connect(await door.url("alice"));
});
afterEach(() => stage.close());

/** The stop stands, its turn has ended as stopped, nothing of it comes later, and the session goes on. */
async function expectStopped(text: string, asked: number): Promise<void> {
  expect((await client.end("m1")).outcome).toBe("stopped");
  await client.say("second", "m2");
  await client.end("m2");
  expect(await storyFaults(stage, client)).toEqual([]);
  expect(endsOf(client).sort()).toEqual(["m1: stopped", "m2: completed", "s1: completed"]);
  const whole = client.events.filter((event) => event.event === "message" || event.text?.includes("re: ") === true);
  expect(whole.map((event) => event.text)).not.toContain(`re: ${text}`);
  expect(client.answers).toContain("Stopped 1 message.");
  expect(client.answers.at(-1)).toBe("re: second");
  expect(stage.model.asked(text)).toBe(asked);
}

/** Says `text` and waits until the worker has asked the model, which does not answer. */
async function untilAsked(text: string): Promise<() => void> {
  const release = stage.model.hold(text);
  const asked = stage.model.arrival(text);
  await client.say(text, "m1");
  await asked;
  return release;
}

// Appends: the user row, the row that closes the stopped turn.
it.each(["append.before#2", "append.after#2", "turn.finished", "settle.before", "settle.after"])(
  "worker that carries the stop out is killed at %s",
  async (point) => {
    const victim = await stage.gateway({ role: "worker", fault: `kill:${point}` });
    const release = await untilAsked("patience");
    await client.say("/stop", "s1");
    await victim.ended;
    release();
    await stage.gateway({ role: "worker" });
    await expectStopped("patience", 1);
  },
);

it("worker that was frozen when the stop came is killed", async () => {
  const victim = await stage.gateway({ role: "worker" });
  const release = await untilAsked("patience");
  victim.freeze();
  await client.say("/stop", "s1");
  await victim.kill();
  release();
  await stage.gateway({ role: "worker" });
  await expectStopped("patience", 1);
});

it("worker that was frozen when the stop came wakes when another has carried it out", async () => {
  const sleeper = await stage.gateway({ role: "worker" });
  const release = await untilAsked("patience");
  sleeper.freeze();
  await client.say("/stop", "s1");
  const other = await stage.gateway({ role: "worker" });
  await client.end("m1");
  release();
  sleeper.thaw();
  await sleeper.logged("taken over by another process");
  await other.kill();
  await expectStopped("patience", 1);
});

it("worker is killed between a tool and its result, after the stop: the call is closed and not run again", async () => {
  const victim = await stage.gateway({ role: "worker", fault: "stop:tool.finished" });
  await client.say(COUNTED_CALL, "m1");
  await victim.frozen();
  await client.say("/stop", "s1");
  await victim.kill();
  await stage.gateway({ role: "worker" });
  await expectStopped(COUNTED_CALL, 1);
  expect(await countedRuns(stage)).toBe(1);
  const results = (await stage.rows("websocket:c1")).filter((row) => row.role === "tool");
  expect(results.map((row) => row.content)).toEqual(["Stopped by the user before a result was known."]);
});

it("messages that waited are stopped at once, although no worker lives", async () => {
  await client.say("one", "m1");
  await client.say("/stop", "s1");
  await client.end("m1");
  await stage.gateway({ role: "worker" });
  await expectStopped("one", 0);
});

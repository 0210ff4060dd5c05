/** `/stop` and `/new` over real processes: given at one door, obeyed by a worker elsewhere, within a second. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { historyFaults } from "./support/history.js";
import { type GatewayProcess, Stage } from "./support/stage.js";

let stage: Stage;
let door: GatewayProcess;
let other: GatewayProcess;
let chats = 0;
let client: Client;

beforeAll(async () => {
  stage = await Stage.open({ agent: { model: "peer/m", queueMode: "followup" } });
  const roles = ["channels", "channels", "worker", "worker"] as const;
  const [one, two] = await Promise.all(roles.map((role) => stage.gateway({ role })));
  if (one === undefined || two === undefined) throw new Error("no doors");
  [door, other] = [one, two];
});
afterAll(() => stage.close());
beforeEach(async () => {
  chats += 1;
  client = await clientAt(door, `c${chats}`);
});

async function clientAt(at: GatewayProcess, chat: string): Promise<Client> {
  const made = new Client(chat);
  await made.connect(await at.url("alice"));
  return made;
}

/** Says something whose answer is held back, and returns when the model was asked. */
async function begin(text: string, id: string): Promise<void> {
  const arrived = stage.model.arrival(text);
  await client.say(text, id);
  await arrived;
}

const noticesOf = (of: Client): string[] =>
  of.events.filter(({ event }) => event === "message").map(({ text }) => text ?? "");

it("stops a turn that another process runs within a second, keeps its message, and goes on", async () => {
  stage.model.hold("never ends");
  await begin("never ends", "m1");
  const there = await clientAt(other, client.chatId);
  const before = performance.now();
  await there.say("/stop", "s1");
  expect((await client.end("m1")).outcome).toBe("stopped");
  expect(performance.now() - before).toBeLessThan(1000);
  await client.say("next", "m2");
  expect((await client.end("m2")).outcome).toBe("completed");
  expect(client.answers).toEqual(["Stopped 1 message.", "re: next"]);
  const rows = await stage.rows(`websocket:${client.chatId}`);
  expect(rows.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  expect(rows[1]).toMatchObject({ outcome: "stopped" });
  expect(historyFaults(rows)).toEqual([]);
});

it("stops what waits too, says how many, and lets what comes afterwards through", async () => {
  stage.model.hold("first of many");
  await begin("first of many", "m1");
  for (const id of ["m2", "m3", "m4"]) await client.say(`waits ${client.chatId}`, id);
  client.post("/stop", "s1");
  client.post("after", "m5");
  for (const id of ["m1", "m2", "m3", "m4"]) expect((await client.end(id)).outcome).toBe("stopped");
  expect((await client.end("m5")).outcome).toBe("completed");
  expect(noticesOf(client)).toEqual(["Stopped 4 messages."]);
  expect(stage.model.asked(`waits ${client.chatId}`)).toBe(0);
  await client.say("/stop", "s2");
  await client.end("s2");
  expect(noticesOf(client).at(-1)).toBe("There is nothing to stop.");
  expect(client.events.filter(({ event }) => event === "turn_end")).toHaveLength(7);
});

it("ends the running turn and what waits with /new, and begins with an empty history", async () => {
  await client.say("remember 17", "m0");
  await client.end("m0");
  stage.model.hold("long story");
  await begin("long story", "m1");
  await client.say("waits", "m2");
  await client.say("/new", "n1");
  await client.say("what was it", "m3");
  expect((await client.end("m1")).outcome).toBe("stopped");
  expect((await client.end("m2")).outcome).toBe("stopped");
  expect((await client.end("m3")).outcome).toBe("completed");
  const request = stage.model.requests.findLast(({ messages }) => messages.at(-1)?.content === "what was it");
  expect(request?.messages.filter(({ role }) => role === "user")).toHaveLength(1);
  expect(client.answers.slice(1)).toEqual(["A new conversation begins.", "re: what was it"]);
});

it("keeps the results of tools that had ended before the stop", async () => {
  const path = `${client.chatId}.txt`;
  const text = `call write_file ${JSON.stringify({ path, content: "x" })}`;
  const open = stage.model.hold(path);
  await begin(text, "m1");
  stage.model.hold(path);
  const second = stage.model.arrival(path);
  open();
  await second;
  await client.say("/stop", "s1");
  expect((await client.end("m1")).outcome).toBe("stopped");
  const rows = await stage.rows(`websocket:${client.chatId}`);
  expect(rows.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  expect(historyFaults(rows)).toEqual([]);
});

it("leaves nothing and nobody behind: every process still serves", async () => {
  for (const at of [door, other]) {
    const visitor = await clientAt(at, `v${at.pid}`);
    await visitor.say("hello", "h");
    expect((await visitor.end("h")).outcome).toBe("completed");
    expect(visitor.faults).toEqual([]);
  }
});

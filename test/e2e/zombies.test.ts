/**
 * Workers that sleep for longer than their lease at each place where they write, and then wake: another has finished the
 * turn, and nothing that the sleeper still does has an effect.
 */
import { appendFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { voidRows } from "./support/history.js";
import { type GatewayProcess, Stage } from "./support/stage.js";
import { COUNTED_CALL, countedRuns, endsOf, seedCounter, storyFaults } from "./support/story.js";

const TAKEN_OVER = "taken over by another process";

let stage: Stage;
let door: GatewayProcess;
beforeEach(async () => {
  stage = await Stage.open();
  await seedCounter(stage);
  door = await stage.gateway({ role: "channels" });
});
afterEach(() => stage.close());

async function connected(chatId: string): Promise<Client> {
  const client = new Client(chatId);
  await client.connect(await door.url("alice"));
  return client;
}

/** The other worker goes; the one that slept serves this session, with all that happened, and others. */
async function expectServes(sleeper: GatewayProcess, other: GatewayProcess, client: Client): Promise<void> {
  await other.kill();
  const elsewhere = await connected("c2");
  await elsewhere.say("elsewhere", "e1");
  await client.say("third", "m3");
  await Promise.all([elsewhere.end("e1"), client.end("m3")]);
  expect(await storyFaults(stage, client)).toEqual([]);
  expect(await storyFaults(stage, elsewhere)).toEqual([]);
  expect(elsewhere.answers).toEqual(["re: elsewhere"]);
  const request = stage.model.requests.findLast((each) => each.messages.at(-1)?.content === "third");
  const conversation = request?.messages.map((message) => message.content) ?? [];
  // Each answer so far stands once in what the model is told.
  const answers = client.answers.slice(0, -1);
  expect(conversation.filter((content) => answers.some((answer) => answer === content))).toEqual(answers);
  expect(request?.messages.filter((message) => message.role === "user")).toHaveLength(answers.length + 1);
  expect(sleeper.log).not.toContain('"level":60');
}

/** Where it sleeps, how often the model is asked in all, how many rows of the sleeper are void. */
const POINTS: ReadonlyArray<[string, { asked: number; voided: number }]> = [
  ["session.fenced", { asked: 2, voided: 0 }],
  ["append.before", { asked: 2, voided: 1 }],
  ["append.after", { asked: 2, voided: 0 }],
  ["append.before#2", { asked: 3, voided: 1 }],
  ["append.after#2", { asked: 2, voided: 0 }],
  ["tool.finished", { asked: 2, voided: 0 }],
  ["append.before#3", { asked: 2, voided: 1 }],
  ["append.before#4", { asked: 3, voided: 1 }],
  ["turn.finished", { asked: 2, voided: 0 }],
  ["settle.before", { asked: 2, voided: 0 }],
];

it.each(POINTS)("worker asleep at %s", async (point, { asked, voided }) => {
  const sleeper = await stage.gateway({ role: "worker", fault: `stop:${point}` });
  const client = await connected("c1");
  await client.say(COUNTED_CALL, "m1");
  await sleeper.frozen();
  const other = await stage.gateway({ role: "worker" });
  await client.end("m1");
  const seen = client.events.length;
  sleeper.thaw();
  await sleeper.logged(TAKEN_OVER);
  expect(stage.model.asked(COUNTED_CALL)).toBe(asked);
  expect(voidRows(await stage.lines("websocket:c1"))).toHaveLength(voided);
  await client.say("second", "m2");
  await client.end("m2");
  // What came after the sleeper woke is the second turn alone.
  const turns = new Set(
    client.events
      .slice(seen)
      .map((event) => event.turn_id)
      .filter((turn) => turn !== undefined),
  );
  expect(turns.size).toBe(1);
  expect(endsOf(client)).toEqual(["m1: completed", "m2: completed"]);
  expect(await countedRuns(stage)).toBeLessThanOrEqual(1);
  await expectServes(sleeper, other, client);
  expect(stage.model.asked(COUNTED_CALL)).toBe(asked);
});

it("worker asleep at emit.before: the stream that it had begun is void, nothing of it comes later", async () => {
  const sleeper = await stage.gateway({ role: "worker", fault: "stop:emit.before#2" });
  const client = await connected("c1");
  const text = `slowly ${"word ".repeat(60)}`;
  await client.say(text, "m1");
  await sleeper.frozen();
  const other = await stage.gateway({ role: "worker" });
  await client.end("m1");
  sleeper.thaw();
  await sleeper.logged(TAKEN_OVER);
  await client.say("second", "m2");
  await client.end("m2");
  expect(client.events.filter((event) => event.event === "stream_reset")).toHaveLength(1);
  expect(client.answers).toEqual([`re: ${text}`, "re: second"]);
  await expectServes(sleeper, other, client);
});

describe.each(["rewrite.linked", "rewrite.renamed"])("worker asleep at %s", (point) => {
  it("leaves the file to the one that repaired it", async () => {
    const client = await connected("c1");
    const before = await stage.gateway({ role: "worker" });
    await client.say("first", "m1");
    await client.end("m1");
    await before.kill();
    const file = path.join(stage.workspace, "sessions", "websocket_c1.jsonl");
    await appendFile(file, '{"role":"user","content":"half a li\n');
    const sleeper = await stage.gateway({ role: "worker", fault: `stop:${point}` });
    await client.say("second", "m2");
    await sleeper.frozen();
    const other = await stage.gateway({ role: "worker" });
    await client.end("m2");
    sleeper.thaw();
    await sleeper.logged(TAKEN_OVER);
    await expectServes(sleeper, other, client);
    const contents = (await stage.rows("websocket:c1")).map((row) => row.content);
    expect(contents).toEqual(["first", "re: first", "second", "re: second", "third", "re: third"]);
  });
});

it.each(["wake.fetched", "lease.opened"])(
  "worker asleep at %s: it comes too late and writes nothing",
  async (point) => {
    const sleeper = await stage.gateway({ role: "worker", fault: `stop:${point}` });
    const client = await connected("c1");
    await client.say("first", "m1");
    await sleeper.frozen();
    const other = await stage.gateway({ role: "worker" });
    await client.end("m1");
    const lines = await stage.lines("websocket:c1");
    sleeper.thaw();
    await client.say("second", "m2");
    await client.end("m2");
    await expectServes(sleeper, other, client);
    expect((await stage.lines("websocket:c1")).slice(0, lines.length)).toEqual(lines);
    expect(voidRows(await stage.lines("websocket:c1"))).toEqual([]);
    expect(stage.model.asked("first")).toBe(1);
  },
);

it("worker asleep while its model answers: the answer that it finds on waking is nobody's", async () => {
  const sleeper = await stage.gateway({ role: "worker" });
  const client = await connected("c1");
  const release = stage.model.hold("patience");
  const asked = stage.model.arrival("patience");
  await client.say("patience", "m1");
  await asked;
  sleeper.freeze();
  const again = stage.model.arrival("patience");
  const other = await stage.gateway({ role: "worker" });
  await again;
  release();
  await client.end("m1");
  sleeper.thaw();
  await sleeper.logged(TAKEN_OVER);
  await client.say("second", "m2");
  await client.end("m2");
  expect(client.answers).toEqual(["re: patience", "re: second"]);
  expect(stage.model.asked("patience")).toBe(2);
  expect(voidRows(await stage.lines("websocket:c1"))).toEqual([]);
  await expectServes(sleeper, other, client);
});

it("a worker that sleeps while idle holds no message up", async () => {
  const sleeper = await stage.gateway({ role: "worker" });
  const client = await connected("c1");
  await client.say("first", "m1");
  await client.end("m1");
  const other = await stage.gateway({ role: "worker" });
  sleeper.freeze();
  const saidAtMs = performance.now();
  await client.say("second", "m2");
  await client.end("m2");
  // The queue calls one waiting worker, which may be the one that sleeps; the other looks by itself soon.
  expect(performance.now() - saidAtMs).toBeLessThan(4500);
  sleeper.thaw();
  await expectServes(sleeper, other, client);
});

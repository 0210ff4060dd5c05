/** Processes killed where a session changes hands or its file is written anew: nothing is lost, nothing is said twice. */
import { appendFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { type GatewayProcess, Stage } from "./support/stage.js";
import { endsOf, storyFaults } from "./support/story.js";

let stage: Stage;
afterEach(() => stage.close());

async function connected(door: GatewayProcess, chatId = "c1"): Promise<Client> {
  const client = new Client(chatId);
  await client.connect(await door.url("alice"));
  return client;
}

const sessionsFolder = () => path.join(stage.workspace, "sessions");
const sessionFile = () => path.join(sessionsFolder(), "websocket_c1.jsonl");
const BAD_LINE = '{"role":"user","content":"half a li';

/** What was kept aside of the session's file, joined. */
async function keptAside(): Promise<string> {
  const names = (await readdir(sessionsFolder())).filter((name) => name.includes(".bad-"));
  return (await Promise.all(names.map((name) => readFile(path.join(sessionsFolder(), name), "utf8")))).join("");
}

async function leftovers(): Promise<string[]> {
  return (await readdir(sessionsFolder())).filter((name) => name.endsWith(".prev") || name.includes(".tmp-"));
}

describe.each(["rewrite.linked", "rewrite.renamed"])("worker killed at %s", (point) => {
  it("repairs a file that the bus knows", async () => {
    stage = await Stage.open();
    const [door, first] = await Promise.all([stage.gateway({ role: "channels" }), stage.gateway({ role: "worker" })]);
    const client = await connected(door);
    await client.say("first", "m1");
    await client.end("m1");
    await first.kill();
    await appendFile(sessionFile(), `${BAD_LINE}\n`);
    const victim = await stage.gateway({ role: "worker", fault: `kill:${point}` });
    await client.say("second", "m2");
    await victim.ended;
    await stage.gateway({ role: "worker" });
    await client.end("m2");
    expect(await storyFaults(stage, client)).toEqual([]);
    expect(client.answers).toEqual(["re: first", "re: second"]);
    const rows = await stage.rows("websocket:c1");
    expect(rows.map((row) => row.content)).toEqual(["first", "re: first", "second", "re: second"]);
    expect(await keptAside()).toContain(BAD_LINE);
    expect(await leftovers()).toEqual([]);
    expect(stage.model.requests.at(-1)?.messages.map((each) => each.content)).toContain("re: first");
  });

  it("repairs a file that was there before the gateway", async () => {
    stage = await Stage.open();
    await mkdir(sessionsFolder(), { recursive: true });
    const metadata = { _type: "metadata", key: "websocket:c1", metadata: {}, last_consolidated: 0 };
    const rows = [
      { role: "user", content: "old question" },
      { role: "assistant", content: "old answer" },
    ];
    const lines = [metadata, ...rows].map((line) => JSON.stringify(line));
    await writeFile(sessionFile(), [...lines, BAD_LINE, ""].join("\n"));
    const [door, victim] = await Promise.all([
      stage.gateway({ role: "channels" }),
      stage.gateway({ role: "worker", fault: `kill:${point}` }),
    ]);
    const client = await connected(door);
    await client.say("new question", "m1");
    await victim.ended;
    await stage.gateway({ role: "worker" });
    await client.end("m1");
    expect(await storyFaults(stage, client)).toEqual([]);
    const contents = (await stage.rows("websocket:c1")).map((row) => row.content);
    expect(contents).toEqual(["old question", "old answer", "new question", "re: new question"]);
    expect(await keptAside()).toContain(BAD_LINE);
    expect(await leftovers()).toEqual([]);
  });
});

describe("worker killed at yield.stored", () => {
  it("after its turns in a row: the next message is answered by another", async () => {
    stage = await Stage.open({ agent: { model: "peer/m", queueMode: "followup" } });
    const door = await stage.gateway({ role: "channels" });
    const client = await connected(door);
    const ids = Array.from({ length: 18 }, (_, index) => `m${index + 1}`);
    for (const id of ids) await client.say(`text ${id}.`, id);
    const victim = await stage.gateway({ role: "worker", fault: "kill:yield.stored" });
    await victim.ended;
    expect(endsOf(client)).toHaveLength(16);
    await stage.gateway({ role: "worker" });
    await client.end("m18");
    expect(await storyFaults(stage, client)).toEqual([]);
    expect(endsOf(client)).toEqual(ids.map((id) => `${id}: completed`));
    for (const id of ids) expect(stage.model.asked(`text ${id}.`)).toBe(1);
  });

  it("while it hands a running turn back at its stop: the turn is finished by another", async () => {
    stage = await Stage.open({ gateway: { drainMs: 50 } });
    const [door, victim] = await Promise.all([
      stage.gateway({ role: "channels" }),
      stage.gateway({ role: "worker", fault: "kill:yield.stored" }),
    ]);
    const client = await connected(door);
    const release = stage.model.hold("patience");
    const asked = stage.model.arrival("patience");
    await client.say("patience", "m1");
    await asked;
    expect((await victim.stop()).signal).toBe("SIGKILL");
    release();
    await stage.gateway({ role: "worker" });
    await client.end("m1");
    expect(await storyFaults(stage, client)).toEqual([]);
    expect(client.answers).toEqual(["re: patience"]);
  });
});

describe("process killed at reap.stored", () => {
  it("after it took a session from a dead worker: the session is found all the same", async () => {
    stage = await Stage.open();
    const [door, worker] = await Promise.all([stage.gateway({ role: "channels" }), stage.gateway({ role: "worker" })]);
    const client = await connected(door);
    const release = stage.model.hold("patience");
    const asked = stage.model.arrival("patience");
    await client.say("patience", "m1");
    await asked;
    // Every process reaps; the door sleeps meanwhile, so that the one with the fault has to.
    const reaper = stage.spawn({ role: "channels", fault: "kill:reap.stored" });
    await reaper.ready;
    door.freeze();
    await worker.kill();
    await reaper.ended;
    release();
    door.thaw();
    await stage.gateway({ role: "worker" });
    await client.end("m1");
    expect(await storyFaults(stage, client)).toEqual([]);
    expect(client.answers).toEqual(["re: patience"]);
    expect(stage.model.asked("patience")).toBe(2);
  });
});

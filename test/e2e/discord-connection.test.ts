/** The connection to Discord fails in every way it can: nothing is lost, nothing answered twice, the identify budget is kept. */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, expect, it } from "vitest";
import { until } from "../support/bus-fixture.js";
import { Client } from "./support/client.js";
import { DiscordStage, type DiscordStageOptions } from "./support/discord.js";
import { historyFaults } from "./support/history.js";

let on: DiscordStage;
afterEach(() => on.close());

async function open(options: DiscordStageOptions = {}) {
  on = await DiscordStage.open({ ...options, discord: { groupPolicy: "open", ...options.discord } });
  return { fake: on.fake, general: on.fake.text(on.fake.guild()), alice: on.fake.person("alice") };
}

const answersTo = (texts: readonly string[]) => texts.map((text) => `re: ${text}`);

interface Readiness {
  status: number;
  problems: Array<{ part: string; problem: string; advice: string }>;
}

async function readiness(port: number): Promise<Readiness> {
  const response = await fetch(`http://127.0.0.1:${port}/readyz`);
  const { problems = [] } = (await response.json()) as Partial<Readiness>;
  return { status: response.status, problems };
}

/** The problem that /readyz names for the channel, once it does. */
async function problemOf(port: number): Promise<string> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const { problems } = await readiness(port);
    const found = problems.find((each) => JSON.stringify(each).includes("discord"));
    if (found !== undefined) return `${found.problem} ${found.advice}`;
    if (performance.now() > deadline) throw new Error(`no problem was named: ${JSON.stringify(problems)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Returns when the files of the spool hold all of these texts. */
async function spooled(texts: readonly string[]): Promise<void> {
  const folder = path.join(on.stage.home, "spool");
  await until(async () => {
    const files = (await readdir(folder)).map((name) => readFile(path.join(folder, name), "utf8"));
    const kept = (await Promise.all(files)).join();
    return texts.every((text) => kept.includes(`"${text}"`));
  });
}

it("a cut line: the session is resumed, what was said meanwhile is answered once and in order", async () => {
  const { fake, alice } = await open();
  await on.connected();
  alice.dm("one");
  await on.answered(alice.chat, ["re: one"]);
  fake.gateway.cut();
  await fake.until(() => fake.gateway.connected === 0);
  for (const text of ["two", "three", "four"]) alice.dm(text);
  await on.answered(alice.chat, answersTo(["one", "two", "three", "four"]));
  expect([fake.gateway.counts.resumed, fake.gateway.identifies.length]).toEqual([1, 1]);
  expect(historyFaults(await on.stage.rows(`discord:${alice.chat.id}`))).toEqual([]);
});

it("a session that cannot be resumed: what was missed is fetched, one turn each, in order", async () => {
  const { fake, general, alice } = await open();
  await on.connected();
  alice.dm("one");
  alice.says(general, "uno");
  await on.answered(alice.chat, ["re: one"]);
  await on.answered(general, ["re: uno"]);
  fake.gateway.forgetSessions();
  fake.gateway.cut();
  await fake.until(() => fake.gateway.connected === 0);
  for (const text of ["two", "three"]) alice.dm(text);
  for (const text of ["dos", "tres"]) alice.says(general, text);
  await fake.until(() => fake.gateway.identifies.length === 2);
  await on.answered(alice.chat, answersTo(["one", "two", "three"]), 40_000);
  await on.answered(general, answersTo(["uno", "dos", "tres"]));
  for (const text of ["two", "three", "dos", "tres"]) expect(on.stage.model.asked(text)).toBe(1);
});

it("opcode 9 while connected: identified anew and caught up", async () => {
  const { fake, alice } = await open();
  await on.connected();
  alice.dm("one");
  await on.answered(alice.chat, ["re: one"]);
  fake.gateway.invalidate(false);
  alice.dm("two");
  await on.answered(alice.chat, answersTo(["one", "two"]), 40_000);
});

it("acks that stop: it connects again by itself", async () => {
  const { fake, alice } = await open({ fake: { heartbeatMs: 400 } });
  await on.connected();
  fake.gateway.isAcking = false;
  fake.gateway.isDeaf = true;
  alice.dm("unheard");
  const { connects } = fake.gateway.counts;
  await fake.until(() => fake.gateway.counts.connects > connects);
  fake.gateway.isAcking = true;
  fake.gateway.isDeaf = false;
  await on.answered(alice.chat, ["re: unheard"], 40_000);
});

it("a resume that is never answered: it does not stay deaf", async () => {
  const { fake, alice } = await open({ fake: { heartbeatMs: 400 } });
  await on.connected();
  alice.dm("one");
  await on.answered(alice.chat, ["re: one"]);
  fake.gateway.ignoreResumes(1000);
  fake.gateway.askReconnect();
  await fake.until(() => fake.gateway.counts.resumes > 0);
  alice.dm("two");
  await on.answered(alice.chat, answersTo(["one", "two"]), 50_000);
  expect(fake.gateway.identifies.length).toBeLessThan(5);
});

it("503 on connect for a while: it comes back", async () => {
  const { fake, alice } = await open();
  fake.gateway.refuseConnects(2);
  await on.gateway();
  await fake.until(() => fake.gateway.connected === 1, 50_000);
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"]);
});

it("half a minute of quiet after an answer is no failure: one identify", async () => {
  const { fake, alice } = await open({ discord: { streaming: false } });
  const gateway = await on.connected();
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"]);
  await expect(fake.until(() => fake.gateway.identifies.length > 1, 34_000)).rejects.toThrow("did not happen");
  expect((await readiness(await gateway.ready)).status).toBe(200);
});

it.each([
  ["4014: the switch in the portal is off", 4014, /message content/i, /portal/i],
  ["4004: a token that is not good", 4004, /token/i, /portal|token/i],
  ["4013: intents that do not exist", 4013, /intent/i, /./],
])("%s: the channel has failed and says what to do, others run, no identify loop", async (_, code, problem, advice) => {
  const { fake } = await open();
  fake.gateway.refuseIdentifyWith = code;
  const gateway = await on.gateway();
  const port = await gateway.ready;
  const said = await problemOf(port);
  expect(said).toMatch(problem);
  expect(said).toMatch(advice);
  expect(said).not.toContain(on.secret);
  const client = new Client("c1");
  await client.connect(await gateway.url("alice"));
  await client.say("hello", "m1");
  await client.end("m1");
  client.disconnect();
  expect(client.answers).toEqual(["re: hello"]);
  await expect(fake.until(() => fake.gateway.identifies.length > 2, 4000)).rejects.toThrow("did not happen");
});

it("Redis is away: what is said is kept in order and answered when it is back", async () => {
  const { alice, general } = await open();
  await on.connected();
  alice.dm("one");
  await on.answered(alice.chat, ["re: one"]);
  await on.stage.redis.kill();
  for (const text of ["two", "three"]) alice.dm(text);
  alice.says(general, "dos");
  await spooled(["two", "three", "dos"]);
  await on.stage.redis.up();
  await on.answered(alice.chat, answersTo(["one", "two", "three"]), 40_000);
  await on.answered(general, ["re: dos"]);
});

it("Redis is away and the process is killed: the next one finds what was said", async () => {
  const { alice } = await open({ discord: { backfillMessages: 0 } });
  const gateway = await on.connected();
  alice.dm("one");
  await on.answered(alice.chat, ["re: one"]);
  await gateway.logged('"msg":"delivered"');
  await on.stage.redis.kill();
  for (const text of ["two", "three"]) alice.dm(text);
  await spooled(["two", "three"]);
  await gateway.kill();
  await on.stage.redis.up();
  await on.gateway();
  await on.answered(alice.chat, answersTo(["one", "two", "three"]), 40_000);
});

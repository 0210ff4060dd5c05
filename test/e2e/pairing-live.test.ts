/** Strangers on both platforms beside a running gateway: told a code, let in by a command or a chat, answered at once. */
import { createServer } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FakeDiscord } from "../fakes/discord/fake-discord.js";
import { FakeTelegram } from "../fakes/telegram/fake-telegram.js";
import { until } from "../support/bus-fixture.js";
import { type Ended, run } from "./support/command.js";
import { Stage } from "./support/stage.js";

let discord: FakeDiscord;
let telegram: FakeTelegram;
let stage: Stage;

beforeEach(async () => {
  discord = await FakeDiscord.start({ heartbeatMs: 1000, identifyEveryMs: 0 });
  telegram = await FakeTelegram.start();
  stage = await Stage.open({
    agent: { model: "peer/m", queueMode: "followup" },
    // A lease that a busy machine keeps: what a stranger says while a bot is away cannot be fetched.
    gateway: { port: await freePort(), leaseMs: 8000 },
    channels: {
      discord: { token: discord.token, apiRoot: discord.apiRoot },
      telegram: { token: telegram.token, apiRoot: telegram.apiRoot },
    },
  });
  await stage.gateway();
  await discord.until(() => discord.gateway.connected === 1 && discord.world.commands.size > 0);
  await telegram.until(() => telegram.updates.isPolled || null);
});

afterEach(async () => {
  await stage.close();
  await discord.close();
  await telegram.close();
});

/** `channels status` looks where the configuration says, so the port must be known before. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const command = (...args: string[]): Promise<Ended> =>
  run([...args, "-c", stage.configFile, "-w", stage.workspace], { home: stage.home });

interface Waiting {
  code: string;
  channel: string;
  senderId: string;
}

async function waiting(): Promise<Waiting[]> {
  return (JSON.parse((await command("pairing", "list", "--json")).out) as { waiting: Waiting[] }).waiting;
}

const WELCOME = expect.stringContaining("You are paired now");

it("whoever is approved by a command is told at once, and answered from then on", async () => {
  const [ann, bob] = [discord.person("ann"), telegram.person("bob")];
  const ofAnn = () => discord.answers(ann.chat);
  const ofBob = () => bob.chat.answers();
  ann.dm("hello");
  bob.dm("hello");
  const [forAnn = ""] = await discord.until(() => ofAnn().length === 1 && ofAnn());
  const [forBob = ""] = await telegram.until(() => (ofBob().length === 1 ? ofBob() : null));
  for (const { code, channel } of await waiting()) {
    expect(channel === "discord" ? forAnn : forBob).toContain(code);
    expect(await command("pairing", "approve", code)).toMatchObject({ code: 0, err: "" });
  }
  await discord.until(() => ofAnn().length === 2);
  await telegram.until(() => ofBob().length === 2 || null);
  ann.dm("and now?");
  bob.dm("and now?");
  await discord.until(() => ofAnn().length === 3);
  await telegram.until(() => ofBob().length === 3 || null);
  expect(ofAnn()).toEqual([forAnn, WELCOME, "re: and now?"]);
  expect(ofBob()).toEqual([forBob, WELCOME, "re: and now?"]);
  expect(stage.model.asked("hello")).toBe(0);
  expect((await command("pairing", "revoke", "telegram", String(bob.user.id))).code).toBe(0);
  bob.dm("still?");
  await telegram.until(() => ofBob().length === 4 || null);
  expect(stage.model.asked("still?")).toBe(0);
});

it("an owner on one platform lets in whoever waits on the other; nobody else can", async () => {
  const [ann, eve, bob] = [discord.person("ann"), discord.person("eve"), telegram.person("bob")];
  ann.dm("hello");
  await discord.until(() => discord.answers(ann.chat).length === 1);
  await command("pairing", "approve", (await waiting())[0]?.code ?? "");
  bob.dm("hello");
  await telegram.until(() => bob.chat.answers().length === 1 || null);
  const code = (await waiting())[0]?.code ?? "";
  eve.dm(`/pairing approve ${code}`);
  await discord.until(() => discord.answers(eve.chat).length === 1);
  expect(await waiting()).toHaveLength(2);
  const asked = ann.runs(ann.chat, "pairing", { args: `approve ${code}` });
  await discord.until(() => discord.answerTo(asked));
  expect(discord.answerTo(asked)).toBe(`${bob.user.id} on telegram is paired now.`);
  await telegram.until(() => bob.chat.answers().length === 2 || null);
  expect(bob.chat.answers()[1]).toEqual(WELCOME);
});

it("a stranger's slash command is refused in words that say how to go on", async () => {
  const eve = discord.person("eve");
  const alone = eve.runs(eve.chat, "status");
  const inServer = eve.runs(discord.text(discord.guild()), "status");
  await discord.until(() => discord.answerTo(alone) && discord.answerTo(inServer));
  await discord.until(() => discord.answers(eve.chat).length === 1);
  expect(discord.answerTo(alone)).toMatch(/^Not allowed: you are not paired yet; the message with your pairing code/);
  expect(discord.answers(eve.chat)[0]).toContain((await waiting())[0]?.code);
  expect(discord.answerTo(inServer)).toMatch(/^Not allowed: you are in no list .* direct message/);
});

it("channels status says who may talk, and which bot has failed with what to do", async () => {
  const well = await command("channels", "status");
  expect([well.code, well.out]).toEqual([0, expect.stringMatching(/^discord +ok +In direct chats nobody but people/m)]);
  discord.gateway.refuseIdentifyWith = 4014;
  discord.gateway.forgetSessions();
  discord.gateway.cut();
  const ill = await until(async () => {
    const ended = await command("channels", "status");
    return ended.code === 1 && ended;
  });
  expect(ill.out).toMatch(/^telegram +ok/m);
  expect(ill.out).toMatch(/^discord +failed +In direct chats/m);
  expect(ill.out).toMatch(/^! discord: .*close code 4014.*Message Content Intent on/m);
  const { health } = (
    JSON.parse((await command("channels", "status", "--json")).out) as Array<{
      name: string;
      health: unknown;
    }>
  ).find(({ name }) => name === "discord") ?? { health: null };
  expect(health).toMatchObject({ state: "failed", advice: expect.stringContaining("Message Content Intent") });
});

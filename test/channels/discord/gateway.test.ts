/** The connection through the real discord.js: what only a person can mend, what stays quiet, what ends, and how often it identifies. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { PATIENCE } from "../../../src/channels/discord/vitals.js";
import { FakeDiscord, type FakeDiscordOptions } from "../../fakes/discord/fake-discord.js";
import { answer, Harness, sendAll } from "./harness.js";

let fake: FakeDiscord;
let harness: Harness;

async function begin(
  options: FakeDiscordOptions = {},
  ...rest: Parameters<typeof Harness.make> extends [unknown, ...infer R] ? R : never
): Promise<void> {
  fake = await FakeDiscord.start({ identifyEveryMs: 0, ...options });
  harness = await Harness.make(fake, ...rest);
}

afterEach(async () => {
  await harness.close();
  await fake.close();
});

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
const contents = () => harness.accepted.map(({ content }) => content);

describe("what only a person can mend", () => {
  it.each([
    [4013, "DISCORD_INTENTS", "Message Content Intent"],
    [4014, "DISCORD_INTENTS", "Message Content Intent"],
    [4004, "DISCORD_TOKEN_INVALID", "Reset Token"],
  ])("close code %i: said with what to do, and not tried again", async (code, error, advice) => {
    await begin();
    fake.gateway.refuseIdentifyWith = code;
    await expect(harness.start()).rejects.toMatchObject({ code: error });
    expect(harness.channel.health()).toMatchObject({
      state: "failed",
      isPermanent: true,
      advice: expect.stringContaining(advice),
    });
    expect(fake.gateway.identifies).toHaveLength(1);
  });

  it("the switch for message content that is off", async () => {
    await begin({ mayReadContent: false });
    await expect(harness.start()).rejects.toMatchObject({ code: "DISCORD_INTENTS" });
  });

  it("a token that was reset, at the start and while it runs", async () => {
    await begin();
    const { token } = fake;
    await harness.start();
    fake.resetToken();
    await fake.until(() => harness.channel.health().state === "failed");
    expect(harness.channel.health()).toMatchObject({ isPermanent: true });
    await harness.channel.stop();
    harness.create(token);
    await expect(harness.start()).rejects.toMatchObject({ code: "DISCORD_TOKEN_INVALID" });
    const said = harness.logText() + JSON.stringify(harness.channel.health());
    expect(said).not.toContain(token);
    expect(fake.gateway.identifies).toHaveLength(1);
  });

  it("a token of the wrong shape is refused before it is used, and not echoed", async () => {
    await begin();
    harness.create("not-a-token-at-all");
    const failed = await harness.start().catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: "DISCORD_TOKEN_INVALID" });
    expect(`${failed} ${JSON.stringify(harness.channel.health())}`).not.toContain("not-a-token");
    expect(fake.journal.entries).toEqual([]);
  });
});

describe("silence", () => {
  const patience = { ...PATIENCE, handshakeMs: 400, downMs: 1500, stallMs: 900, echoMs: 300 };
  const failed = () => fake.until(() => harness.channel.health().state === "failed");

  it("after a resume is a failure, and a new start finds what was missed", async () => {
    await begin({}, {}, { patience: { ...PATIENCE, handshakeMs: 400 } });
    await harness.start();
    const ann = fake.person("ann");
    ann.dm("1");
    await harness.arrived(1);
    fake.gateway.ignoreResumes(100);
    fake.gateway.kick(4000);
    ann.dm("2");
    await failed();
    await harness.restart();
    await harness.arrived(2);
    expect(contents()).toEqual(["1", "2"]);
    expect(harness.channel.health()).toEqual({ state: "running" });
  });

  it("of the gateway, which cannot be reached any more, is a failure", async () => {
    await begin({}, {}, { patience });
    await harness.start();
    fake.gateway.refuseConnects(1000);
    fake.gateway.kick(4000);
    await failed();
    expect(harness.channel.health()).toMatchObject({ problem: expect.stringContaining("none comes about") });
  });

  it("about messages that the bot sent is deafness", async () => {
    await begin({}, {}, { patience: { ...PATIENCE, echoMs: 300 } });
    const room = fake.text(fake.guild());
    await harness.start();
    await sendAll(harness.channel, answer(room, "heard"));
    fake.gateway.isDeaf = true;
    await sendAll(harness.channel, answer(room, "unheard", { id: "t2" }));
    await failed();
    expect(harness.channel.health()).toMatchObject({ problem: expect.stringContaining("tells it of none") });
  });

  it("of a quiet hour is none: heartbeats are answered", async () => {
    await begin({ heartbeatMs: 200 }, {}, { patience: { ...PATIENCE, stallMs: 900 } });
    await harness.start();
    await fake.until(() => fake.gateway.counts.heartbeats > 8);
    expect(harness.channel.health()).toEqual({ state: "running" });
  });
});

describe("a start that gets nowhere", () => {
  it("is a failure, so that it is tried anew, and leaves nothing running", async () => {
    await begin({}, {}, { patience: { ...PATIENCE, handshakeMs: 300 } });
    fake.gateway.isDeaf = true;
    await expect(harness.start()).rejects.toMatchObject({ code: "DISCORD_SILENT" });
    expect(harness.channel.health()).toMatchObject({ state: "failed", problem: expect.stringContaining("go on") });
    await fake.until(() => fake.gateway.connected === 0);
    fake.gateway.isDeaf = false;
    await harness.start();
    expect(harness.channel.health()).toEqual({ state: "running" });
    expect(fake.gateway.identifies).toHaveLength(2);
  });

  it("and greets nobody is one too; a greeting that comes too late is hung up on", async () => {
    const limit = { total: 1000, remaining: 1000, reset_after: 0, max_concurrency: 1 };
    const lines = new WebSocketServer({ noServer: true });
    const greetings: Array<() => void> = [];
    const hungUp = new Promise<number>((resolve) => {
      lines.on("connection", (line) => {
        line.on("close", resolve);
        line.send(JSON.stringify({ op: 10, d: { heartbeat_interval: 45_000 }, s: null, t: null }));
      });
    });
    const mute = createServer((_, response) => {
      const about = { url: `ws://127.0.0.1:${portOf(mute)}`, shards: 1, session_start_limit: limit };
      response.setHeader("content-type", "application/json").end(JSON.stringify(about));
    });
    mute.on("upgrade", (request, socket, head) =>
      greetings.push(() => lines.handleUpgrade(request, socket, head, (line) => lines.emit("connection", line))),
    );
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    await begin({}, { apiRoot: `http://127.0.0.1:${portOf(mute)}` }, { patience: { ...PATIENCE, downMs: 400 } });
    await expect(harness.start()).rejects.toMatchObject({ code: "DISCORD_SILENT" });
    expect(greetings).toHaveLength(1);
    for (const greet of greetings) greet();
    expect(await hungUp).toBe(1000);
    mute.close();
  });

  it("ends when the channel is stopped, and never connects afterwards", async () => {
    await begin();
    fake.gateway.isDeaf = true;
    const started = harness.start().catch((error: unknown) => error);
    await fake.until(() => fake.gateway.identifies.length === 1);
    await harness.channel.stop();
    expect(await started).toMatchObject({ code: "DISCORD_UNREACHABLE" });
    fake.gateway.isDeaf = false;
    const startedMs = performance.now();
    await fake.until(() => performance.now() - startedMs > 1200);
    expect([fake.gateway.connected, fake.gateway.counts.connects]).toEqual([0, 1]);
    expect(harness.channel.health()).toEqual({ state: "stopped" });
  });
});

describe("a channel that has stopped", () => {
  it("never connects again, also when it was stopped while it tried", async () => {
    await begin();
    await harness.start();
    fake.gateway.refuseConnects(3);
    fake.gateway.kick(4000);
    await fake.until(() => fake.gateway.counts.connects === 3);
    await harness.channel.stop();
    const { connects } = fake.gateway.counts;
    const startedMs = performance.now();
    await fake.until(() => performance.now() - startedMs > 1200);
    expect(fake.gateway.counts.connects).toBe(connects);
    expect(fake.gateway.connected).toBe(0);
    expect(harness.channel.health()).toEqual({ state: "stopped" });
  });

  it("that could not start has left nothing running", async () => {
    await begin();
    fake.gateway.refuseConnects(1);
    await expect(harness.start()).rejects.toMatchObject({ code: "DISCORD_UNREACHABLE" });
    const { connects } = fake.gateway.counts;
    const startedMs = performance.now();
    await fake.until(() => performance.now() - startedMs > 1200);
    expect(fake.gateway.counts.connects).toBe(connects);
    await harness.start();
    expect(harness.channel.health()).toEqual({ state: "running" });
  });
});

describe("the account of identifies", () => {
  it("refuses to start when Discord's own is nearly used up", async () => {
    await begin({ identifyBudget: 40 });
    for (let n = 0; n < 38; n += 1) fake.gateway.identifies.push(0);
    await expect(harness.start()).rejects.toMatchObject({ code: "DISCORD_IDENTIFY_LIMIT" });
    expect(harness.channel.health()).toMatchObject({ state: "failed", advice: expect.stringContaining("by itself") });
  });

  it("is asked again before a later one, and kept: no identify more", async () => {
    await begin({ identifyBudget: 40 });
    await harness.start();
    for (let n = 0; n < 37; n += 1) fake.gateway.identifies.push(0);
    fake.gateway.invalidate(false);
    await fake.until(() => harness.channel.health().state === "failed");
    expect(harness.channel.health()).toMatchObject({ advice: expect.stringContaining("by itself") });
    const { connects } = fake.gateway.counts;
    const startedMs = performance.now();
    await fake.until(() => performance.now() - startedMs > 1200);
    expect([fake.gateway.counts.connects, fake.gateway.identifies.length]).toEqual([connects, 38]);
  });

  it("ends a loop of invalid sessions with a failure, over restarts", async () => {
    await begin({}, {}, { identify: { burst: 3, everyMs: 3_600_000, spacingMs: 0 } });
    await harness.start();
    for (let n = 2; n <= 3; n += 1) {
      fake.gateway.invalidate(false);
      await fake.until(() => fake.gateway.identifies.length === n && fake.gateway.connected === 1);
    }
    fake.gateway.invalidate(false);
    await fake.until(() => harness.channel.health().state === "failed");
    await harness.channel.stop();
    harness.create();
    await expect(harness.start()).rejects.toMatchObject({ code: "DISCORD_IDENTIFY_LIMIT" });
    expect(fake.gateway.identifies).toHaveLength(3);
  });
});

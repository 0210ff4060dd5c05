/** The gateway of the fake Discord, asked by a bare WebSocket: whoever breaks the protocol is closed out with Discord's code. */
import { afterEach, expect, it } from "vitest";
import { WebSocket } from "ws";
import { FakeDiscord, type FakeDiscordOptions } from "../../fakes/discord/fake-discord.js";

let fake: FakeDiscord;
afterEach(() => fake.close());

interface Payload {
  op: number;
  t: string | null;
  s: number | null;
  d: Record<string, unknown>;
}

/** A line to the gateway, with everything that came over it. */
class Line {
  readonly got: Payload[] = [];
  readonly closed: Promise<number>;
  readonly #socket: WebSocket;

  constructor(url: string) {
    this.#socket = new WebSocket(url);
    this.#socket.on("message", (data) => this.got.push(JSON.parse(String(data)) as Payload));
    this.closed = new Promise((resolve) => this.#socket.on("close", (code) => resolve(code)));
  }

  send(payload: unknown): void {
    this.#socket.send(typeof payload === "string" ? payload : JSON.stringify(payload));
  }

  /** The first payload of this kind, once it is there. */
  until(op: number, t: string | null = null): Promise<Payload> {
    return fake.until(() => this.got.find((each) => each.op === op && (t === null || each.t === t)));
  }
}

async function line(options: FakeDiscordOptions = {}, query = "v=10&encoding=json"): Promise<Line> {
  fake = await FakeDiscord.start(options);
  return dial(query);
}

async function dial(query = "v=10&encoding=json"): Promise<Line> {
  const opened = new Line(`${fake.origin.replace("http", "ws")}/gateway?${query}`);
  await Promise.race([opened.until(10), opened.closed]);
  return opened;
}

const identify = (more: Record<string, unknown> = {}) => ({
  op: 2,
  d: { token: fake.token, intents: 1 | (1 << 9) | (1 << 12), properties: {}, ...more },
});

async function ready(options: FakeDiscordOptions = {}): Promise<Line> {
  const opened = await line(options);
  opened.send(identify());
  await opened.until(0, "READY");
  return opened;
}

it.each([
  ["no JSON", "{", 4002],
  ["more than 4096 bytes", { op: 2, d: "a".repeat(5000) }, 4002],
  ["an opcode that does not exist", { op: 99 }, 4001],
  ["a presence before identify", { op: 3, d: {} }, 4003],
  ["a wrong token", { op: 2, d: { token: "no", intents: 0 } }, 4004],
])("%s", async (_, payload, code) => {
  const opened = await line();
  opened.send(payload);
  expect(await opened.closed).toBe(code);
});

it.each([
  ["v=9&encoding=json", 4012],
  ["v=10&encoding=etf", 4002],
])("connected with %s", async (query, code) => {
  const opened = await line({}, query);
  expect(await opened.closed).toBe(code);
});

it("intents that do not exist, and intents that are not allowed", async () => {
  const odd = await line({ mayReadContent: false });
  odd.send(identify({ intents: 1 << 30 }));
  expect(await odd.closed).toBe(4013);
  const privileged = await dial();
  privileged.send(identify({ intents: 1 << 15 }));
  expect(await privileged.closed).toBe(4014);
});

it("identified twice, too many payloads, no heartbeat", async () => {
  const twice = await ready({ identifyEveryMs: 0, heartbeatMs: 20 });
  twice.send(identify());
  expect(await twice.closed).toBe(4005);
  const busy = await dial();
  busy.send(identify());
  for (let n = 0; n < 120; n += 1) busy.send({ op: 3, d: {} });
  expect(await busy.closed).toBe(4008);
  const silent = await dial();
  expect(await silent.closed).toBe(4009);
});

it("a resume with a number that was never sent, and one of a session nobody knows", async () => {
  const first = await ready();
  const { session_id } = (await first.until(0, "READY")).d;
  const ahead = await dial();
  ahead.send({ op: 6, d: { token: fake.token, session_id, seq: 99 } });
  expect(await ahead.closed).toBe(4007);
  const stranger = await dial();
  stranger.send({ op: 6, d: { token: fake.token, session_id: "no", seq: 1 } });
  expect((await stranger.until(9)).d).toBe(false);
});

it("a session that was left too long cannot be resumed", async () => {
  const first = await ready({ resumeWithinMs: -1 });
  const { session_id } = (await first.until(0, "READY")).d;
  fake.gateway.cut();
  await first.closed;
  const late = await dial();
  late.send({ op: 6, d: { token: fake.token, session_id, seq: 1 } });
  expect((await late.until(9)).d).toBe(false);
});

it("numbers grow by one; only what the intents cover is told", async () => {
  const opened = await ready();
  const general = fake.text(fake.guild());
  const alice = fake.person("alice");
  alice.dm("private");
  alice.says(general, `${fake.mention} open`);
  fake.world.tell({ t: "TYPING_START", d: {}, intents: 1 << 11 });
  alice.says(general, "last");
  await fake.until(() => opened.got.filter(({ t }) => t === "MESSAGE_CREATE").length === 3);
  expect(opened.got.slice(1).map(({ s }) => s)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(opened.got.map(({ t }) => t)).not.toContain("TYPING_START");
  const [direct, open, last] = opened.got.filter(({ t }) => t === "MESSAGE_CREATE").map(({ d }) => d);
  expect(direct).toMatchObject({ channel_type: 1, content: "private" });
  expect(direct).not.toHaveProperty("guild_id");
  expect(open).toMatchObject({ guild_id: general.guild?.id, content: `${fake.mention} open`, member: {} });
  expect(last).toMatchObject({ content: "" });
});

it("an identify too soon after another is an invalid session, and is noted", async () => {
  await ready({ identifyEveryMs: 60_000 });
  const hasty = await dial();
  hasty.send(identify());
  expect((await hasty.until(9)).d).toBe(false);
  expect(fake.gateway.hasty).toHaveLength(1);
});

it("a budget that is burnt costs the token", async () => {
  const first = await ready({ identifyEveryMs: 0, identifyBudget: 1 });
  const second = await dial();
  second.send(identify());
  expect(await second.closed).toBe(4004);
  expect(await first.closed).toBe(4004);
  expect(() => fake.token).toThrow("reset");
});

/** Redis fails under running gateways: what was acknowledged is answered once and in order, and all goes on by itself. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, expect, it } from "vitest";
import { until } from "../support/bus-fixture.js";
import { Client, type WireEvent } from "./support/client.js";
import { historyFaults } from "./support/history.js";
import { type GatewayProcess, Stage } from "./support/stage.js";
import { wireFaults } from "./support/wire.js";

let stage: Stage;
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  await stage.close();
});

const EACH_ITS_TURN = { agent: { model: "peer/m", queueMode: "followup" } };

async function connected(gateway: GatewayProcess, chat = "c1"): Promise<Client> {
  const client = new Client(chat);
  clients.push(client);
  await client.connect(await gateway.url("alice"));
  return client;
}

/** What is in a chat's log now, as a client sees it that has nothing yet. */
async function log(gateway: GatewayProcess, lastId: string): Promise<Client> {
  const reader = await connected(gateway);
  await reader.end(lastId);
  return reader;
}

interface Asked {
  status: number;
  problems: Array<{ part: string; problem: string; advice: string }>;
}

async function ask(port: number, route: "/healthz" | "/readyz"): Promise<Asked> {
  const response = await fetch(`http://127.0.0.1:${port}${route}`);
  const { problems = [] } = (await response.json()) as Partial<Asked>;
  return { status: response.status, problems };
}

const becomes = (port: number, status: number) => until(async () => (await ask(port, "/readyz")).status === status);

const errorOf = (client: Client, id: string): Promise<WireEvent> =>
  client.until(() => client.replies.find((each) => each.event === "error" && each.id === id));

it("killed and restarted, twice, while messages flow", async () => {
  stage = await Stage.open(EACH_ITS_TURN);
  const door = await stage.gateway({ role: "channels" });
  const worker = await stage.gateway({ role: "worker" });
  const client = await connected(door);
  const ids = Array.from({ length: 30 }, (_, n) => `m${n}`);
  for (const id of ids) {
    if (id === "m10" || id === "m20") {
      await stage.redis.kill();
      client.post(`text ${id}`, id);
      await stage.redis.up();
    } else await client.say(`text ${id}`, id);
  }
  await client.end("m29");
  expect(client.answers).toEqual(ids.map((id) => `re: text ${id}`));
  expect(client.faults).toEqual([]);
  expect(wireFaults(client.events)).toEqual([]);
  expect(historyFaults(await stage.rows("websocket:c1"))).toEqual([]);
  const epochs = client.replies.flatMap(({ event, epoch }) => (event === "attached" && epoch ? [epoch] : []));
  const later = await log(door, "m29");
  expect(later.replies.find(({ event }) => event === "attached")?.epoch).toBeGreaterThan(epochs[0] ?? 0);
  await becomes(await worker.ready, 200);
});

it.each(["replaced by an older copy", "cut to what it was"])(
  "%s: nothing is asked again, nothing told twice",
  async (how) => {
    stage = await Stage.open(EACH_ITS_TURN);
    const gateway = await stage.gateway();
    const client = await connected(gateway);
    await client.say("first", "m1");
    await client.end("m1");
    await stage.redis.keep();
    const bytes = await stage.redis.logBytes();
    await client.say("second", "m2");
    await client.end("m2");
    const gone = await log(gateway, "m2");
    gone.disconnect();
    const release = stage.model.hold("third");
    const arrived = stage.model.arrival("third");
    await client.say("third", "m3");
    await client.say("fourth", "m4");
    await arrived;
    await (how === "cut to what it was" ? stage.redis.cutLog(bytes) : stage.redis.rollBack());
    await stage.redis.up();
    release();
    await client.until(() => client.replies.some(({ event }) => event === "resync"));
    await gone.connect(await gateway.url("alice"));
    expect(gone.replies.some(({ event }) => event === "resync")).toBe(true);
    await gone.end("m4");
    const reader = await log(gateway, "m4");
    expect(reader.answers).toEqual(["re: first", "re: second", "re: third", "re: fourth"]);
    expect(wireFaults(reader.events)).toEqual([]);
    expect([...reader.faults, ...client.faults, ...gone.faults]).toEqual([]);
    expect(stage.model.asked("first")).toBe(1);
    expect(stage.model.asked("second")).toBe(1);
    expect(stage.model.asked("fourth")).toBe(1);
    expect(historyFaults(await stage.rows("websocket:c1"))).toEqual([]);
  },
);

it("frozen for longer than the lease: the turn is given up, taken up again, and answered once", async () => {
  stage = await Stage.open();
  const gateway = await stage.gateway();
  const client = await connected(gateway);
  const release = stage.model.hold("slow");
  const arrived = stage.model.arrival("slow");
  await client.say("slow", "m1");
  await arrived;
  stage.redis.freeze();
  await gateway.logged("a session was taken over by another process");
  stage.redis.thaw();
  release();
  await client.end("m1");
  await client.say("after", "m2");
  await client.end("m2");
  expect(client.answers).toEqual(["re: slow", "re: after"]);
  expect(wireFaults(client.events)).toEqual([]);
  expect(client.faults).toEqual([]);
  expect(stage.model.asked("slow")).toBe(2);
  expect(historyFaults(await stage.rows("websocket:c1"))).toEqual([]);
});

it("away for longer than the deadline: told so, nothing stored, and all goes on when it is back", async () => {
  stage = await Stage.open();
  const gateway = await stage.gateway();
  const port = await gateway.ready;
  const client = await connected(gateway);
  await becomes(port, 200);
  await stage.redis.kill();
  const late = new Client("c2");
  clients.push(late);
  void late.connect(await gateway.url("bob")).catch(() => "it is told below");
  client.post("lost", "m1");
  await late.until(() => late.isConnected);
  late.post("lost too", "m2");
  const { status, problems } = await until(async () => {
    const asked = await ask(port, "/readyz");
    return asked.status === 503 && asked;
  });
  expect(status).toBe(503);
  expect(problems).toMatchObject([{ part: "redis", problem: "Redis does not answer." }]);
  expect((await ask(port, "/healthz")).status).toBe(200);
  expect(await errorOf(client, "m1")).toMatchObject({ code: "unavailable", chat_id: "c1" });
  expect(await errorOf(late, "m2")).toMatchObject({ code: "unavailable", chat_id: "c2" });
  expect(client.isConnected && late.isConnected).toBe(true);
  await stage.redis.up();
  await becomes(port, 200);
  await Promise.all([client.say("again", "m3"), late.say("lost too", "m2")]);
  await Promise.all([client.end("m3"), late.end("m2")]);
  expect(client.answers).toEqual(["re: again"]);
  expect(late.answers).toEqual(["re: lost too"]);
  expect(stage.model.asked("lost")).toBe(1);
});

it("not there yet: healthy, not ready and why; ready once it is started", async () => {
  stage = await Stage.open();
  await stage.redis.kill();
  const gateway = stage.spawn();
  await gateway.logged("listening at http");
  const port = Number(/listening at http:\/\/127\.0\.0\.1:(\d+)/.exec(gateway.log)?.[1]);
  expect((await ask(port, "/healthz")).status).toBe(200);
  const { status, problems } = await ask(port, "/readyz");
  expect(status).toBe(503);
  expect(problems).toMatchObject([{ part: "redis" }]);
  await stage.redis.up();
  await gateway.ready;
  await becomes(port, 200);
  const client = await connected(gateway);
  await client.say("hello", "m1");
  await client.end("m1");
});

it("memory full: new messages are refused, what waits is worked off, and all goes on afterwards", async () => {
  stage = await Stage.open(EACH_ITS_TURN);
  const gateway = await stage.gateway();
  const client = await connected(gateway);
  const other = await connected(gateway, "c2");
  const release = stage.model.hold("one");
  await client.say("one", "m1");
  await client.say("two", "m2");
  const raw = stage.redis.client();
  await raw.config("SET", "maxmemory", "100kb");
  other.post("new", "m3");
  expect(await errorOf(other, "m3")).toMatchObject({ code: "overloaded", chat_id: "c2" });
  release();
  await client.end("m2");
  expect(client.answers).toEqual(["re: one", "re: two"]);
  await raw.config("SET", "maxmemory", "0");
  raw.disconnect();
  await until(() => other.say("new", "m3").catch(() => null));
  await other.end("m3");
  expect(other.answers).toEqual(["re: new"]);
});

it("stops in order although Redis is away", async () => {
  stage = await Stage.open();
  const gateway = await stage.gateway();
  const client = await connected(gateway);
  const arrived = stage.model.arrival("held");
  stage.model.hold("held");
  await client.say("held", "m1");
  await arrived;
  await stage.redis.kill();
  await gateway.logged("Redis is not reachable");
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});

it("the embedded server killed: it is started again, nothing is lost, and the last to leave takes it along", async () => {
  stage = await Stage.open({ ...EACH_ITS_TURN, redis: { url: null } });
  const pidOf = async () => Number(await readFile(path.join(stage.home, "redis", "redis.pid"), "utf8"));
  const gateway = await stage.gateway();
  const client = await connected(gateway);
  const ids = Array.from({ length: 12 }, (_, n) => `m${n}`);
  const first = await pidOf();
  try {
    for (const id of ids) {
      if (id === "m6") process.kill(await pidOf(), "SIGKILL");
      await client.say(`text ${id}`, id);
    }
    await client.end("m11");
    expect(client.answers).toEqual(ids.map((id) => `re: text ${id}`));
    expect(wireFaults(client.events)).toEqual([]);
    expect(await pidOf()).not.toBe(first);
    await becomes(await gateway.ready, 200);
  } finally {
    client.disconnect();
    await gateway.stop();
  }
  await expect(pidOf()).rejects.toMatchObject({ code: "ENOENT" });
});

/** Connections that come late, break, or fall silent; and what the server is asked when it is met. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, it } from "vitest";
import { createLogger } from "../../src/logger.js";
import { createKeys } from "../../src/redis/keys.js";
import { isOutage } from "../../src/redis/outage.js";
import {
  type BusFixture,
  createBusFixture,
  inbound,
  LEASE_MS,
  outboxRoute,
  PLAIN,
  until,
} from "../support/bus-fixture.js";
import { startFakeRedis } from "../support/fake-redis.js";
import { RedisProxy } from "../support/redis-proxy.js";
import { TestRedis } from "../support/redis-server.js";
import { keyOf, messageIn, open, settle } from "../support/session-steps.js";

const ends: Array<() => Promise<void>> = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function server(args: readonly string[] = []): Promise<TestRedis> {
  const redis = await TestRedis.start(args);
  ends.push(() => redis.stop());
  return redis;
}

async function fixture(...given: Parameters<typeof createBusFixture>): Promise<BusFixture> {
  const f = await createBusFixture(...given);
  ends.push(() => f.close());
  return f;
}

function recorder() {
  const lines: string[] = [];
  const logger = createLogger({ level: "debug", secrets: [], destination: { write: (line) => lines.push(line) } });
  const logged = (level: number, text: string) =>
    lines.filter((line) => line.includes(`"level":${level}`) && line.includes(text));
  return { logger, logged };
}

it("an old server is refused", async () => {
  const fake = await startFakeRedis("# Server\r\nredis_version:6.2.0\r\nrun_id:abc\r\nloading:0\r\n");
  ends.push(() => fake.stop());
  await expect(createBusFixture(fake.address)).rejects.toMatchObject({ code: "REDIS_TOO_OLD" });
});

it("a server that may evict keys is used, with one warning", async () => {
  const redis = await server(["--maxmemory-policy", "allkeys-lru"]);
  const { logger, logged } = recorder();
  await fixture(redis.address, { logger });
  await redis.kill();
  await redis.up();
  await until(() => logged(40, "Redis was restarted").length > 0);
  expect(logged(40, "may evict keys")).toHaveLength(1);
});

it("a server that is not there yet is waited for, and the operator is told once", async () => {
  const redis = await TestRedis.prepare();
  ends.push(() => redis.stop());
  const { logger, logged } = recorder();
  const connecting = fixture(redis.address, { logger });
  await until(() => logged(20, "not reachable").length > 3);
  await redis.up();
  await connecting;
  expect(logged(40, "not reachable")).toHaveLength(1);
  expect(logged(30, "reached again")).toHaveLength(1);
});

it("away for longer than the deadline: refused, nothing stored, and it goes on afterwards", async () => {
  const redis = await server();
  const f = await fixture(redis.address, { deadlineMs: 300 });
  await redis.kill();
  const lost = messageIn("c", "lost");
  await expect(f.bus.publishInbound(lost, PLAIN)).rejects.toMatchObject({ code: "BUS_UNAVAILABLE" });
  await expect(f.stack.chatEvents.follow("web", "c", () => {})).rejects.toMatchObject({ code: "BUS_UNAVAILABLE" });
  await expect(f.stack.ready.waits({ key: keyOf("c"), wake: 1, delayMs: 0 })).rejects.toMatchObject({
    code: "BUS_UNAVAILABLE",
  });
  await redis.up();
  await until(() => f.stack.client.isReady);
  expect(await f.bus.peek(keyOf("c"))).toBeNull();
  expect((await f.bus.publishInbound(lost, PLAIN)).status).toBe("stored");
});

it("who waits is told in time, also when memory was collected meanwhile", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const redis = await server();
  const f = await fixture(redis.address, { deadlineMs: 300 });
  await redis.kill();
  await until(() => !f.stack.client.isReady);
  const waiting = [f.bus.peek(keyOf("c")), f.stack.signals.onHint(() => {})].map((each) =>
    each.catch((error) => error),
  );
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ code: "BUS_UNAVAILABLE" });
});

it("listening goes on after the server was away, also for who began while it was", async () => {
  const redis = await server();
  const f = await fixture(redis.address);
  const heard: string[] = [];
  await f.stack.signals.onLive("a", (message) => heard.push(`a ${message.content}`));
  let reconnects = 0;
  f.stack.chatEvents.onReconnect(() => {
    reconnects += 1;
  });
  await redis.kill();
  const late = f.stack.signals.onLive("account:bot", (message) => heard.push(`bot ${message.content}`));
  await redis.up();
  const stop = await late;
  await until(() => reconnects > 0);
  const say = (id: string) => {
    const event = { type: "delta" as const, streamId: "s", offset: 0 };
    const route = outboxRoute("c");
    const message = { id, channel: "chat", chatId: "c", content: id, media: [], buttons: [], event };
    return f.bus.reply([{ route, message: { ...message, turnId: "t", seq: 0, metadata: {} } }]);
  };
  await say("one");
  await until(() => heard.length > 0);
  await stop();
  await say("two");
  const again = await f.stack.signals.onLive("account:bot", (message) => heard.push(`again ${message.content}`));
  await say("three");
  await until(() => heard.length > 1);
  expect(heard).toEqual(["bot one", "again three"]);
  await again();
});

it("a network that swallows everything without a word: connections are given up and made anew", async () => {
  const redis = await server();
  const proxy = await RedisProxy.start(redis.address.socketPath);
  ends.push(() => proxy.stop());
  const f = await fixture(proxy.address, { deadlineMs: 400 });
  await f.bus.publishInbound(messageIn("c", "before"), PLAIN);
  proxy.stall();
  await expect(f.bus.publishInbound(messageIn("c", "during"), PLAIN)).rejects.toMatchObject({
    code: "BUS_UNAVAILABLE",
  });
  await until(() => f.bus.publishInbound(messageIn("c", "after"), PLAIN).catch(() => null));
  expect((await open(f, "c")).next?.message.message.content).toBe("before");
});

it("a queue whose network swallows everything holds no acknowledgement up", async () => {
  const redis = await server();
  const proxy = await RedisProxy.start(redis.address.socketPath);
  ends.push(() => proxy.stop());
  const f = await fixture(proxy.address, { deadlineMs: 300 });
  proxy.stall();
  const message = messageIn("c", "one");
  await until(() => f.bus.publishInbound(message, PLAIN).catch(() => null));
  const wake = await f.bus.peek(keyOf("c"));
  if (wake === null) throw new Error("not scheduled");
  await until(() =>
    f.stack.ready.add(wake).then(
      () => true,
      () => null,
    ),
  );
});

it("a frozen server keeps no caller beyond its deadline", async () => {
  const redis = await server();
  const f = await fixture(redis.address, { deadlineMs: 2000 });
  redis.freeze();
  const askedMs = performance.now();
  await expect(f.stack.upkeep.depths()).rejects.toMatchObject({ code: "BUS_UNAVAILABLE" });
  // Upkeep waits for the length of a lease.
  expect(performance.now() - askedMs).toBeLessThan(LEASE_MS + 700);
  redis.thaw();
});

it("leases that ended while the server stood still count no try", async () => {
  const redis = await server();
  const f = await fixture(redis.address);
  await f.bus.publishInbound(messageIn("c", "one"), PLAIN);
  await f.stack.upkeep.reap();
  // As if it had been started a minute ago: after a start, too, nothing is counted.
  const raw = redis.client();
  await raw.hset(createKeys(f.prefix, "ws").of("boot"), "n", Date.now() - 60_000);
  raw.disconnect();
  await open(f, "c");
  redis.freeze();
  await new Promise((resolve) => setTimeout(resolve, LEASE_MS + 100));
  redis.thaw();
  await until(async () => (await f.stack.upkeep.reap()).length > 0);
  expect((await open(f, "c")).attempts).toBe(0);
});

it.each(["restarted", "restarted empty"])(
  "a consumer fetches again after the server was %s, time and again",
  async (how) => {
    const redis = await server();
    const f = await fixture(redis.address);
    const done: string[] = [];
    const worker = await f.stack.ready.consume(2, async (key, wake) => {
      const chat = key.slice("web:".length);
      await f.lock.withLease(key, { wake }, async ({ claim, left }) => {
        await settle(f, chat, claim);
        left();
        done.push(chat);
      });
    });
    ends.push(() => worker.close());
    // A job that met a queue without a connection is added by the sweep; one that waits is for the consumer to fetch.
    const isDone = async (chat: string) => {
      const wakes = await f.stack.upkeep.sweep((wake) => f.stack.ready.waits(wake)).catch(() => []);
      await f.bus.schedule(wakes);
      return done.includes(chat);
    };
    for (let round = 1; round <= 3; round += 1) {
      await f.bus.publishInbound(messageIn(`${round}`, "x"), PLAIN);
      await until(() => isDone(`${round}`));
      await (how === "restarted" ? redis.kill() : redis.wipe());
      await redis.up();
    }
    await f.bus.publishInbound(messageIn("last", "x"), PLAIN);
    await until(() => isDone("last"));
    expect(worker.isRunning()).toBe(true);
  },
);

it("closes in time although the server is away", async () => {
  const redis = await server();
  const f = await createBusFixture(redis.address);
  const worker = await f.stack.ready.consume(2, async () => {});
  await redis.kill();
  await until(() => !f.stack.client.isReady);
  const waiting = expect(f.bus.publishInbound(inbound("x"), PLAIN)).rejects.toMatchObject({ code: "BUS_UNAVAILABLE" });
  const startedMs = performance.now();
  await worker.close();
  await Promise.all([f.close(), waiting]);
  expect(performance.now() - startedMs).toBeLessThan(5000);
});

it("tells an outage from a fault of the command", () => {
  const outages = ["LOADING Redis is loading", "MISCONF Errors writing to the AOF file", "connect ECONNREFUSED /x"];
  for (const text of [...outages, "Socket timeout. Expecting data", "READONLY You can't write"])
    expect(isOutage(new Error(text)), text).toBe(true);
  for (const text of ["WRONGTYPE Operation", "ERR unknown command", "OOM command not allowed", "NOSCRIPT No"])
    expect(isOutage(new Error(text)), text).toBe(false);
});

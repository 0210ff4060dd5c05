/** Limits and an account's memory over a real Redis: exact windows whatever is asked and when, waits that are kept, outages. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RateLimit } from "../../src/channels/ports.js";
import { createKeys } from "../../src/redis/keys.js";
import { type BusFixture, createBusFixture } from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";

let redis: TestRedis;
let one: BusFixture;
let two: BusFixture;
let raw: ReturnType<TestRedis["client"]>;
beforeAll(async () => {
  redis = await TestRedis.start();
  one = await createBusFixture(redis.address, { deadlineMs: 500 });
  two = await createBusFixture(redis.address, { prefix: one.prefix });
  raw = redis.client();
});
afterAll(async () => {
  raw.disconnect();
  await two.close();
  await one.close();
  await redis.stop();
});

let accounts = 0;
function freshAccount(): string {
  accounts += 1;
  return `bot:${accounts}`;
}
const limit = (bucket: string, count: number, perMs: number, cost = 1): RateLimit => ({ bucket, count, perMs, cost });
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const windowOf = (account: string, { bucket, perMs }: RateLimit) =>
  createKeys(one.prefix, "ws").of("limit", JSON.stringify([account, bucket, perMs]));

/** When the calls that a window holds were let through, by the server's clock, µs. */
async function callsIn(account: string, each: RateLimit): Promise<number[]> {
  const rows = await raw.zrange(windowOf(account, each), "0", "-1", "WITHSCORES");
  return rows.filter((_, at) => at % 2 === 1).map(Number);
}

/** The most calls that lie within any `perMs`. */
function mostWithin(calls: readonly number[], perMs: number): number {
  const sorted = [...calls].sort((a, b) => a - b);
  return Math.max(0, ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + perMs * 1_000).length));
}

describe("a limit", () => {
  it("lets as many through as it says and then names the wait, which is enough", async () => {
    const account = freshAccount();
    const chat = limit("chat", 3, 500);
    for (let i = 0; i < 3; i += 1) expect(await one.stack.limiter.take(account, [chat])).toEqual({ waitMs: 0 });
    const refused = await two.stack.limiter.take(account, [chat]);
    expect(refused).toEqual({ waitMs: expect.any(Number), bucket: "chat" });
    expect(refused.waitMs).toBeGreaterThan(0);
    expect(refused.waitMs).toBeLessThanOrEqual(500);
    await pause(refused.waitMs + 1);
    expect(await two.stack.limiter.take(account, [chat])).toEqual({ waitMs: 0 });
  });

  it("is taken with all others or not at all, and the longest wait is named", async () => {
    const account = freshAccount();
    const [wide, narrow] = [limit("bot", 30, 1_000), limit("chat", 1, 60_000)];
    await one.stack.limiter.take(account, [wide, narrow]);
    const refused = await one.stack.limiter.take(account, [wide, narrow]);
    expect(refused).toMatchObject({ bucket: "chat" });
    expect(refused.waitMs).toBeGreaterThan(59_000);
    expect(await callsIn(account, wide)).toHaveLength(1);
  });

  it("is an account's own", async () => {
    const chat = limit("chat", 1, 60_000);
    for (const account of [freshAccount(), freshAccount()]) {
      expect(await one.stack.limiter.take(account, [chat])).toEqual({ waitMs: 0 });
    }
  });

  it("counts a dear call for what it costs, and one that costs more than all there is for all there is", async () => {
    const account = freshAccount();
    const dear = limit("bot", 10, 60_000, 8);
    await one.stack.limiter.take(account, [dear]);
    expect(await one.stack.limiter.take(account, [{ ...dear, cost: 2 }])).toEqual({ waitMs: 0 });
    expect(await one.stack.limiter.take(account, [{ ...dear, cost: 1 }])).toMatchObject({ bucket: "bot" });
    const other = freshAccount();
    expect(await one.stack.limiter.take(other, [{ ...dear, cost: 99 }])).toEqual({ waitMs: 0 });
    expect(await one.stack.limiter.take(other, [{ ...dear, cost: 1 }])).toMatchObject({ bucket: "bot" });
  });

  it("names a wait that is enough also for a dear call", async () => {
    const account = freshAccount();
    const each = limit("bot", 3, 600);
    for (let i = 0; i < 3; i += 1) {
      await one.stack.limiter.take(account, [each]);
      await pause(20);
    }
    const { waitMs } = await one.stack.limiter.take(account, [{ ...each, cost: 3 }]);
    await pause(waitMs + 1);
    expect(await one.stack.limiter.take(account, [{ ...each, cost: 3 }])).toEqual({ waitMs: 0 });
  });

  it("leaves nothing behind when its time is over", async () => {
    const account = freshAccount();
    const each = limit("bot", 30, 40);
    await one.stack.limiter.take(account, [each]);
    await one.stack.limiter.park(account, "bot", 40);
    await pause(120);
    expect(await raw.exists(windowOf(account, each))).toBe(0);
    expect(await raw.keys(`*rl*${account}*`)).toEqual([]);
  });

  it("is parked for as long as the platform asked, for every process, and a shorter wait ends no longer one", async () => {
    const account = freshAccount();
    const each = limit("chat", 30, 1_000);
    await one.stack.limiter.park(account, "chat", 5_000);
    await two.stack.limiter.park(account, "chat", 1_000);
    const refused = await two.stack.limiter.take(account, [limit("bot", 30, 1_000), each]);
    expect(refused).toMatchObject({ bucket: "chat" });
    expect(refused.waitMs).toBeGreaterThan(4_000);
    expect(await two.stack.limiter.take(account, [limit("bot", 30, 1_000)])).toEqual({ waitMs: 0 });
  });

  it("is never exceeded in any window, whoever asks for what and when", async () => {
    const step = fc.record({
      restMs: fc.integer({ min: 0, max: 12 }),
      cost: fc.integer({ min: 1, max: 3 }),
      at: fc.boolean(),
    });
    const shape = fc.record({ count: fc.integer({ min: 1, max: 5 }), perMs: fc.integer({ min: 5, max: 40 }) });
    await fc.assert(
      fc.asyncProperty(shape, fc.array(step, { minLength: 5, maxLength: 25 }), async ({ count, perMs }, steps) => {
        const account = freshAccount();
        // A wide window beside it keeps all calls with their times.
        const wide = limit("bot", 1_000, 60_000);
        let taken = 0;
        for (const { restMs, cost, at } of steps) {
          if (restMs > 3) await pause(restMs);
          const each = Math.min(cost, count);
          const asked = [limit("chat", count, perMs, each), { ...wide, cost: each }];
          const { waitMs } = await (at ? one : two).stack.limiter.take(account, asked);
          expect(waitMs).toBeLessThanOrEqual(perMs);
          if (waitMs === 0) taken += each;
        }
        const calls = await callsIn(account, wide);
        expect(calls).toHaveLength(taken);
        expect(mostWithin(calls, perMs)).toBeLessThanOrEqual(count);
      }),
      { numRuns: 30 },
    );
  }, 60_000);

  it("lets nobody wait longer than needed: until the oldest call that is in the way has left the window", async () => {
    const account = freshAccount();
    const each = limit("bot", 3, 60_000);
    const serverUs = async () => {
      const [seconds, micros] = await raw.time();
      return Number(seconds) * 1e6 + Number(micros);
    };
    for (let i = 0; i < 3; i += 1) {
      await one.stack.limiter.take(account, [each]);
      await pause(15);
    }
    const calls = await callsIn(account, each);
    for (const cost of [1, 2, 3]) {
      const fromUs = await serverUs();
      const { waitMs } = await one.stack.limiter.take(account, [{ ...each, cost }]);
      const untilUs = await serverUs();
      const freeUs = (calls[cost - 1] ?? 0) + 60_000_000;
      expect(waitMs).toBeGreaterThanOrEqual((freeUs - untilUs) / 1_000);
      expect(waitMs).toBeLessThanOrEqual(Math.ceil((freeUs - fromUs) / 1_000));
    }
  });
});

describe("an account's memory", () => {
  it("is the same for every process, by name and by prefix, until it is forgotten", async () => {
    const account = freshAccount();
    const [mine, theirs] = [one.stack.accountMemory(account), two.stack.accountMemory(account)];
    expect(await mine.get("offset")).toBeNull();
    await mine.set("offset", "17");
    await mine.set("seen:1", "a");
    await theirs.set("seen:2", "b");
    expect(await theirs.get("offset")).toBe("17");
    expect(await mine.list("seen:")).toEqual(
      new Map([
        ["seen:1", "a"],
        ["seen:2", "b"],
      ]),
    );
    await theirs.forget("seen:1");
    expect([...(await mine.list("seen:")).keys()]).toEqual(["seen:2"]);
    expect(await one.stack.accountMemory(freshAccount()).list("")).toEqual(new Map());
  });

  it("is no empty one while Redis is away, and limits let nothing through", async () => {
    const account = freshAccount();
    const memory = one.stack.accountMemory(account);
    await memory.set("offset", "17");
    raw.disconnect();
    await redis.kill();
    for (const asked of [
      () => memory.get("offset"),
      () => memory.list(""),
      () => memory.set("offset", "18"),
      () => one.stack.limiter.take(account, [limit("bot", 1, 1_000)]),
      () => one.stack.limiter.park(account, "bot", 1_000),
    ]) {
      await expect(asked()).rejects.toMatchObject({ code: "BUS_UNAVAILABLE" });
    }
    await redis.up();
    raw = redis.client();
    expect(await memory.get("offset")).toBe("17");
  }, 30_000);
});

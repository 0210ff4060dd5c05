/** What other bots may say, over a real Redis: a sliding window that two processes share. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { BotSpending } from "../../src/channels/ports.js";
import { createKeys } from "../../src/redis/keys.js";
import { type BusFixture, createBusFixture, until } from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";

let redis: TestRedis;
const open: BusFixture[] = [];
beforeAll(async () => {
  redis = await TestRedis.start();
});
afterEach(async () => {
  for (const fixture of open.splice(0)) await fixture.close();
});
afterAll(() => redis.stop());

async function budgets() {
  const one = await createBusFixture(redis.address);
  const two = await createBusFixture(redis.address, { prefix: one.prefix });
  open.push(one, two);
  return [one.stack.botBudget, two.stack.botBudget, createKeys(one.prefix, "ws")] as const;
}

const spending = (messageId: string, more: Partial<BotSpending> = {}): BotSpending => ({
  ...{ channel: "chat", chatId: "-5", botId: "b1", messageId, messages: 3, perMs: 60_000 },
  ...more,
});

it("is taken by both processes together, and said to be spent once", async () => {
  const [mine, theirs] = await budgets();
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? mine : theirs).spend(spending(`m${i}`))),
  );
  const count = (outcome: string) => outcomes.filter((each) => each === outcome).length;
  expect([count("taken"), count("spent"), count("still_spent")]).toEqual([3, 1, 16]);
});

it("counts a repeated message once, and lets it in again also when all is spent", async () => {
  const [mine, theirs] = await budgets();
  for (let i = 0; i < 5; i += 1) expect(await theirs.spend(spending("m1"))).toBe("taken");
  await mine.spend(spending("m2"));
  await mine.spend(spending("m3"));
  expect(await mine.spend(spending("m4"))).toBe("spent");
  expect(await theirs.spend(spending("m1"))).toBe("taken");
});

it("is one for each bot, chat and channel, whatever signs their ids hold", async () => {
  const [mine] = await budgets();
  const one = { messages: 1 };
  for (const who of [
    { chatId: "a:b", botId: "c" },
    { chatId: "a", botId: "b:c" },
    { chatId: 'a","b', botId: "c" },
    { channel: "other", chatId: "a:b", botId: "c" },
  ]) {
    expect(await mine.spend(spending("m1", { ...one, ...who }))).toBe("taken");
    expect(await mine.spend(spending("m2", { ...one, ...who }))).toBe("spent");
  }
});

it("slides: what left the window makes room, what is still in it does not", async () => {
  const [mine, , keys] = await budgets();
  const raw = redis.client();
  const [seconds] = await raw.time();
  const nowMs = Number(seconds) * 1000;
  const name = keys.of("botBudget", JSON.stringify(["chat", "-5", "b1"]));
  await raw.zadd(name, nowMs - 70_000, "old", nowMs - 30_000, "newer", nowMs - 20_000, "newest");
  raw.disconnect();
  expect(await mine.spend(spending("m1"))).toBe("taken");
  expect(await mine.spend(spending("m2"))).toBe("spent");
});

it("comes back as its window slides on", async () => {
  const [mine] = await budgets();
  const short = { messages: 2, perMs: 1_000 };
  const startedMs = performance.now();
  expect(await mine.spend(spending("m1", short))).toBe("taken");
  expect(await mine.spend(spending("m2", short))).toBe("taken");
  expect(await mine.spend(spending("m3", short))).not.toBe("taken");
  await until(async () => (await mine.spend(spending("m4", short))) === "taken");
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(998);
});

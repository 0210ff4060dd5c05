/** Dead letters in Redis: kept with what is needed to send them again, decided about once, whatever is repeated. */

import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import type { DeadLetter, Receipt } from "../../src/bus/delivery-ports.js";
import { noMetrics } from "../../src/metrics.js";
import { createKeys, type Keys } from "../../src/redis/keys.js";
import { outbound, outboxRoute } from "../fakes/outbound.js";
import { type BusFixture, createBusFixture } from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";

let redis: TestRedis;
let raw: Redis;
beforeAll(async () => {
  redis = await TestRedis.start();
  raw = redis.client();
});
afterAll(async () => {
  raw.disconnect();
  await redis.stop();
});

let bus: BusFixture;
let keys: Keys;
let fence: number;
beforeEach(async () => {
  bus = await createBusFixture(redis.address, { prefix: `d${randomUUID().slice(0, 8)}` });
  keys = createKeys(bus.prefix, "ws");
  fence = (await bus.stack.outbox.own("bot", 60_000))?.fence ?? 0;
});
afterEach(() => bus.close());

const letterOf = (id: string): DeadLetter => ({
  id,
  channel: "recording",
  chatId: "c1",
  text: id,
  error: "refused",
  attempts: 8,
});

/** Gives a delivery up after its first part; returns how to repeat that very step, as after a lost reply. */
async function giveUp(id: string): Promise<() => Promise<void>> {
  const { intake, outbox } = bus.stack;
  await intake.reply([{ route: outboxRoute("c1"), message: outbound(id) }]);
  const delivery = (await outbox.read("bot", "0", 1)).find(({ outgoing }) => outgoing.message.id === id);
  if (delivery === undefined) throw new Error("nothing to deliver");
  await outbox.receipt("bot", fence, id, "0", { state: "sent", platformId: "1" });
  const step = () => outbox.consume("bot", fence, delivery, letterOf(id));
  await step();
  return step;
}

it("keeps the receipts of a dead letter as long as the letter, and bounds them again afterwards", async () => {
  await giveUp("a");
  expect(await raw.ttl(keys.of("receipt", "a"))).toBe(-1);
  expect(await bus.stack.outbox.retryDeadLetter("a")).toBe(true);
  expect(await raw.ttl(keys.of("receipt", "a"))).toBeGreaterThan(0);
  await giveUp("b");
  expect(await bus.stack.outbox.dropDeadLetter("b")).toBe(true);
  expect(await raw.ttl(keys.of("receipt", "b"))).toBeGreaterThan(0);
});

it("sends an unclear part again when a person asks for it, and not what was sent or changed", async () => {
  const { outbox } = bus.stack;
  const changed = { state: "changed", into: [{ text: "plain" }] } as const;
  await outbox.receipt("bot", fence, "a", "1", changed);
  await outbox.receipt("bot", fence, "a", "1.0", { state: "unknown", reason: "cut off" });
  await outbox.receipt("bot", fence, "a", "2", { state: "begun", atMs: 1 });
  await giveUp("a");
  await outbox.retryDeadLetter("a");
  const left = new Map<string, Receipt>([["0", { state: "sent", platformId: "1" }]]);
  expect(await outbox.receipts("a")).toEqual(left.set("1", changed));
});

it("does not bring a letter back that was decided about while its end was repeated", async () => {
  const repeat = await giveUp("a");
  expect(await bus.stack.outbox.retryDeadLetter("a")).toBe(true);
  await repeat();
  expect(await bus.stack.outbox.deadLetters()).toEqual([]);
  expect(await bus.stack.outbox.read("bot", "0", 1)).toHaveLength(1);
});

it("can give the same delivery up again after a retry", async () => {
  await giveUp("a");
  await bus.stack.outbox.retryDeadLetter("a");
  const [again] = await bus.stack.outbox.read("bot", "0", 1);
  if (again === undefined) throw new Error("nothing to deliver");
  await bus.stack.outbox.consume("bot", fence, again, letterOf("a"));
  expect(await bus.stack.outbox.deadLetters()).toEqual([letterOf("a")]);
});

it("carries a decision out once, however often its call is repeated", async () => {
  await giveUp("a");
  const { client } = bus.stack;
  const { Scripts } = await import("../../src/redis/scripts.js");
  const defaults = { owner: "o", leaseMs: 0, maxTries: 0, giveUpNotice: "", maxTurns: 0 };
  const scripts = new Scripts({ client, keys, defaults, deadlineMs: 1000, metrics: noMetrics });
  const call = { id: "a", call: "one call", again: true };
  expect(await scripts.run("dead-letter", call)).toEqual(["ok"]);
  expect(await scripts.run("dead-letter", call)).toEqual(["ok"]);
  expect(await scripts.run("dead-letter", { ...call, call: "another" })).toEqual(["none"]);
  expect(await bus.stack.outbox.read("bot", "0", 1)).toHaveLength(1);
});

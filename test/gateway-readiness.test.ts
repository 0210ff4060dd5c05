/** `/readyz` counts progress: what is connected and gets nothing done is not ready, what is merely busy is. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { Consumer } from "../src/bus/ports.js";
import { UpkeepLoop } from "../src/bus/upkeep-loop.js";
import { type Readiness, readinessOf } from "../src/gateway-readiness.js";
import { type BusFixture, createBusFixture, PLAIN, silent, until } from "./support/bus-fixture.js";
import { TestRedis } from "./support/redis-server.js";
import { keyOf, messageIn, open } from "./support/session-steps.js";

const STUCK_MS = 300;

let redis: TestRedis;
let f: BusFixture;
let consumer: Consumer;

beforeAll(async () => {
  redis = await TestRedis.start();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  f = await createBusFixture(redis.address);
  consumer = await f.stack.ready.consume(1, async () => {});
  return async () => {
    await consumer.close();
    await f.close();
  };
});

function upkeepThat(measurePressure: () => Promise<void>): UpkeepLoop {
  const { upkeep, ready } = f.stack;
  return new UpkeepLoop({ bus: f.bus, upkeep, ready, measurePressure, reapMs: 20, sweepMs: 60_000, logger: silent });
}

const asked = (more: Partial<Readiness> = {}): Readiness => ({
  stack: f.stack,
  upkeep: upkeepThat(async () => {}),
  worker: { consumer, isBusy: () => false },
  channels: null,
  ...more,
});

const parts = async (...given: Parameters<typeof readinessOf>) => (await readinessOf(...given)).map(({ part }) => part);

it("a process that has started and has nothing to do is ready", async () => {
  expect(await parts(asked(), "all", STUCK_MS)).toEqual([]);
  expect(await parts(asked({ worker: null }), "channels", STUCK_MS)).toEqual([]);
});

it("one that has not started to its end is not", async () => {
  expect(await parts(asked({ stack: null }), "all", STUCK_MS)).toEqual(["redis"]);
  expect(await parts(asked({ upkeep: null }), "all", STUCK_MS)).toEqual(["start"]);
  expect(await parts(asked({ worker: null }), "worker", STUCK_MS)).toEqual(["start"]);
});

it("a free worker beside a session that nobody fetches is not ready; a busy one, or one without a slot, is", async () => {
  const message = messageIn("c", "x");
  // Stored, but no job is added: as if the consumer did not see it.
  await f.stack.intake.publish({ key: keyOf("c"), inboundKey: message.id, message, ...PLAIN });
  await until(async () => (await parts(asked(), "worker", STUCK_MS)).includes("worker"));
  expect(await parts(asked({ worker: { consumer, isBusy: () => true } }), "worker", STUCK_MS)).toEqual([]);
  expect(await parts(asked(), "channels", STUCK_MS)).toEqual([]);
  await open(f, "c");
  expect(await parts(asked(), "worker", STUCK_MS)).toEqual([]);
});

it("a consumer that has ended is not ready", async () => {
  const ended = await f.stack.ready.consume(1, async () => {});
  await ended.close();
  expect(await parts(asked({ worker: { consumer: ended, isBusy: () => false } }), "worker", STUCK_MS)).toEqual([
    "worker",
  ]);
});

it("upkeep that fails round after round is not ready", async () => {
  const upkeep = upkeepThat(async () => {
    throw new Error("no");
  });
  upkeep.start();
  const isToldSo = async () => {
    // A sign of life, since this process asks for nothing else.
    await f.stack.upkeep.depths();
    return (await parts(asked({ upkeep }), "channels", 1500)).includes("upkeep");
  };
  expect(await isToldSo()).toBe(false);
  await until(isToldSo);
  await upkeep.stop();
});

it("a server that stands still while the connection is open is away", async () => {
  redis.freeze();
  await until(async () => (await parts(asked(), "channels", STUCK_MS)).includes("redis"));
  expect(f.stack.client.isReady).toBe(true);
  redis.thaw();
  await f.stack.upkeep.depths();
  expect(await parts(asked(), "channels", STUCK_MS)).toEqual([]);
});

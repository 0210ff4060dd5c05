/** Redis without memory: nothing new is taken in, what was taken in is worked off, and everything goes on afterwards. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { SessionKey } from "../../src/bus/messages.js";
import {
  type BusFixture,
  completed,
  createBusFixture,
  eventsRoute,
  outgoing,
  PLAIN,
  until,
} from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";
import { keyOf, messageIn } from "../support/session-steps.js";

let redis: TestRedis;
let f: BusFixture;

beforeEach(async () => {
  redis = await TestRedis.start();
  f = await createBusFixture(redis.address);
});
afterEach(async () => {
  await setMemory("0");
  await f.close();
  await redis.stop();
});

async function setMemory(bytes: string): Promise<void> {
  const raw = redis.client();
  await raw.config("SET", "maxmemory", bytes);
  raw.disconnect();
}

async function usedMemory(): Promise<number> {
  const raw = redis.client();
  const used = /used_memory:(\d+)/.exec(await raw.info("memory"))?.[1];
  raw.disconnect();
  return Number(used);
}

/** A worker that answers each message with its own text. */
async function answer(key: SessionKey, wake: number): Promise<void> {
  await f.lock.withLease(key, { wake }, async ({ lease, claim, left }) => {
    for (let next = claim.next?.message; next !== undefined; ) {
      const { route, content } = next.message;
      const settled = await f.bus.settle({
        key,
        fence: lease.fence,
        settled: [{ inboundKey: next.key, result: completed(content) }],
        outgoing: [outgoing(route, `answer to ${next.key}`, content, { type: "final", streamId: null })],
        file: null,
        afterwards: "next",
        honoursStop: false,
      });
      next = settled.kind === "next" ? settled.message : undefined;
    }
    left();
  });
}

const publish = (chat: string, text: string) => f.bus.publishInbound(messageIn(chat, text), PLAIN);

async function answers(chat: string): Promise<string[]> {
  const page = await f.stack.chatEvents.read("web", chat, 0, null);
  return page.kind === "events" ? page.events.map(({ message }) => message.content) : [];
}

it("refuses what is new, works off what waits, and takes in again", async () => {
  await publish("c", "1");
  await publish("c", "2");
  await publish("d", "3");
  await setMemory("100kb");
  await expect(publish("c", "new")).rejects.toMatchObject({ code: "BUS_OVERLOADED" });
  await expect(f.stack.chatEvents.claim("web", "new", "alice")).rejects.toMatchObject({ code: "BUS_OVERLOADED" });
  const worker = await f.stack.ready.consume(2, answer);
  await until(async () => (await answers("c")).length === 2 && (await answers("d")).length === 1);
  await setMemory("0");
  await publish("c", "new");
  await until(async () => (await answers("c")).length === 3);
  expect(await answers("c")).toEqual(["1", "2", "new"]);
  await worker.close();
});

it("a session that is given back while memory is full is fetched again", async () => {
  await publish("c", "1");
  await setMemory("100kb");
  let isFirst = true;
  const worker = await f.stack.ready.consume(1, async (key, wake) => {
    if (!isFirst) return answer(key, wake);
    isFirst = false;
    await f.lock.withLease(key, { wake }, async ({ lease, left }) => {
      await f.bus.yield({ key, fence: lease.fence, why: "fair", delayMs: 0, file: null, reason: "" });
      left();
    });
  });
  await until(async () => (await answers("c")).length === 1);
  expect(await f.bus.peek(keyOf("c"))).toBeNull();
  await worker.close();
});

it("refuses before memory is full, at four fifths of it, and commands are still answered", async () => {
  const limit = Math.round((await usedMemory()) / 0.9);
  await setMemory(String(limit));
  await f.stack.pressure.measure();
  await expect(publish("c", "new")).rejects.toMatchObject({ code: "BUS_OVERLOADED" });
  expect(await f.bus.peek(keyOf("c"))).toBeNull();
  await f.bus.reply([outgoing(eventsRoute("c"), "n1", "an answer", { type: "notice" })]);
  expect(await answers("c")).toEqual(["an answer"]);
  await setMemory(String(limit * 4));
  await f.stack.pressure.measure();
  expect((await publish("c", "new")).status).toBe("stored");
});

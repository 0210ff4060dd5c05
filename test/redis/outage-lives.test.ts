/** Redis comes back as another life, with all it had or with less: what had been acknowledged is there again. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { routeKeyOf } from "../../src/bus/messages.js";
import { type BusFixture, createBusFixture, eventsRoute, outgoing, PLAIN, until } from "../support/bus-fixture.js";
import { RedisProxy } from "../support/redis-proxy.js";
import { TestRedis } from "../support/redis-server.js";
import { keyOf, messageIn, open, settle } from "../support/session-steps.js";

let redis: TestRedis;
let f: BusFixture;
const ends: Array<() => Promise<void>> = [];

beforeEach(async () => {
  redis = await TestRedis.start();
  f = await createBusFixture(redis.address);
});
afterEach(async () => {
  vi.useRealTimers();
  await f.close();
  for (const end of ends.splice(0)) await end();
  await redis.stop();
});

const publish = (chat: string, text: string, on = f) => on.bus.publishInbound(messageIn(chat, text), PLAIN);

/** What waits in a chat's session, oldest first; its session is held afterwards. */
async function waiting(chat: string, on = f): Promise<string[]> {
  const claim = await open(on, chat);
  const first = claim.next?.message;
  if (first === undefined) return [];
  const check = { key: keyOf(chat), fence: claim.fence, inboundKeys: [first.key], take: 100 };
  const { taken } = await on.bus.check({ ...check, route: routeKeyOf(first.message.route) });
  return [first, ...taken].map(({ message }) => message.content);
}

it("restarted with all its data: everything is there once", async () => {
  const texts = Array.from({ length: 60 }, (_, n) => `m${n}`);
  const sending = Promise.all(texts.map((text) => publish("c", text)));
  await publish("other", "x");
  await redis.kill();
  await redis.up();
  await sending;
  expect(await waiting("c")).toEqual(texts);
});

it("an older state: what was acknowledged since is there again, in order, once, before anything new", async () => {
  await publish("c", "kept");
  await redis.keep();
  for (const text of ["lost 1", "lost 2", "lost 3"]) await publish("c", text);
  await redis.rollBack();
  const late = publish("c", "new");
  await redis.up();
  await late;
  expect(await waiting("c")).toEqual(["kept", "lost 1", "lost 2", "lost 3", "new"]);
});

it.each([0, 25])("a log cut behind an earlier write and %i bytes of the next", async (more) => {
  await publish("c", "kept");
  const bytes = await redis.logBytes();
  for (const text of ["lost 1", "lost 2"]) await publish("c", text);
  await redis.cutLog(bytes + more);
  await redis.up();
  await publish("c", "new");
  expect(await waiting("c")).toEqual(["kept", "lost 1", "lost 2", "new"]);
});

it("stops, answers of commands and answers to parked calls come back too, each once", async () => {
  await publish("c", "running");
  const claim = await open(f, "c");
  await publish("c", "waiting");
  await redis.keep();
  const stop = { key: keyOf("c"), inboundKey: "stop-1", route: "*" };
  expect(await f.bus.stop(stop)).toBe(2);
  await f.bus.reply([outgoing(eventsRoute("c"), "notice-1", "Stopped 2 messages.", { type: "notice" })]);
  await f.bus.unpark(keyOf("c"), "w1", "an answer");
  await redis.rollBack();
  await redis.up();
  const check = { key: keyOf("c"), fence: claim.fence, inboundKeys: [claim.next?.message.key ?? ""] };
  expect((await f.bus.check({ ...check, route: "", take: 0 })).stopped).toHaveLength(1);
  expect(await f.bus.stop(stop)).toBe(2);
  expect(await f.bus.answers(keyOf("c"), ["w1"])).toEqual(new Map([["w1", "an answer"]]));
  const page = await f.stack.chatEvents.read("web", "c", 0, null);
  if (page.kind !== "events") throw new Error("resync");
  expect(page.events.map(({ message }) => message.event.type)).toEqual(["turn_end", "notice"]);
});

it("a replay that breaks off half way begins anew with the next connection", async () => {
  const proxy = await RedisProxy.start(redis.address.socketPath);
  ends.push(() => proxy.stop());
  const g = await createBusFixture(proxy.address);
  ends.push(() => g.close());
  await redis.keep();
  for (const text of ["lost 1", "lost 2", "lost 3"]) await publish("c", text, g);
  await redis.rollBack();
  const broken = proxy.loseCommand("lost 2");
  await redis.up();
  await broken;
  await publish("c", "new", g);
  expect(await waiting("c", g)).toEqual(["lost 1", "lost 2", "lost 3", "new"]);
});

it("what was refused is not stored by the replay, and no bound keeps out what was acknowledged", async () => {
  const g = await createBusFixture(redis.address, { maxMailbox: 2 });
  ends.push(() => g.close());
  await publish("c", "1", g);
  await publish("c", "2", g);
  await redis.keep();
  await expect(publish("c", "refused", g)).rejects.toMatchObject({ code: "BUS_OVERLOADED" });
  const claim = await open(g, "c");
  await settle(g, "c", claim);
  await publish("c", "3", g);
  await redis.rollBack();
  await redis.up();
  await until(() => g.stack.client.isReady);
  expect(await waiting("c", g)).toEqual(["1", "2", "3"]);
});

it("what was acknowledged comes back also into a server without memory for anything new", async () => {
  await publish("c", "kept");
  await redis.keep();
  await publish("c", "lost");
  await redis.rollBack();
  await redis.up(["--maxmemory", "100kb"]);
  await expect(publish("c", "new")).rejects.toMatchObject({ code: "BUS_OVERLOADED" });
  expect(await waiting("c")).toEqual(["kept", "lost"]);
});

it("two roll-backs, the second long after the first: what was repeated counts as acknowledged anew", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  await redis.keep();
  await publish("c", "lost");
  await redis.rollBack();
  vi.advanceTimersByTime(60_000);
  await redis.up();
  await publish("other", "a sign of life of the second life");
  await redis.rollBack();
  await redis.up();
  expect(await until(() => waiting("c").catch(() => null))).toEqual(["lost"]);
});

it("what is older than the window is left alone", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  await redis.keep();
  await publish("c", "old");
  vi.advanceTimersByTime(20_000);
  await publish("c", "young");
  await redis.rollBack();
  await redis.up();
  expect(await until(() => waiting("c").catch(() => null))).toEqual(["young"]);
});

it("a chat's epoch grows with each life; who saw what was lost starts anew, who did not goes on", async () => {
  const say = (text: string, on = f) =>
    on.bus.reply([outgoing(eventsRoute("c"), `id ${text}`, text, { type: "notice" })]);
  // Nothing of another process is repeated by this one.
  const other = await createBusFixture(redis.address, { prefix: f.prefix });
  await say("one", other);
  const before = await f.stack.chatEvents.head("web", "c");
  await redis.keep();
  await say("two, lost", other);
  await say("three, lost", other);
  await other.close();
  await redis.rollBack();
  await redis.up();
  for (const text of ["two, new", "three, new", "four, new"]) await say(text);
  const head = await f.stack.chatEvents.head("web", "c");
  expect(head.epoch).toBeGreaterThan(before.epoch);
  expect(head.seq).toBe(4);
  expect(await f.stack.chatEvents.read("web", "c", 3, before.epoch)).toEqual({ kind: "resync", head });
  const page = await f.stack.chatEvents.read("web", "c", 1, before.epoch);
  if (page.kind !== "events") throw new Error("resync");
  expect(page.events.map(({ seq, message }) => `${seq} ${message.content}`)).toEqual([
    "2 two, new",
    "3 three, new",
    "4 four, new",
  ]);
});

it("a lease of the former life is lost, and its fence is never given again", async () => {
  await publish("c", "one");
  await redis.keep();
  const claim = await open(f, "c");
  await redis.rollBack();
  await redis.up();
  const again = await open(f, "c");
  expect(again.fence).toBeGreaterThan(claim.fence);
  await expect(settle(f, "c", claim)).rejects.toMatchObject({ code: "LEASE_LOST" });
  expect(await f.stack.leases.renew([{ key: keyOf("c"), fence: claim.fence }])).toEqual([keyOf("c")]);
});

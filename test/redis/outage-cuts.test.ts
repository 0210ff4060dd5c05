/** The connection is cut between the execution of a command and its reply: nothing is lost, doubled or reordered. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { inboundKeyOf } from "../../src/bus/messages.js";
import { type BusFixture, createBusFixture, eventsRoute, outgoing, PLAIN } from "../support/bus-fixture.js";
import { RedisProxy } from "../support/redis-proxy.js";
import { TestRedis } from "../support/redis-server.js";
import { keyOf, messageIn, open, settle } from "../support/session-steps.js";

let redis: TestRedis;
let proxy: RedisProxy;
let f: BusFixture;

beforeAll(async () => {
  redis = await TestRedis.start();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  proxy = await RedisProxy.start(redis.address.socketPath);
  f = await createBusFixture(proxy.address);
});
afterEach(async () => {
  await f.close();
  await proxy.stop();
});

/** Runs `work` while the reply of its command (the one that holds `text`) is lost; fails when nothing was lost. */
async function withLostReply<T>(text: string, work: () => Promise<T>): Promise<T> {
  const before = proxy.cuts;
  void proxy.loseReplyOf(text);
  const result = await work();
  expect(proxy.cuts).toBe(before + 1);
  return result;
}

/** Everything the chat was sent. */
async function said(chat: string): Promise<string[]> {
  const page = await f.stack.chatEvents.read("web", chat, 0, null);
  if (page.kind !== "events") throw new Error("resync");
  return page.events.map(({ message }) => `${message.event.type} ${message.content}`);
}

/** What waits in a chat's session, oldest first; the session is emptied. */
async function drained(chat: string): Promise<string[]> {
  const contents: string[] = [];
  if ((await f.bus.peek(keyOf(chat))) === null) return contents;
  const claim = await open(f, chat);
  for (let next = claim.next?.message; next !== undefined; ) {
    contents.push(next.message.content);
    const settled = await settle(f, chat, { ...claim, next: { message: next, fragments: [], isStopped: false } });
    next = settled.kind === "next" ? settled.message : undefined;
  }
  return contents;
}

const final = (chat: string, text: string) =>
  outgoing(eventsRoute(chat), `${chat}.${text}`, text, { type: "final", streamId: null });

/** A session that is held, with two messages waiting. */
async function held(chat: string) {
  await f.bus.publishInbound(messageIn(chat, "one"), PLAIN);
  await f.bus.publishInbound(messageIn(chat, "two"), PLAIN);
  return open(f, chat);
}

describe("intake", () => {
  it("publish stores once", async () => {
    await f.bus.publishInbound(messageIn("p1", "before"), PLAIN);
    await withLostReply("in the middle", () => f.bus.publishInbound(messageIn("p1", "in the middle"), PLAIN));
    await f.bus.publishInbound(messageIn("p1", "after"), PLAIN);
    expect(await drained("p1")).toEqual(["before", "in the middle", "after"]);
  });

  it("a publish that never arrived is sent again, before what came after it", async () => {
    void proxy.loseCommand("number 1");
    const numbers = ["number 0", "number 1", "number 2", "number 3"];
    await Promise.all(numbers.map((text) => f.bus.publishInbound(messageIn("p2", text), PLAIN)));
    expect(proxy.cuts).toBe(1);
    expect(await drained("p2")).toEqual(numbers);
  });

  it("fifty cuts in a row under a stream of one session keep the order and make no double", async () => {
    const texts = Array.from({ length: 200 }, (_, n) => `text ${n}.`);
    for (let n = 0; n < 200; n += 4) void proxy.loseReplyOf(`text ${n}.`);
    await Promise.all(texts.map((text) => f.bus.publishInbound(messageIn("p3", text), PLAIN)));
    expect(proxy.cuts).toBe(50);
    expect(await drained("p3")).toEqual(texts);
  }, 60_000);

  it("stop says the same number again and stops nothing that came later", async () => {
    await f.bus.publishInbound(messageIn("s1", "one"), PLAIN);
    await f.bus.publishInbound(messageIn("s1", "two"), PLAIN);
    const stop = { key: keyOf("s1"), inboundKey: "stop-1", route: "*" };
    expect(await withLostReply('"route":"*"', () => f.bus.stop(stop))).toBe(2);
    await f.bus.publishInbound(messageIn("s1", "three"), PLAIN);
    expect(await f.bus.stop(stop)).toBe(2);
    expect(await drained("s1")).toEqual(["three"]);
    const stopped = (await said("s1")).filter((each) => each.startsWith("turn_end"));
    expect(stopped).toHaveLength(2);
  });

  it("reply speaks once", async () => {
    const notice = outgoing(eventsRoute("r1"), "r1.notice", "hello there", { type: "notice" });
    await withLostReply("hello there", () => f.bus.reply([notice]));
    expect(await said("r1")).toEqual(["notice hello there"]);
  });

  it("unpark wakes once and keeps the answer", async () => {
    const claim = await held("u1");
    await park("u1", claim.fence);
    await withLostReply('"payload":"the answer"', () => f.bus.unpark(keyOf("u1"), "w1", "the answer"));
    expect(await f.bus.answers(keyOf("u1"), ["w1"])).toEqual(new Map([["w1", "the answer"]]));
    expect((await open(f, "u1")).next?.message.message.content).toBe("one");
  });
});

const park = (chat: string, fence: number) =>
  f.bus.park({
    key: keyOf(chat),
    fence,
    waitIds: ["w1"],
    untilMs: Date.now() + 60_000,
    file: null,
    inboundKeys: [],
    takesMail: false,
  });

describe("a holder", () => {
  it("open gives the lease all the same", async () => {
    const message = messageIn("o1", "one");
    await f.bus.publishInbound(message, PLAIN);
    const wake = (await f.bus.peek(keyOf("o1")))?.wake ?? -1;
    const taken = await withLostReply('"wake":', () => f.stack.leases.open(keyOf("o1"), wake));
    if (!taken.ok) throw new Error(taken.why);
    expect(taken.claim.next?.message.key).toBe(inboundKeyOf(message));
    expect(await settle(f, "o1", taken.claim)).toMatchObject({ kind: "idle" });
    expect(await f.stack.leases.open(keyOf("o1"), wake)).toEqual({ ok: false, why: "stale" });
  });

  it("hold and release", async () => {
    const taken = await withLostReply('"call":', () => f.stack.leases.hold(keyOf("h1")));
    if (!taken.ok) throw new Error(taken.why);
    await f.bus.publishInbound(messageIn("h1", "meanwhile"), PLAIN);
    const release = () => f.stack.leases.release(keyOf("h1"), taken.claim.fence, null);
    expect(await withLostReply('"file":', release)).toMatchObject([{ key: keyOf("h1") }]);
    expect(await drained("h1")).toEqual(["meanwhile"]);
  });

  it("settle answers once and goes on with the next", async () => {
    const claim = await held("t1");
    const end = outgoing(eventsRoute("t1"), "stream.end", "cut", { type: "stream_end", streamId: "stream" });
    const answers = [final("t1", "answer"), end];
    const settled = await withLostReply('"honoursStop":', () => settle(f, "t1", claim, { outgoing: answers }));
    expect(settled).toMatchObject({ kind: "next", message: { message: { content: "two" } } });
    expect(await said("t1")).toEqual(["final answer", "stream_end cut"]);
  });

  it("the last settle leaves the session idle", async () => {
    await f.bus.publishInbound(messageIn("t2", "one"), PLAIN);
    const claim = await open(f, "t2");
    const answers = [final("t2", "answer")];
    const settled = await withLostReply('"honoursStop":', () => settle(f, "t2", claim, { outgoing: answers }));
    expect(settled).toMatchObject({ kind: "idle" });
    expect(await said("t2")).toEqual(["final answer"]);
    await f.bus.publishInbound(messageIn("t2", "two"), PLAIN);
    expect(await drained("t2")).toEqual(["two"]);
  });

  it("emit shows each piece once", async () => {
    const { fence } = await held("e1");
    const delta = (offset: number) =>
      outgoing(eventsRoute("e1"), `d${offset}`, `piece ${offset}`, { type: "delta", streamId: "x", offset });
    const emit = (batch: number) =>
      f.bus.emit({ key: keyOf("e1"), fence, batch, outgoing: [delta(batch)], openStream: null });
    await emit(1);
    await withLostReply("piece 2", () => emit(2));
    await emit(3);
    expect(await said("e1")).toEqual(["delta piece 1", "delta piece 2", "delta piece 3"]);
  });

  it("yield counts one try and the session is found again", async () => {
    const { fence } = await held("y1");
    const yielding = { key: keyOf("y1"), fence, why: "fail" as const, delayMs: 0, file: null, reason: "boom" };
    await withLostReply('"why":', () => f.bus.yield(yielding));
    const wake = await f.bus.peek(keyOf("y1"));
    if (wake === null) throw new Error("not scheduled");
    expect(await f.stack.ready.waits(wake)).toBe(true);
    expect((await open(f, "y1")).attempts).toBe(1);
  });

  it("park stays parked until it is answered", async () => {
    const { fence } = await held("k1");
    expect(await withLostReply('"untilMs":', () => park("k1", fence))).toBe("parked");
    expect(await f.bus.peek(keyOf("k1"))).toBeNull();
    await f.bus.unpark(keyOf("k1"), "w1", "yes");
    expect(await drained("k1")).toEqual(["one", "two"]);
  });

  it("raise gives the raised fence, and it is the one in force", async () => {
    const claim = await held("f1");
    const wanted = claim.fence + 5;
    const raised = await withLostReply('"atLeast":', () => f.stack.leases.raise(keyOf("f1"), claim.fence, wanted));
    expect(raised).toBe(wanted);
    await expect(settle(f, "f1", claim)).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await settle(f, "f1", { ...claim, fence: raised })).toMatchObject({ kind: "next" });
  });

  it("renew goes on, and a stale fence is still told apart", async () => {
    const { fence } = await held("n1");
    const both = [
      { key: keyOf("n1"), fence },
      { key: keyOf("nobody"), fence },
    ];
    expect(await withLostReply('"held":', () => f.stack.leases.renew(both))).toEqual([keyOf("nobody")]);
  });
});

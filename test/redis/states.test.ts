/** The four states of a session and every script that moves it between them, against a real Redis. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inboundKeyOf, routeKeyOf, turnIdOf } from "../../src/bus/messages.js";
import type { Claim } from "../../src/session/ports.js";
import {
  type BusFixture,
  completed,
  createBusFixture,
  eventsRoute,
  inbound,
  LEASE_MS,
  outboxRoute,
  outgoing,
  PLAIN,
  sessionKey,
  until,
} from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";

let redis: TestRedis;
let f: BusFixture;

beforeAll(async () => {
  redis = await TestRedis.start();
  f = await createBusFixture(redis.address);
});
afterAll(async () => {
  await f.close();
  await redis.stop();
});

const key = (chat: string) => sessionKey(`web:${chat}`);
const message = (chat: string, content: string, overrides = {}) =>
  inbound(content, { route: eventsRoute(chat), ...overrides });

async function open(chat: string): Promise<Claim> {
  const wake = await f.bus.peek(key(chat));
  const taken = await f.stack.leases.open(key(chat), wake?.wake ?? -1);
  if (!taken.ok) throw new Error(`not opened: ${taken.why}`);
  return taken.claim;
}

async function settle(chat: string, claim: Claim, overrides = {}) {
  const next = claim.next?.message;
  if (next === undefined) throw new Error("nothing to settle");
  return f.bus.settle({
    key: key(chat),
    fence: claim.fence,
    settled: [{ inboundKey: next.key, result: completed("done") }],
    outgoing: [],
    file: null,
    afterwards: "next",
    honoursStop: false,
    ...overrides,
  });
}

describe("publish", () => {
  it("stores a message once and schedules its session", async () => {
    const m = message("p1", "hello");
    expect((await f.bus.publishInbound(m, PLAIN)).status).toBe("stored");
    expect((await f.bus.publishInbound(m, PLAIN)).status).toBe("duplicate");
    const claim = await open("p1");
    expect(claim.next?.message.message).toEqual(m);
    expect(await settle("p1", claim)).toMatchObject({ kind: "idle" });
    expect(await f.bus.peek(key("p1"))).toBeNull();
    expect((await f.bus.publishInbound(m, PLAIN)).status).toBe("duplicate");
  });

  it("treats the same id in another chat, or of an edit, as another message", async () => {
    const m = message("p2", "hello", { id: "7" });
    const edit = { ...m, kind: "edit" as const };
    expect(inboundKeyOf(m)).not.toBe(inboundKeyOf(edit));
    expect(inboundKeyOf(m)).not.toBe(inboundKeyOf(message("p3", "hello", { id: "7" })));
    await f.bus.publishInbound(m, PLAIN);
    expect((await f.bus.publishInbound(edit, PLAIN)).status).toBe("stored");
  });

  it("refuses whole over the bound, and takes in again once there is room", async () => {
    const small = await createBusFixture(redis.address, { maxMailbox: 2 });
    const [one, two, three] = ["1", "2", "3"].map((text) => message("full", text));
    if (!one || !two || !three) throw new Error("no messages");
    await small.bus.publishInbound(one, PLAIN);
    await small.bus.publishInbound(two, PLAIN);
    await expect(small.bus.publishInbound(three, PLAIN)).rejects.toMatchObject({ code: "BUS_OVERLOADED" });
    const wake = await small.bus.peek(key("full"));
    const taken = await small.stack.leases.open(key("full"), wake?.wake ?? -1);
    if (!taken.ok || taken.claim.next === null) throw new Error("not opened");
    const done = [{ inboundKey: taken.claim.next.message.key, result: completed("") }];
    const { fence } = taken.claim;
    const rest = {
      key: key("full"),
      fence,
      settled: done,
      outgoing: [],
      file: null,
      afterwards: "next" as const,
      honoursStop: false,
    };
    expect(await small.bus.settle(rest)).toMatchObject({ kind: "next" });
    expect((await small.bus.publishInbound(three, PLAIN)).status).toBe("stored");
    await small.close();
  });

  it("carries text that no other part may read: lone surrogates, separators, a hostile session key", async () => {
    const m = message("odd", "a \ud800 b \u0000 |\n", { sessionKeyOverride: sessionKey(`x ${"\ud83d"} :{}*\n`) });
    const { sessionKey: k } = await f.bus.publishInbound(m, PLAIN);
    const wake = await f.bus.peek(k);
    const taken = await f.stack.leases.open(k, wake?.wake ?? -1);
    expect(taken.ok && taken.claim.next?.message.message.content).toBe("a \ud800 b \u0000 |\n");
  });

  it("joins fragments: each slides the wait, a message that does not wait ends it", async () => {
    const quick = { ...PLAIN, debounceMs: 60_000 };
    await f.bus.publishInbound(message("deb", "one"), quick);
    const first = await f.bus.peek(key("deb"));
    await f.bus.publishInbound(message("deb", "two"), quick);
    const second = await f.bus.peek(key("deb"));
    expect(second?.wake).toBe((first?.wake ?? 0) + 1);
    expect(second?.delayMs).toBeGreaterThan(50_000);
    await f.bus.publishInbound(message("deb", "/now"), PLAIN);
    expect((await f.bus.peek(key("deb")))?.delayMs).toBe(0);
  });
});

describe("open", () => {
  it("answers stale to an old wake number and to a session that runs", async () => {
    await f.bus.publishInbound(message("o1", "a"), PLAIN);
    const wake = await f.bus.peek(key("o1"));
    expect(await f.stack.leases.open(key("o1"), (wake?.wake ?? 0) - 1)).toEqual({ ok: false, why: "stale" });
    await open("o1");
    expect(await f.stack.leases.open(key("o1"), wake?.wake ?? 0)).toEqual({ ok: false, why: "stale" });
  });

  it("gives fences that only grow", async () => {
    await f.bus.publishInbound(message("o2", "a"), PLAIN);
    const first = await open("o2");
    await f.bus.yield({ key: key("o2"), fence: first.fence, why: "fair", delayMs: 0, file: null, reason: "" });
    const second = await open("o2");
    expect(second.fence).toBeGreaterThan(first.fence);
    await expect(settle("o2", first)).rejects.toMatchObject({ code: "LEASE_LOST" });
  });

  it("keeps a bound of turns over all processes and calls the one that waited longest", async () => {
    const g = await createBusFixture(redis.address, { maxTurns: 1 });
    const claims: Claim[] = [];
    const tryOpen = async (chat: string) => {
      const wake = await g.bus.peek(key(chat));
      const taken = await g.stack.leases.open(key(chat), wake?.wake ?? -1);
      if (taken.ok) claims.push(taken.claim);
      return taken.ok ? "ok" : taken.why;
    };
    for (const chat of ["s1", "s2", "s3"]) await g.bus.publishInbound(message(chat, chat), PLAIN);
    expect(await tryOpen("s1")).toBe("ok");
    expect(await tryOpen("s2")).toBe("full");
    expect(await tryOpen("s3")).toBe("full");
    const [claim] = claims;
    if (!claim?.next) throw new Error("nothing");
    const done = [{ inboundKey: claim.next.message.key, result: completed("") }];
    const settled = await g.bus.settle({
      key: key("s1"),
      fence: claim.fence,
      settled: done,
      outgoing: [],
      file: null,
      afterwards: "next",
      honoursStop: false,
    });
    expect(settled).toMatchObject({ kind: "idle", wakes: [{ key: key("s2") }] });
    expect(await tryOpen("s3")).toBe("full");
    expect(await tryOpen("s2")).toBe("ok");
    await g.close();
  });
});

describe("settle", () => {
  it("sends answers, results and the next message in one step, and repeated nothing twice", async () => {
    const [one, two] = [message("t1", "1"), message("t1", "2")];
    await f.bus.publishInbound(one, PLAIN);
    await f.bus.publishInbound(two, PLAIN);
    const claim = await open("t1");
    const answer = outgoing(eventsRoute("t1"), "ans-1", "hi", { type: "final", streamId: null });
    expect(await settle("t1", claim, { outgoing: [answer] })).toMatchObject({
      kind: "next",
      message: { message: two },
    });
    expect(await settle("t1", claim, { outgoing: [answer] })).toMatchObject({
      kind: "next",
      message: { message: two },
    });
    const page = await f.stack.chatEvents.read("web", "t1", 0, null);
    expect(page).toMatchObject({ kind: "events", events: [{ seq: 1, message: { content: "hi" } }] });
    expect(await f.stack.results.get(inboundKeyOf(one))).toMatchObject({ text: "done" });
  });

  it("keeps holding with `stay`", async () => {
    await f.bus.publishInbound(message("t2", "1"), PLAIN);
    const claim = await open("t2");
    expect(await settle("t2", claim, { afterwards: "stay" })).toMatchObject({ kind: "stay" });
    expect(
      await f.bus.check({ key: key("t2"), fence: claim.fence, inboundKeys: [], route: "", take: 0 }),
    ).toBeDefined();
    expect(await f.stack.leases.release(key("t2"), claim.fence, null)).toEqual([]);
  });

  it("remembers the session file for the next holder", async () => {
    await f.bus.publishInbound(message("t3", "1"), PLAIN);
    const file = { inode: "18446744073709551615", bytes: 12, fence: 3 };
    await settle("t3", await open("t3"), { file });
    await f.bus.publishInbound(message("t3", "2"), PLAIN);
    expect((await open("t3")).file).toEqual(file);
  });
});

describe("check", () => {
  it("takes in newer messages of the same route up to the first that must be alone", async () => {
    const route = eventsRoute("k1");
    for (const text of ["1", "2", "3"]) await f.bus.publishInbound(message("k1", text), PLAIN);
    const other = inbound("other", { route: eventsRoute("elsewhere"), sessionKeyOverride: key("k1") });
    await f.bus.publishInbound(other, PLAIN);
    await f.bus.publishInbound(message("k1", "/new"), { ...PLAIN, joins: false });
    await f.bus.publishInbound(message("k1", "5"), PLAIN);
    const claim = await open("k1");
    const check = { key: key("k1"), fence: claim.fence, route: routeKeyOf(route) };
    const first = await f.bus.check({ ...check, inboundKeys: [claim.next?.message.key ?? ""], take: 9 });
    expect(first.taken.map((each) => each.message.content)).toEqual(["2", "3"]);
  });
});

describe("yield", () => {
  it("counts tries of the oldest message; the third gives it up and says so, the next one goes on", async () => {
    const [bad, good] = [message("y1", "bad"), message("y1", "good")];
    await f.bus.publishInbound(bad, PLAIN);
    await f.bus.publishInbound(good, PLAIN);
    const fail = async () => {
      const claim = await open("y1");
      return f.bus.yield({ key: key("y1"), fence: claim.fence, why: "fail", delayMs: 0, file: null, reason: "boom" });
    };
    expect(await fail()).toBe(false);
    const claim = await open("y1");
    expect(claim.attempts).toBe(1);
    await f.bus.yield({ key: key("y1"), fence: claim.fence, why: "fair", delayMs: 0, file: null, reason: "" });
    expect(await fail()).toBe(false);
    expect(await fail()).toBe(true);
    expect(await f.stack.results.get(inboundKeyOf(bad))).toMatchObject({ outcome: "failed", text: "Given up." });
    const page = await f.stack.chatEvents.read("web", "y1", 0, null);
    if (page.kind !== "events") throw new Error("resync");
    expect(page.events.map((each) => each.message.event.type)).toEqual(["notice", "turn_end"]);
    expect((await open("y1")).next?.message.message.content).toBe("good");
  });

  it("waits before the next try", async () => {
    await f.bus.publishInbound(message("y2", "x"), PLAIN);
    const claim = await open("y2");
    await f.bus.yield({ key: key("y2"), fence: claim.fence, why: "fail", delayMs: 60_000, file: null, reason: "boom" });
    const wake = await f.bus.peek(key("y2"));
    expect(await f.stack.ready.waits({ key: key("y2"), wake: wake?.wake ?? 0, delayMs: 0 })).toBe(true);
    expect(await f.stack.upkeep.sweep((each) => f.stack.ready.waits(each))).not.toContainEqual(
      expect.objectContaining({ key: key("y2") }),
    );
  });
});

describe("hold and release", () => {
  it("takes an idle session and gives it back idle, or scheduled when mail came", async () => {
    const first = await f.stack.leases.hold(key("h1"));
    expect(first.ok).toBe(true);
    expect(await f.stack.leases.hold(key("h1"))).toEqual({ ok: false, why: "busy" });
    await f.bus.publishInbound(message("h1", "meanwhile"), PLAIN);
    expect(await f.bus.peek(key("h1"))).toBeNull();
    if (!first.ok) throw new Error("busy");
    expect(await f.stack.leases.release(key("h1"), first.claim.fence, null)).toMatchObject([{ key: key("h1") }]);
    expect((await open("h1")).next?.message.message.content).toBe("meanwhile");
  });
});

describe("park and unpark", () => {
  const park = (chat: string, claim: Claim, overrides = {}) =>
    f.bus.park({
      key: key(chat),
      fence: claim.fence,
      waitIds: ["w1"],
      untilMs: Date.now() + 60_000,
      file: null,
      inboundKeys: [claim.next?.message.key ?? ""],
      takesMail: false,
      ...overrides,
    });

  it("sleeps until the answer comes", async () => {
    await f.bus.publishInbound(message("k2", "1"), PLAIN);
    expect(await park("k2", await open("k2"))).toBe("parked");
    expect(await f.bus.peek(key("k2"))).toBeNull();
    await f.bus.publishInbound(message("k2", "2"), PLAIN);
    expect(await f.bus.peek(key("k2"))).toBeNull();
    await f.bus.unpark(key("k2"), "w1", "the answer");
    const claim = await open("k2");
    expect(claim.next?.message.message.content).toBe("1");
    expect(await f.bus.answers(key("k2"), ["w1", "w2"])).toEqual(new Map([["w1", "the answer"]]));
  });

  it("goes on at once when the answer was there first", async () => {
    await f.bus.publishInbound(message("k3", "1"), PLAIN);
    const claim = await open("k3");
    await f.bus.unpark(key("k3"), "w1", "early");
    expect(await park("k3", claim)).toBe("ready");
  });

  it("wakes when the time has come, when mail comes that it takes in, and when it is stopped", async () => {
    for (const chat of ["k4", "k5", "k6"]) await f.bus.publishInbound(message(chat, "1"), PLAIN);
    await park("k4", await open("k4"), { untilMs: Date.now() - 1 });
    await f.bus.schedule(await f.stack.upkeep.reap());
    expect(await f.bus.peek(key("k4"))).not.toBeNull();
    await park("k5", await open("k5"));
    await f.bus.publishInbound(message("k5", "2"), { ...PLAIN, wakesParked: true });
    expect(await f.bus.peek(key("k5"))).not.toBeNull();
    await park("k6", await open("k6"));
    expect(await f.bus.stop({ key: key("k6"), inboundKey: null, route: "*" })).toBe(1);
    expect((await open("k6")).next?.isStopped).toBe(true);
  });
});

describe("stop", () => {
  it("takes out what waits, marks what runs, counts both, and says the same when repeated", async () => {
    const route = routeKeyOf(eventsRoute("x1"));
    for (const text of ["1", "2", "3"]) await f.bus.publishInbound(message("x1", text), PLAIN);
    const claim = await open("x1");
    expect(await f.bus.stop({ key: key("x1"), inboundKey: "stop-1", route })).toBe(3);
    expect(await f.bus.stop({ key: key("x1"), inboundKey: "stop-1", route })).toBe(3);
    const head = claim.next?.message.key ?? "";
    const check = { key: key("x1"), fence: claim.fence, inboundKeys: [head], route, take: 3 };
    expect(await f.bus.check(check)).toEqual({ stopped: [head], taken: [] });
    expect(await settle("x1", claim)).toEqual({ kind: "stopped" });
    await f.bus.publishInbound(message("x1", "after"), PLAIN);
    expect(await settle("x1", claim, { honoursStop: true })).toMatchObject({ kind: "next", isStopped: false });
  });

  it("leaves other routes of the session alone unless all are meant", async () => {
    const here = message("x2", "here");
    const there = inbound("there", { route: outboxRoute("b"), sessionKeyOverride: key("x2") });
    await f.bus.publishInbound(here, PLAIN);
    await f.bus.publishInbound(there, PLAIN);
    expect(await f.bus.stop({ key: key("x2"), inboundKey: null, route: routeKeyOf(here.route) })).toBe(1);
    expect((await open("x2")).next?.message.message.content).toBe("there");
  });

  it("ends a message that never began, so that nobody waits for it", async () => {
    const m = message("x3", "1");
    await f.bus.publishInbound(m, PLAIN);
    expect(await f.bus.stop({ key: key("x3"), inboundKey: null, route: "*" })).toBe(1);
    expect(await f.stack.results.get(inboundKeyOf(m))).toMatchObject({
      outcome: "stopped",
      turnId: turnIdOf(inboundKeyOf(m)),
    });
    const page = await f.stack.chatEvents.read("web", "x3", 0, null);
    expect(page).toMatchObject({
      events: [{ message: { event: { type: "turn_end", outcome: "stopped", messageIds: [m.id] } } }],
    });
    expect(await f.bus.peek(key("x3"))).toBeNull();
  });
});

describe("reap and sweep", () => {
  it("takes a session whose lease ended, with a new fence", async () => {
    await f.bus.publishInbound(message("r1", "1"), PLAIN);
    const claim = await open("r1");
    await until(async () => {
      await f.bus.schedule(await f.stack.upkeep.reap());
      return f.bus.peek(key("r1"));
    });
    await expect(settle("r1", claim)).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect((await open("r1")).fence).toBeGreaterThan(claim.fence);
  });

  it("leaves a session alone while its lease is renewed, and says when it is no longer owned", async () => {
    await f.bus.publishInbound(message("r2", "1"), PLAIN);
    const claim = await open("r2");
    const started = performance.now();
    while (performance.now() - started < 2 * LEASE_MS) {
      expect(await f.stack.leases.renew([{ key: key("r2"), fence: claim.fence }])).toEqual([]);
      await f.bus.schedule(await f.stack.upkeep.reap());
    }
    expect(await settle("r2", claim)).toMatchObject({ kind: "idle" });
    expect(await f.stack.leases.renew([{ key: key("r2"), fence: claim.fence }])).toEqual([key("r2")]);
  });

  it("finds a session whose job is lost, and not one whose job waits", async () => {
    const waits = (chat: string) => async (wake: { key: string }) => wake.key !== key(chat);
    await f.bus.publishInbound(message("w1", "1"), PLAIN);
    const before = await f.bus.peek(key("w1"));
    await until(async () => (await f.stack.upkeep.sweep(waits("w1"))).find((wake) => wake.key === key("w1")));
    expect((await f.bus.peek(key("w1")))?.wake).toBe((before?.wake ?? 0) + 1);
  });
});

describe("emit and reply", () => {
  it("numbers events without a gap and repeats no emission that was seen", async () => {
    await f.bus.publishInbound(message("e1", "1"), PLAIN);
    const claim = await open("e1");
    const route = eventsRoute("e1");
    const emit = (batch: number, text: string) =>
      f.bus.emit({
        key: key("e1"),
        fence: claim.fence,
        batch,
        outgoing: [outgoing(route, `d${batch}`, text, { type: "delta", streamId: "s", offset: 0 })],
        openStream: { streamId: "s", turnId: "t", route },
      });
    await emit(1, "a");
    await emit(1, "a");
    await emit(2, "b");
    const page = await f.stack.chatEvents.read("web", "e1", 0, null);
    if (page.kind !== "events") throw new Error("resync");
    expect(page.events.map((each) => [each.seq, each.message.content])).toEqual([
      [1, "a"],
      [2, "b"],
    ]);
    await f.bus.yield({ key: key("e1"), fence: claim.fence, why: "fair", delayMs: 0, file: null, reason: "" });
    expect((await open("e1")).openStream).toEqual({ streamId: "s", turnId: "t", route });
  });

  it("replies once", async () => {
    const notice = outgoing(eventsRoute("e2"), "n1", "help", { type: "notice" });
    await f.bus.reply([notice]);
    await f.bus.reply([notice]);
    expect(await f.stack.chatEvents.head("web", "e2")).toMatchObject({ seq: 1 });
  });
});

/** The four states of a session and the scripts that move it between them, against a real Redis. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inboundKeyOf, routeKeyOf } from "../../src/bus/messages.js";
import type { Claim } from "../../src/session/ports.js";
import {
  type BusFixture,
  completed,
  createBusFixture,
  eventsRoute,
  inbound,
  outgoing,
  PLAIN,
  sessionKey,
} from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";
import { keyOf, messageIn, open, settle } from "../support/session-steps.js";

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

describe("publish", () => {
  it("stores a message once and schedules its session", async () => {
    const m = messageIn("p1", "hello");
    expect((await f.bus.publishInbound(m, PLAIN)).status).toBe("stored");
    expect((await f.bus.publishInbound(m, PLAIN)).status).toBe("duplicate");
    const claim = await open(f, "p1");
    expect(claim.next?.message.message).toEqual(m);
    expect(await settle(f, "p1", claim)).toMatchObject({ kind: "idle" });
    expect(await f.bus.peek(keyOf("p1"))).toBeNull();
    expect((await f.bus.publishInbound(m, PLAIN)).status).toBe("duplicate");
  });

  it("treats the same id in another chat, or of an edit, as another message", async () => {
    const m = messageIn("p2", "hello", { id: "7" });
    const edit = { ...m, kind: "edit" as const };
    expect(inboundKeyOf(m)).not.toBe(inboundKeyOf(edit));
    expect(inboundKeyOf(m)).not.toBe(inboundKeyOf(messageIn("p3", "hello", { id: "7" })));
    await f.bus.publishInbound(m, PLAIN);
    expect((await f.bus.publishInbound(edit, PLAIN)).status).toBe("stored");
  });

  it("refuses whole over the bound, and takes in again once there is room", async () => {
    const small = await createBusFixture(redis.address, { maxMailbox: 2 });
    const [one, two, three] = ["1", "2", "3"].map((text) => messageIn("full", text));
    if (!one || !two || !three) throw new Error("no messages");
    await small.bus.publishInbound(one, PLAIN);
    await small.bus.publishInbound(two, PLAIN);
    await expect(small.bus.publishInbound(three, PLAIN)).rejects.toMatchObject({ code: "BUS_OVERLOADED" });
    const wake = await small.bus.peek(keyOf("full"));
    const taken = await small.stack.leases.open(keyOf("full"), wake?.wake ?? -1);
    if (!taken.ok || taken.claim.next === null) throw new Error("not opened");
    const done = [{ inboundKey: taken.claim.next.message.key, result: completed("") }];
    const { fence } = taken.claim;
    const rest = {
      key: keyOf("full"),
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
    const m = messageIn("odd", "a \ud800 b \u0000 |\n", { sessionKeyOverride: sessionKey(`x ${"\ud83d"} :{}*\n`) });
    const { sessionKey: k } = await f.bus.publishInbound(m, PLAIN);
    const wake = await f.bus.peek(k);
    const taken = await f.stack.leases.open(k, wake?.wake ?? -1);
    expect(taken.ok && taken.claim.next?.message.message.content).toBe("a \ud800 b \u0000 |\n");
  });

  it("joins fragments: each slides the wait, a message that does not wait ends it", async () => {
    const quick = { ...PLAIN, debounceMs: 60_000 };
    await f.bus.publishInbound(messageIn("deb", "one"), quick);
    const first = await f.bus.peek(keyOf("deb"));
    await f.bus.publishInbound(messageIn("deb", "two"), quick);
    const second = await f.bus.peek(keyOf("deb"));
    expect(second?.wake).toBe((first?.wake ?? 0) + 1);
    expect(second?.delayMs).toBeGreaterThan(50_000);
    await f.bus.publishInbound(messageIn("deb", "/now"), PLAIN);
    expect((await f.bus.peek(keyOf("deb")))?.delayMs).toBe(0);
  });
});

describe("open", () => {
  it("answers stale to an old wake number and to a session that runs", async () => {
    await f.bus.publishInbound(messageIn("o1", "a"), PLAIN);
    const wake = await f.bus.peek(keyOf("o1"));
    expect(await f.stack.leases.open(keyOf("o1"), (wake?.wake ?? 0) - 1)).toEqual({ ok: false, why: "stale" });
    await open(f, "o1");
    expect(await f.stack.leases.open(keyOf("o1"), wake?.wake ?? 0)).toEqual({ ok: false, why: "stale" });
  });

  it("gives fences that only grow", async () => {
    await f.bus.publishInbound(messageIn("o2", "a"), PLAIN);
    const first = await open(f, "o2");
    await f.bus.yield({ key: keyOf("o2"), fence: first.fence, why: "fair", delayMs: 0, file: null, reason: "" });
    const second = await open(f, "o2");
    expect(second.fence).toBeGreaterThan(first.fence);
    await expect(settle(f, "o2", first)).rejects.toMatchObject({ code: "LEASE_LOST" });
  });

  it("keeps a bound of turns over all processes and calls the one that waited longest", async () => {
    const g = await createBusFixture(redis.address, { maxTurns: 1 });
    const claims: Claim[] = [];
    const tryOpen = async (chat: string) => {
      const wake = await g.bus.peek(keyOf(chat));
      const taken = await g.stack.leases.open(keyOf(chat), wake?.wake ?? -1);
      if (taken.ok) claims.push(taken.claim);
      return taken.ok ? "ok" : taken.why;
    };
    for (const chat of ["s1", "s2", "s3"]) await g.bus.publishInbound(messageIn(chat, chat), PLAIN);
    expect(await tryOpen("s1")).toBe("ok");
    expect(await tryOpen("s2")).toBe("full");
    expect(await tryOpen("s3")).toBe("full");
    const [claim] = claims;
    if (!claim?.next) throw new Error("nothing");
    const done = [{ inboundKey: claim.next.message.key, result: completed("") }];
    const settled = await g.bus.settle({
      key: keyOf("s1"),
      fence: claim.fence,
      settled: done,
      outgoing: [],
      file: null,
      afterwards: "next",
      honoursStop: false,
    });
    expect(settled).toMatchObject({ kind: "idle", wakes: [{ key: keyOf("s2") }] });
    expect(await tryOpen("s3")).toBe("full");
    expect(await tryOpen("s2")).toBe("ok");
    await g.close();
  });
});

describe("settle", () => {
  it("sends answers, results and the next message in one step, and repeated nothing twice", async () => {
    const [one, two] = [messageIn("t1", "1"), messageIn("t1", "2")];
    await f.bus.publishInbound(one, PLAIN);
    await f.bus.publishInbound(two, PLAIN);
    const claim = await open(f, "t1");
    const answer = outgoing(eventsRoute("t1"), "ans-1", "hi", { type: "final", streamId: null });
    expect(await settle(f, "t1", claim, { outgoing: [answer] })).toMatchObject({
      kind: "next",
      message: { message: two },
    });
    expect(await settle(f, "t1", claim, { outgoing: [answer] })).toMatchObject({
      kind: "next",
      message: { message: two },
    });
    const page = await f.stack.chatEvents.read("web", "t1", 0, null);
    expect(page).toMatchObject({ kind: "events", events: [{ seq: 1, message: { content: "hi" } }] });
    expect(await f.stack.results.get(inboundKeyOf(one))).toMatchObject({ text: "done" });
  });

  it("keeps holding with `stay`", async () => {
    await f.bus.publishInbound(messageIn("t2", "1"), PLAIN);
    const claim = await open(f, "t2");
    expect(await settle(f, "t2", claim, { afterwards: "stay" })).toMatchObject({ kind: "stay" });
    expect(
      await f.bus.check({ key: keyOf("t2"), fence: claim.fence, inboundKeys: [], route: "", take: 0 }),
    ).toBeDefined();
    expect(await f.stack.leases.release(keyOf("t2"), claim.fence, null)).toEqual([]);
  });

  it("remembers the session file for the next holder", async () => {
    await f.bus.publishInbound(messageIn("t3", "1"), PLAIN);
    const file = { inode: "18446744073709551615", bytes: 12, fence: 3 };
    await settle(f, "t3", await open(f, "t3"), { file });
    await f.bus.publishInbound(messageIn("t3", "2"), PLAIN);
    expect((await open(f, "t3")).file).toEqual(file);
  });
});

describe("check", () => {
  it("takes in newer messages of the same route up to the first that must be alone", async () => {
    const route = eventsRoute("k1");
    for (const text of ["1", "2", "3"]) await f.bus.publishInbound(messageIn("k1", text), PLAIN);
    const other = inbound("other", { route: eventsRoute("elsewhere"), sessionKeyOverride: keyOf("k1") });
    await f.bus.publishInbound(other, PLAIN);
    await f.bus.publishInbound(messageIn("k1", "/new"), { ...PLAIN, joins: false });
    await f.bus.publishInbound(messageIn("k1", "5"), PLAIN);
    const claim = await open(f, "k1");
    const check = { key: keyOf("k1"), fence: claim.fence, route: routeKeyOf(route) };
    const first = await f.bus.check({ ...check, inboundKeys: [claim.next?.message.key ?? ""], take: 9 });
    expect(first.taken.map((each) => each.message.content)).toEqual(["2", "3"]);
  });
});

describe("yield", () => {
  it("counts tries of the oldest message; the third gives it up and says so, the next one goes on", async () => {
    const [bad, good] = [messageIn("y1", "bad"), messageIn("y1", "good")];
    await f.bus.publishInbound(bad, PLAIN);
    await f.bus.publishInbound(good, PLAIN);
    const fail = async () => {
      const claim = await open(f, "y1");
      return f.bus.yield({ key: keyOf("y1"), fence: claim.fence, why: "fail", delayMs: 0, file: null, reason: "boom" });
    };
    expect(await fail()).toBe(false);
    const claim = await open(f, "y1");
    expect(claim.attempts).toBe(1);
    await f.bus.yield({ key: keyOf("y1"), fence: claim.fence, why: "fair", delayMs: 0, file: null, reason: "" });
    expect(await fail()).toBe(false);
    expect(await fail()).toBe(true);
    expect(await f.stack.results.get(inboundKeyOf(bad))).toMatchObject({ outcome: "failed", text: "Given up." });
    const page = await f.stack.chatEvents.read("web", "y1", 0, null);
    if (page.kind !== "events") throw new Error("resync");
    expect(page.events.map((each) => each.message.event.type)).toEqual(["notice", "turn_end"]);
    expect((await open(f, "y1")).next?.message.message.content).toBe("good");
  });

  it("waits before the next try", async () => {
    await f.bus.publishInbound(messageIn("y2", "x"), PLAIN);
    const claim = await open(f, "y2");
    await f.bus.yield({
      key: keyOf("y2"),
      fence: claim.fence,
      why: "fail",
      delayMs: 60_000,
      file: null,
      reason: "boom",
    });
    const wake = await f.bus.peek(keyOf("y2"));
    expect(await f.stack.ready.waits({ key: keyOf("y2"), wake: wake?.wake ?? 0, delayMs: 0 })).toBe(true);
    expect(await f.stack.upkeep.sweep((each) => f.stack.ready.waits(each))).not.toContainEqual(
      expect.objectContaining({ key: keyOf("y2") }),
    );
  });
});

describe("hold and release", () => {
  it("takes an idle session and gives it back idle, or scheduled when mail came", async () => {
    const first = await f.stack.leases.hold(keyOf("h1"));
    expect(first.ok).toBe(true);
    expect(await f.stack.leases.hold(keyOf("h1"))).toEqual({ ok: false, why: "busy" });
    await f.bus.publishInbound(messageIn("h1", "meanwhile"), PLAIN);
    expect(await f.bus.peek(keyOf("h1"))).toBeNull();
    if (!first.ok) throw new Error("busy");
    expect(await f.stack.leases.release(keyOf("h1"), first.claim.fence, null)).toMatchObject([{ key: keyOf("h1") }]);
    expect((await open(f, "h1")).next?.message.message.content).toBe("meanwhile");
  });
});

describe("park and unpark", () => {
  const park = (chat: string, claim: Claim, overrides = {}) =>
    f.bus.park({
      key: keyOf(chat),
      fence: claim.fence,
      waitIds: ["w1"],
      untilMs: Date.now() + 60_000,
      file: null,
      inboundKeys: [claim.next?.message.key ?? ""],
      takesMail: false,
      ...overrides,
    });

  it("sleeps until the answer comes", async () => {
    await f.bus.publishInbound(messageIn("k2", "1"), PLAIN);
    expect(await park("k2", await open(f, "k2"))).toBe("parked");
    expect(await f.bus.peek(keyOf("k2"))).toBeNull();
    await f.bus.publishInbound(messageIn("k2", "2"), PLAIN);
    expect(await f.bus.peek(keyOf("k2"))).toBeNull();
    await f.bus.unpark(keyOf("k2"), "w1", "the answer");
    const claim = await open(f, "k2");
    expect(claim.next?.message.message.content).toBe("1");
    expect(await f.bus.answers(keyOf("k2"), ["w1", "w2"])).toEqual(new Map([["w1", "the answer"]]));
  });

  it("goes on at once when the answer was there first", async () => {
    await f.bus.publishInbound(messageIn("k3", "1"), PLAIN);
    const claim = await open(f, "k3");
    await f.bus.unpark(keyOf("k3"), "w1", "early");
    expect(await park("k3", claim)).toBe("ready");
  });

  it("wakes when the time has come, when mail comes that it takes in, and when it is stopped", async () => {
    for (const chat of ["k4", "k5", "k6"]) await f.bus.publishInbound(messageIn(chat, "1"), PLAIN);
    await park("k4", await open(f, "k4"), { untilMs: Date.now() - 1 });
    await f.bus.schedule(await f.stack.upkeep.reap());
    expect(await f.bus.peek(keyOf("k4"))).not.toBeNull();
    await park("k5", await open(f, "k5"));
    await f.bus.publishInbound(messageIn("k5", "2"), { ...PLAIN, wakesParked: true });
    expect(await f.bus.peek(keyOf("k5"))).not.toBeNull();
    await park("k6", await open(f, "k6"));
    expect(await f.bus.stop({ key: keyOf("k6"), inboundKey: null, route: "*" })).toBe(1);
    expect((await open(f, "k6")).next?.isStopped).toBe(true);
  });
});

/** How sessions are stopped, taken from the dead and found again, and how events are numbered, against a real Redis. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inboundKeyOf, routeKeyOf, turnIdOf } from "../../src/bus/messages.js";
import {
  type BusFixture,
  createBusFixture,
  eventsRoute,
  inbound,
  LEASE_MS,
  outboxRoute,
  outgoing,
  PLAIN,
  until,
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

describe("stop", () => {
  it("takes out what waits, marks what runs, counts both, and says the same when repeated", async () => {
    const route = routeKeyOf(eventsRoute("x1"));
    for (const text of ["1", "2", "3"]) await f.bus.publishInbound(messageIn("x1", text), PLAIN);
    const claim = await open(f, "x1");
    expect(await f.bus.stop({ key: keyOf("x1"), inboundKey: "stop-1", route })).toBe(3);
    expect(await f.bus.stop({ key: keyOf("x1"), inboundKey: "stop-1", route })).toBe(3);
    const head = claim.next?.message.key ?? "";
    const check = { key: keyOf("x1"), fence: claim.fence, inboundKeys: [head], route, take: 3 };
    expect(await f.bus.check(check)).toEqual({ stopped: [head], taken: [] });
    expect(await settle(f, "x1", claim)).toEqual({ kind: "stopped" });
    await f.bus.publishInbound(messageIn("x1", "after"), PLAIN);
    expect(await settle(f, "x1", claim, { honoursStop: true })).toMatchObject({ kind: "next", isStopped: false });
  });

  it("leaves other routes of the session alone unless all are meant", async () => {
    const here = messageIn("x2", "here");
    const there = inbound("there", { route: outboxRoute("b"), sessionKeyOverride: keyOf("x2") });
    await f.bus.publishInbound(here, PLAIN);
    await f.bus.publishInbound(there, PLAIN);
    expect(await f.bus.stop({ key: keyOf("x2"), inboundKey: null, route: routeKeyOf(here.route) })).toBe(1);
    expect((await open(f, "x2")).next?.message.message.content).toBe("there");
  });

  it("ends a message that never began, so that nobody waits for it", async () => {
    const m = messageIn("x3", "1");
    await f.bus.publishInbound(m, PLAIN);
    expect(await f.bus.stop({ key: keyOf("x3"), inboundKey: null, route: "*" })).toBe(1);
    expect(await f.stack.results.get(inboundKeyOf(m))).toMatchObject({
      outcome: "stopped",
      turnId: turnIdOf(inboundKeyOf(m)),
    });
    const page = await f.stack.chatEvents.read("web", "x3", 0, null);
    expect(page).toMatchObject({
      events: [{ message: { event: { type: "turn_end", outcome: "stopped", messageIds: [m.id] } } }],
    });
    expect(await f.bus.peek(keyOf("x3"))).toBeNull();
  });
});

describe("reap and sweep", () => {
  it("takes a session whose lease ended, with a new fence", async () => {
    await f.bus.publishInbound(messageIn("r1", "1"), PLAIN);
    const claim = await open(f, "r1");
    await until(async () => {
      await f.bus.schedule(await f.stack.upkeep.reap());
      return f.bus.peek(keyOf("r1"));
    });
    await expect(settle(f, "r1", claim)).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect((await open(f, "r1")).fence).toBeGreaterThan(claim.fence);
  });

  it("leaves a session alone while its lease is renewed, and says when it is no longer owned", async () => {
    await f.bus.publishInbound(messageIn("r2", "1"), PLAIN);
    const claim = await open(f, "r2");
    const started = performance.now();
    while (performance.now() - started < 2 * LEASE_MS) {
      expect(await f.stack.leases.renew([{ key: keyOf("r2"), fence: claim.fence }])).toEqual([]);
      await f.bus.schedule(await f.stack.upkeep.reap());
    }
    expect(await settle(f, "r2", claim)).toMatchObject({ kind: "idle" });
    expect(await f.stack.leases.renew([{ key: keyOf("r2"), fence: claim.fence }])).toEqual([keyOf("r2")]);
  });

  it("finds a session whose job is lost, and not one whose job waits", async () => {
    const waits = (chat: string) => async (wake: { key: string }) => wake.key !== keyOf(chat);
    await f.bus.publishInbound(messageIn("w1", "1"), PLAIN);
    const before = await f.bus.peek(keyOf("w1"));
    await until(async () => (await f.stack.upkeep.sweep(waits("w1"))).find((wake) => wake.key === keyOf("w1")));
    expect((await f.bus.peek(keyOf("w1")))?.wake).toBe((before?.wake ?? 0) + 1);
  });
});

describe("emit and reply", () => {
  it("numbers events without a gap and repeats no emission that was seen", async () => {
    await f.bus.publishInbound(messageIn("e1", "1"), PLAIN);
    const claim = await open(f, "e1");
    const route = eventsRoute("e1");
    const emit = (batch: number, text: string) =>
      f.bus.emit({
        key: keyOf("e1"),
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
    await f.bus.yield({ key: keyOf("e1"), fence: claim.fence, why: "fair", delayMs: 0, file: null, reason: "" });
    expect((await open(f, "e1")).openStream).toEqual({ streamId: "s", turnId: "t", route });
  });

  it("replies once", async () => {
    const notice = outgoing(eventsRoute("e2"), "n1", "help", { type: "notice" });
    await f.bus.reply([notice]);
    await f.bus.reply([notice]);
    expect(await f.stack.chatEvents.head("web", "e2")).toMatchObject({ seq: 1 });
  });
});

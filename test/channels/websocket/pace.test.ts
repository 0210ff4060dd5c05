/** How fast a connection may send: the bucket by itself, and what a client is told and loses that sends too fast. */
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { Pace } from "../../../src/channels/websocket/pace.js";
import { TestGateway } from "./harness.js";

const LIMITS = { burstFrames: 4, framesPerSecond: 10, maxRefusedFrames: 3 };

/** A bucket whose clock stands where a test puts it. */
function paced(limits = LIMITS) {
  const clock = { ms: 0 };
  const pace = new Pace(limits, () => clock.ms);
  return { clock, take: (count = 1) => Array.from({ length: count }, () => pace.take()) };
}

describe("the bucket", () => {
  it("passes a burst, refuses what comes on top, and passes what was told to come later", () => {
    const { clock, take } = paced();
    expect(take(4).every(({ ok }) => ok)).toBe(true);
    expect(take(2)).toEqual([
      { ok: false, retryAfterMs: 100, isTooMuch: false },
      { ok: false, retryAfterMs: 200, isTooMuch: false },
    ]);
    for (const ms of [100, 200]) {
      clock.ms = ms;
      expect(take()).toEqual([{ ok: true }]);
    }
    expect(take()).toMatchObject([{ ok: false }]);
  });

  it("finds a connection too much that does not rest, and forgets it after a rest", () => {
    const { clock, take } = paced();
    take(4);
    expect(take(4).map((verdict) => !verdict.ok && verdict.isTooMuch)).toEqual([false, false, false, true]);
    clock.ms = 400;
    expect(take(5).map(({ ok }) => ok)).toEqual([true, true, true, true, false]);
    expect(take(1)).toMatchObject([{ ok: false, isTooMuch: false }]);
  });

  it("never passes more than the burst and what was refilled, over any span", () => {
    const gaps = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 })), { maxLength: 80 });
    fc.assert(
      fc.property(gaps, (waits) => {
        const { clock, take } = paced();
        const passed = waits.flatMap((wait) => {
          clock.ms += wait;
          return take().flatMap(({ ok }) => (ok ? [clock.ms] : []));
        });
        for (const [first, from] of passed.entries())
          for (const [last, to] of passed.entries()) {
            const most = LIMITS.burstFrames + ((to - from) / 1000) * LIMITS.framesPerSecond;
            if (last >= first && last - first + 1 > most + 1e-6) return false;
          }
        return true;
      }),
    );
  });
});

describe("a connection that sends too fast", () => {
  let gateway: TestGateway;
  afterEach(() => gateway.close());

  /** Refills so slowly that a test never sees it. */
  const SLOW = { burstFrames: 5, framesPerSecond: 0.001, maxRefusedFrames: 10 };

  it("is told so about each frame, in its turn, and those frames are not carried out", async () => {
    gateway = await TestGateway.start({ limits: SLOW });
    const { client, chatId } = await gateway.open();
    for (let i = 1; i <= 7; i += 1) client.send({ type: "message", chat_id: chatId, content: `${i}`, id: `m${i}` });
    client.send("no id");
    await client.until(() => client.frames.filter(({ event }) => event === "error").length === 3, "three errors");
    const answers = client.frames.slice(1).map(({ event, code, id, chat_id }) => [event, code, id, chat_id]);
    expect(answers).toEqual([
      ...[1, 2, 3, 4, 5].map((i) => ["message_accepted", undefined, `m${i}`, chatId]),
      ...[6, 7].map((i) => ["error", "rate_limited", `m${i}`, chatId]),
      ["error", "rate_limited", undefined, undefined],
    ]);
    const waits = client.frames.filter(({ event }) => event === "error").map((frame) => Number(frame.retry_after_ms));
    expect(waits.every((ms, i) => ms > (waits[i - 1] ?? 0))).toBe(true);
    expect(gateway.accepted.map(({ id }) => id)).toEqual(["m1", "m2", "m3", "m4", "m5"]);
  });

  it("is closed with 1013 when it goes on, by frames of any kind or by pings, and others are not disturbed", async () => {
    gateway = await TestGateway.start({ limits: SLOW });
    const floods = [
      (send: (frame: unknown) => void) => send("   "),
      (send: (frame: unknown) => void) => send({ type: "ping" }),
      (send: (frame: unknown) => void) => send(Buffer.from([1])),
    ];
    for (const flood of floods) {
      const { client } = await gateway.open();
      for (let i = 0; i < 20; i += 1) flood((frame) => client.send(frame));
      expect(await client.closed()).toBe(1013);
    }
    const { client: pinger } = await gateway.open();
    for (let i = 0; i < 20; i += 1) pinger.socket.ping();
    expect(await pinger.closed()).toBe(1013);
    const { client } = await gateway.open();
    client.send("fine");
    await client.frame("message_accepted");
    expect(gateway.accepted.map(({ content }) => content)).toEqual(["fine"]);
  });

  it("may send again what was refused, once it has waited", async () => {
    gateway = await TestGateway.start({ limits: { burstFrames: 2, framesPerSecond: 20, maxRefusedFrames: 50 } });
    const { client, chatId } = await gateway.open();
    const frame = (id: string) => ({ type: "message", chat_id: chatId, content: id, id });
    for (const id of ["a", "b", "c"]) client.send(frame(id));
    const { retry_after_ms: waitMs } = await client.frame("error", { code: "rate_limited", id: "c" });
    await new Promise((resolve) => setTimeout(resolve, Number(waitMs)));
    client.send(frame("c"));
    await client.frame("message_accepted", { id: "c" });
  });
});

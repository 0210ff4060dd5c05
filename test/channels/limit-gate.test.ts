/** The way to the limits: one line a bucket, in order; what may be left out stands in none. */
import pino from "pino";
import { beforeEach, expect, it } from "vitest";
import { LimitGate } from "../../src/channels/limit-gate.js";
import type { RateLimit } from "../../src/channels/ports.js";
import { ManualClock, settle } from "../fakes/manual-clock.js";
import { MemoryLimiter } from "../fakes/memory-limiter.js";

let clock: ManualClock;
let limiter: MemoryLimiter;
let gate: LimitGate;
let passed: string[];
beforeEach(() => {
  clock = new ManualClock();
  limiter = new MemoryLimiter(() => clock.nowMs());
  gate = new LimitGate({ account: "bot", limiter, clock, logger: pino({ level: "silent" }) });
  passed = [];
});

const never = new AbortController().signal;
const bot = (count = 1): RateLimit => ({ bucket: "bot", count, perMs: 1_000, cost: 1 });
const chat = (name: string): RateLimit => ({ bucket: `chat:${name}`, count: 1, perMs: 5_000, cost: 1 });

function send(name: string, limits: readonly RateLimit[], signal = never, untilMs = 1e9): Promise<boolean> {
  const passing = gate.pass(limits, { signal, untilMs });
  void passing.then((isThrough) => passed.push(isThrough ? name : `not ${name}`));
  return passing;
}

it("who comes later stands behind, and does not even ask", async () => {
  for (const name of ["a", "b", "c"]) void send(name, [bot()]);
  await settle();
  const asked = limiter.asked;
  void send("d", [bot()]);
  await settle();
  expect(limiter.asked).toBe(asked);
  await clock.advance(3_000);
  expect(passed).toEqual(["a", "b", "c", "d"]);
});

it("who waits for its own chat holds up nobody who waits for the bot", async () => {
  await send("a1", [bot(), chat("a")]);
  void send("a2", [bot(), chat("a")]);
  for (const name of ["b", "c"]) void send(name, [bot(), chat(name)]);
  await clock.advance(2_000);
  expect(passed).toEqual(["a1", "b", "c"]);
  await clock.advance(3_000);
  expect(passed).toEqual(["a1", "b", "c", "a2"]);
});

it("who stands first and then has to wait for its own chat lets the others by", async () => {
  await send("a", [bot()]);
  void send("b", [bot(), chat("b")]);
  await settle();
  void send("c", [bot(), chat("c")]);
  limiter.parked.set("chat:b", 60_000);
  await clock.advance(2_000);
  expect(passed).toEqual(["a", "c"]);
  await clock.advance(58_000);
  expect(passed).toEqual(["a", "c", "b"]);
});

it("who gives up leaves the line, and the next one moves up", async () => {
  const gone = new AbortController();
  await send("a", [bot()]);
  void send("b", [bot()], gone.signal);
  void send("c", [bot()], gone.signal);
  void send("d", [bot()]);
  await settle();
  gone.abort();
  await clock.advance(1_000);
  expect(passed).toEqual(["a", "not b", "not c", "d"]);
});

it("nobody waits longer than it is willing to", async () => {
  limiter.parked.set("bot", 60_000);
  void send("a", [bot()], never, 10_000);
  await clock.advance(10_000);
  expect(passed).toEqual(["not a"]);
});

it("what may be left out never steps in front of a line, nor takes the last of the room", async () => {
  await send("a", [bot(2)]);
  expect(await gate.tryPass([bot(2)])).toBe(0);
  void send("b", [bot(2)]);
  await settle();
  clock.stall(1_000);
  const asked = limiter.asked;
  expect(await gate.tryPass([bot(2)])).toBeGreaterThan(0);
  expect(limiter.asked).toBe(asked);
  await clock.advance(0);
  expect(passed).toEqual(["a", "b"]);
  for (let i = 0; i < 8; i += 1) expect(await gate.tryPass([{ ...bot(10), bucket: "wide" }])).toBe(0);
  expect(await gate.tryPass([{ ...bot(10), bucket: "wide" }])).toBeGreaterThan(0);
  expect(await send("c", [{ ...bot(10), bucket: "wide" }])).toBe(true);
});

it("what has no limits asks nobody", async () => {
  expect([await send("a", []), await gate.tryPass([]), limiter.asked]).toEqual([true, 0, 0]);
  await gate.park([], 1_000);
  expect(limiter.parked.size).toBe(0);
});

/**
 * The circuit breaker: when it opens, whom it lets through, and what closes it.
 */
import { expect, test } from "vitest";
import { type CallEnd, CircuitBreaker } from "../../../src/agent/providers/breaker.js";
import { ManualClock } from "../../fakes/manual-clock.js";

function start() {
  const clock = new ManualClock();
  const opened: number[] = [];
  const breaker = new CircuitBreaker({ nowMs: () => clock.nowMs(), onOpen: (openMs) => opened.push(openMs) });
  const call = (end: CallEnd) => {
    const leave = breaker.enter();
    leave?.(end);
    return leave !== null;
  };
  return { clock, opened, breaker, call };
}

function open() {
  const started = start();
  for (let i = 0; i < 3; i += 1) expect(started.call("failure")).toBe(true);
  return started;
}

test("three failures open it for a minute, and not less", () => {
  const { clock, call, opened } = open();
  expect(opened).toEqual([60_000]);
  clock.stall(59_999);
  expect(call("success")).toBe(false);
  clock.stall(1);
  expect(call("success")).toBe(true);
});

test("a success between failures sets the count back; what says nothing does not", () => {
  const { call, opened } = start();
  for (const end of ["failure", "failure", "success", "failure", "neither", "failure"] as const) call(end);
  expect(opened).toEqual([]);
  call("failure");
  expect(opened).toHaveLength(1);
});

test("after the minute one probe at a time: its success closes", () => {
  const { clock, breaker, call } = open();
  clock.stall(60_000);
  const probe = breaker.enter();
  expect(breaker.enter()).toBeNull();
  probe?.("success");
  expect([call("failure"), call("failure"), call("success")]).toEqual([true, true, true]);
});

test("a probe's failure opens it for another minute at once", () => {
  const { clock, call, opened } = open();
  clock.stall(60_000);
  expect(call("failure")).toBe(true);
  expect(opened).toHaveLength(2);
  expect(call("success")).toBe(false);
  clock.stall(60_000);
  expect(call("success")).toBe(true);
});

test("a probe that says nothing leaves the next one its turn", () => {
  const { clock, breaker, call } = open();
  clock.stall(60_000);
  expect(call("neither")).toBe(true);
  expect(breaker.enter()).not.toBeNull();
});

test("calls that began before it opened: their failures do not prolong it, a success closes it", () => {
  const { clock, breaker, call, opened } = start();
  const early = [breaker.enter(), breaker.enter()];
  for (let i = 0; i < 3; i += 1) call("failure");
  clock.stall(30_000);
  early[0]?.("failure");
  expect(opened).toHaveLength(1);
  expect(call("neither")).toBe(false);
  early[1]?.("success");
  expect(call("neither")).toBe(true);
});

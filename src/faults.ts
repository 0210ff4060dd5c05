/**
 * Named places where a test may kill or freeze the process. A place is reached by calling the hook that the composition
 * root hands in; in production the hook does nothing. This file decides nothing and reads no environment:
 * `src/config` parses `NANOGATE_FAULT`, `gateway.ts` builds the hook.
 */

/** The places, in the order in which a message passes them. */
export const FAULT_POINTS = [
  "publish.stored",
  "publish.queued",
  "wake.fetched",
  "lease.opened",
  "session.fenced",
  "append.before",
  "append.after",
  "tool.finished",
  "emit.before",
  "turn.finished",
  "settle.before",
  "settle.after",
  "yield.stored",
  "reap.stored",
  "rewrite.linked",
  "rewrite.renamed",
  "deliver.sent",
] as const;
export type FaultPoint = (typeof FAULT_POINTS)[number];

/** Called at each place; returns, unless a test asked for the process to end or stop here. */
export type FaultHook = (point: FaultPoint) => void;

/** `kill` ends the process with SIGKILL, `stop` freezes it with SIGSTOP, each at the `nth` passing (from 1). */
export interface Fault {
  action: "kill" | "stop";
  point: FaultPoint;
  nth: number;
}

/** The hook of production. */
export const noFaults: FaultHook = () => {};

/** A hook that carries out one fault. */
export function createFaultHook(fault: Fault): FaultHook {
  let passed = 0;
  return (point) => {
    if (point !== fault.point) return;
    passed += 1;
    if (passed === fault.nth) process.kill(process.pid, fault.action === "kill" ? "SIGKILL" : "SIGSTOP");
  };
}

/**
 * Under what somebody writes for an account, and how a write is insisted on. It owns nothing. Invariant: nothing new is
 * begun once the account may be another's.
 */
import { hasCode } from "../errors.js";
import type { Clock } from "./clock.js";

/** Under what deliveries and live views run. */
export interface Authority {
  fence: number;
  /** Aborts when sending must end at once: the ownership was lost, or the time to drain is over. */
  signal: AbortSignal;
  /** Aborts when nothing new is begun: a part that waits for its next try waits no longer. */
  ending: AbortSignal;
  /** Asked before each send: after a stall of the process the signals may come late. */
  isHeld(): boolean;
}

/** Tries until Redis answers: what was sent cannot be taken back. At least once, also when the authority has ended. */
export async function insist<T>(clock: Clock, authority: Authority, work: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!hasCode(error, "BUS_UNAVAILABLE") || authority.signal.aborted) throw error;
      await clock.sleep(Math.min(2_000, 100 * 2 ** tries), authority.signal);
    }
  }
}

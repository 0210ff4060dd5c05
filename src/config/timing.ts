/**
 * The times that follow from the length of a lease. Pure; nothing here waits or reads a clock. Invariant: a holder
 * renews at least twice before it aborts by itself, and aborts before anyone else may take its session.
 */

/** Every time is in ms. */
export interface Timing {
  readonly leaseMs: number;
  /** How often a process renews its leases. */
  readonly renewEveryMs: number;
  /** So long after the last renewal a holder aborts its work by itself. */
  readonly abortAfterMs: number;
  /** How often ended leases are looked for. */
  readonly reapEveryMs: number;
  /** How long a session may stay scheduled before its job is looked at. */
  readonly sweepAfterMs: number;
  /** A process that has got nothing done for so long is not ready for work. */
  readonly stuckAfterMs: number;
}

/** All times of a lease of `leaseMs`. */
export function timingOf(leaseMs: number): Timing {
  return Object.freeze({
    leaseMs,
    renewEveryMs: leaseMs / 3,
    abortAfterMs: leaseMs * 0.8,
    reapEveryMs: Math.min(1000, leaseMs / 5),
    sweepAfterMs: Math.min(3000, leaseMs),
    stuckAfterMs: leaseMs + 2000,
  });
}

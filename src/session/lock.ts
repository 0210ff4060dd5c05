/**
 * Leases as scopes: `withLease` takes a session, runs the work, and gives the session back, whatever happened. One timer
 * renews all leases of the process. It decides nothing about messages. Invariant: `assertHeld` is true only while no
 * other process can hold the session; it asks the clock itself, since after a stalled event loop a write may run before the
 * timer that would have noticed.
 */
import type { SessionKey } from "../bus/messages.js";
import { hasCode, NanogateError } from "../errors.js";
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Claim, FileState, Lease, LeaseStore, Scheduled } from "./ports.js";

/** Times of leases, ms. */
export interface LeaseTiming {
  /** How often all leases of the process are renewed. */
  renewEveryMs: number;
  /** So long after its last renewal a lease counts as lost. */
  abortAfterMs: number;
}

export interface SessionLockDeps {
  leases: LeaseStore;
  timing: LeaseTiming;
  /** Monotonic clock, ms. */
  monotonicMs: () => number;
  /** Adds jobs for sessions that became ready when one was given back. */
  schedule: (ready: readonly Scheduled[]) => Promise<void>;
  faults: FaultHook;
  logger: Logger;
  metrics: Metrics;
}

class HeldLease implements Lease {
  readonly #abort = new AbortController();
  #fence: number;
  #sureUntil: number;
  /** Given back already, by a settlement, a yield or a park. */
  hasLeft = false;

  constructor(
    readonly key: SessionKey,
    readonly deps: SessionLockDeps,
    claim: Claim,
    takenAtMs: number,
  ) {
    this.#fence = claim.fence;
    this.#sureUntil = takenAtMs + deps.timing.abortAfterMs;
  }

  get fence(): number {
    return this.#fence;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  assertHeld(): void {
    this.expireIfDue();
    this.signal.throwIfAborted();
  }

  async raise(atLeast: number): Promise<void> {
    this.#fence = await this.deps.leases.raise(this.key, this.#fence, atLeast);
  }

  renewed(sentAtMs: number): void {
    this.#sureUntil = sentAtMs + this.deps.timing.abortAfterMs;
  }

  lose(why: string): void {
    if (this.signal.aborted) return;
    this.deps.metrics.count("lease_losses_total", {});
    this.#abort.abort(new NanogateError("LEASE_LOST", `The lease of session ${this.key} is lost: ${why}.`));
  }

  expireIfDue(): void {
    if (this.deps.monotonicMs() >= this.#sureUntil) this.lose("it was not renewed in time");
  }
}

/** What the work under a lease is given. */
export interface Held {
  lease: Lease;
  claim: Claim;
  /** Says that a settlement, a yield or a park has given the session back. */
  left(): void;
  /** What a plain release tells of the session file. */
  file: FileState | null;
}

export type WithLease<T> = { held: true; result: T } | { held: false; why: "stale" | "full" | "busy" };

export class SessionLock {
  readonly #deps: SessionLockDeps;
  readonly #held = new Set<HeldLease>();
  #timers: NodeJS.Timeout[] = [];

  constructor(deps: SessionLockDeps) {
    this.#deps = deps;
  }

  /** Says that this process lives, and begins to renew. Returns once the first sign of life is stored. */
  async start(): Promise<void> {
    await this.#deps.leases.renew([]);
    const { renewEveryMs } = this.#deps.timing;
    this.#timers = [
      setInterval(() => void this.#renew(), renewEveryMs),
      setInterval(() => {
        for (const lease of this.#held) lease.expireIfDue();
      }, renewEveryMs / 3),
    ];
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** Sessions this process holds. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Takes a session (with `wake`: as a scheduled one, for its mail; without: for work without a message), runs `work`,
   * gives it back. `work` ends early by the lease's signal when the lease is lost.
   */
  async withLease<T>(
    key: SessionKey,
    options: { wake?: number },
    work: (held: Held) => Promise<T>,
  ): Promise<WithLease<T>> {
    const { leases, monotonicMs } = this.#deps;
    const takenAtMs = monotonicMs();
    const taken = options.wake === undefined ? await leases.hold(key) : await leases.open(key, options.wake);
    if (!taken.ok) return { held: false, why: taken.why };
    this.#deps.faults("lease.opened");
    const lease = new HeldLease(key, this.#deps, taken.claim, takenAtMs);
    this.#held.add(lease);
    const held: Held = {
      lease,
      claim: taken.claim,
      left: () => {
        lease.hasLeft = true;
      },
      file: taken.claim.file,
    };
    try {
      return { held: true, result: await work(held) };
    } finally {
      this.#held.delete(lease);
      if (!lease.hasLeft && !lease.signal.aborted) await this.#release(lease, held.file);
    }
  }

  async #release(lease: HeldLease, file: FileState | null): Promise<void> {
    try {
      await this.#deps.schedule(await this.#deps.leases.release(lease.key, lease.fence, file));
    } catch (error) {
      // The lease ends by itself, and whoever reaps it finds the mail.
      const level = hasCode(error, "LEASE_LOST") ? "debug" : "warn";
      this.#deps.logger[level]({ err: error, session: lease.key }, "a session could not be given back");
    }
  }

  async #renew(): Promise<void> {
    const sentAtMs = this.#deps.monotonicMs();
    const leases = [...this.#held];
    try {
      const lost = new Set(await this.#deps.leases.renew(leases.map(({ key, fence }) => ({ key, fence }))));
      for (const lease of leases) {
        if (!this.#held.has(lease) || lease.hasLeft) continue;
        if (lost.has(lease.key)) lease.lose("another process has taken it");
        else lease.renewed(sentAtMs);
      }
    } catch (error) {
      // With nothing held only the sign of life is late, and the next one comes soon.
      const level = leases.length > 0 ? "warn" : "debug";
      this.#deps.logger[level]({ err: error, held: leases.length }, "leases could not be renewed");
    }
  }
}

/**
 * The ownership of one channel account: taken, renewed every third of its length, lost, given back. It sends nothing.
 * Invariant: `signal` aborts before another process can own the account, also when Redis stays silent.
 */

import type { OutboxStore } from "../bus/delivery-ports.js";
import { hasCode } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Clock } from "./clock.js";

export interface OwnershipDeps {
  outbox: Pick<OutboxStore, "own">;
  account: string;
  leaseMs: number;
  clock: Clock;
  logger: Logger;
}

/** One time of owning an account. */
export interface Ownership {
  readonly fence: number;
  /** Aborts when the ownership is lost. */
  readonly signal: AbortSignal;
  /** Whether it is surely ours at this instant: after a stall, work may wake before the loss is noticed. */
  isHeld(): boolean;
  /** For whoever learns of the loss elsewhere. */
  lose(): void;
  /** Ends it; another process may own the account at once. */
  giveBack(): Promise<void>;
}

/** Part of the lease after which an owner that could not renew stops by itself. */
const SAFE_SHARE = 0.8;

/** Waits until the account is ours; null when `signal` aborted before. `onWait` is called once it has to wait. */
export async function takeOwnership(
  deps: OwnershipDeps,
  signal: AbortSignal,
  onWait: () => void,
): Promise<Ownership | null> {
  while (!signal.aborted) {
    const askedMs = deps.clock.nowMs();
    const owned = await ask(deps);
    if (owned !== null) return new HeldAccount(deps, owned.fence, askedMs);
    onWait();
    await deps.clock.sleep(deps.leaseMs / 3, signal);
  }
  return null;
}

async function ask({ outbox, account, leaseMs, logger }: OwnershipDeps): Promise<{ fence: number } | null> {
  try {
    return await outbox.own(account, leaseMs);
  } catch (error) {
    logger.warn({ err: error, account }, "the ownership of an account could not be asked for");
    return null;
  }
}

class HeldAccount implements Ownership {
  readonly #deps: OwnershipDeps;
  readonly #ended = new AbortController();
  readonly #renewal: Promise<void>;
  #renewedMs: number;
  #isGivenBack = false;

  constructor(
    deps: OwnershipDeps,
    readonly fence: number,
    renewedMs: number,
  ) {
    this.#deps = deps;
    this.#renewedMs = renewedMs;
    this.#renewal = this.#keep();
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  isHeld(): boolean {
    return !this.signal.aborted && this.#deps.clock.nowMs() < this.#deadlineMs();
  }

  lose(): void {
    if (this.#ended.signal.aborted) return;
    if (!this.#isGivenBack) this.#deps.logger.warn({ account: this.#deps.account, fence: this.fence }, "account lost");
    this.#ended.abort();
  }

  async giveBack(): Promise<void> {
    const wasOurs = !this.#ended.signal.aborted;
    this.#isGivenBack = true;
    this.lose();
    await this.#renewal;
    if (wasOurs) await this.#deps.outbox.own(this.#deps.account, 0);
  }

  async #keep(): Promise<void> {
    const { clock, leaseMs } = this.#deps;
    while (!this.signal.aborted) {
      await clock.sleep(Math.min(leaseMs / 3, this.#deadlineMs() - clock.nowMs()), this.signal);
      if (this.signal.aborted) return;
      const askedMs = clock.nowMs();
      const answer = this.isHeld() ? await this.#renewInTime(askedMs) : "lost";
      if (answer === "ours") this.#renewedMs = askedMs;
      else if (answer === "lost") this.lose();
    }
  }

  async #renewInTime(askedMs: number): Promise<"ours" | "lost" | "unknown"> {
    const over = new AbortController();
    const limit = this.#deps.clock.sleep(this.#deadlineMs() - askedMs, AbortSignal.any([this.signal, over.signal]));
    try {
      return await Promise.race([this.#renew(), limit.then(() => "lost" as const)]);
    } finally {
      over.abort();
    }
  }

  #deadlineMs(): number {
    return this.#renewedMs + this.#deps.leaseMs * SAFE_SHARE;
  }

  /** Another fence means that it was lost and taken anew in between: what was sent meanwhile may be another's. */
  async #renew(): Promise<"ours" | "lost" | "unknown"> {
    try {
      const owned = await this.#deps.outbox.own(this.#deps.account, this.#deps.leaseMs);
      return owned?.fence === this.fence ? "ours" : "lost";
    } catch (error) {
      this.#deps.logger.warn({ err: error, account: this.#deps.account }, "an account could not be renewed");
      return hasCode(error, "BUS_UNAVAILABLE") ? "unknown" : "lost";
    }
  }
}

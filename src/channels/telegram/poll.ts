/**
 * The polling loop: updates are asked for, handed to the intake, and acknowledged by asking for later ones. It neither reads
 * nor stores a message. Invariants: no offset passes an update that is not stored or rightly skipped; while the bus takes
 * nothing, nothing is asked for; one slow chat holds no other up; one bad update holds nothing up.
 */
import type { Api } from "grammy";
import { hasCode } from "../../errors.js";
import type { ChannelContext } from "../channel.js";
import type { Clock } from "../clock.js";
import { safeError } from "./api-error.js";
import { withDeadline } from "./deadline.js";
import type { InboundHealth } from "./health.js";
import type { Intake } from "./intake.js";
import { Ledger } from "./ledger.js";
import type { Me } from "./parse-address.js";
import { sdkSignal } from "./sdk-signal.js";
import { ALLOWED_UPDATES, numbered } from "./wire.js";

/** How long the platform may keep a request that has no answer yet. */
export const LONG_POLL_S = 30;
/** Beyond that, a request is dead. */
const OVERDUE_MS = 30_000;
/** Between two questions while updates are being worked on. */
const REPOLL_MS = 200;
/** A long poll that gives nothing takes at least so long. */
const EMPTY_POLL_MS = 500;
const PUSH_BACK_MAX_MS = 5_000;
const BATCH = 100;
const OFFSET = "offset";

export interface PollerDeps {
  api: () => Api;
  intake: Intake;
  clock: Clock;
  health: InboundHealth;
  /** ms since the epoch. */
  wallMs: () => number;
  /** A round trip was completed. */
  onProgress: () => void;
}

export interface PollRun {
  me: Me;
  context: ChannelContext;
  signal: AbortSignal;
}

export class Poller {
  readonly #deps: PollerDeps;
  readonly #run: PollRun;
  readonly #ledger = new Ledger();
  readonly #working = new Set<Promise<void>>();
  #pushedBack = 0;
  #saved: number | null = null;
  #isFresh = true;

  /** A poller is of one start of the channel. */
  constructor(deps: PollerDeps, run: PollRun) {
    this.#deps = deps;
    this.#run = run;
  }

  /** Reads where the account was. Throws `BUS_UNAVAILABLE`. */
  async restore(): Promise<void> {
    const position = positionOf(await this.#run.context.memory.get(OFFSET));
    if (position === null) return;
    this.#ledger.restore(position);
    this.#saved = position.next;
  }

  /** Polls until the signal aborts. Throws what a round trip threw; may be called again then. */
  async poll(): Promise<void> {
    const { signal } = this.#run;
    this.#isFresh = true;
    while (!signal.aborted) {
      await this.#rest();
      await this.#remember();
      if (signal.aborted) return;
      const updates = await this.#ask();
      this.#isFresh = false;
      this.#deps.onProgress();
      this.#dispatch(updates);
    }
  }

  /** Waits for what is being stored and remembers how far it got. The signal has aborted. */
  async end(): Promise<void> {
    await Promise.allSettled(this.#working);
    await this.#remember();
  }

  /** One round trip; the first after trouble is a short one, so that it is soon known whether it works. */
  async #ask(): Promise<readonly unknown[]> {
    const { api, clock, wallMs } = this.#deps;
    const offset = this.#ledger.offset(wallMs());
    const timeout = this.#isFresh || !this.#ledger.isIdle ? 0 : LONG_POLL_S;
    const deadline = { clock, ms: timeout * 1000 + OVERDUE_MS, signal: this.#run.signal };
    const place = offset === null ? {} : { offset };
    const ask = { ...place, limit: BATCH, timeout, allowed_updates: ALLOWED_UPDATES };
    const askedMs = clock.nowMs();
    const updates: unknown = await withDeadline(deadline, (signal) => api().getUpdates(ask, sdkSignal(signal)));
    if (!Array.isArray(updates)) throw new Error("the platform's answer is no list of updates");
    const earlyMs = EMPTY_POLL_MS - (clock.nowMs() - askedMs);
    // A server that holds no polls must not be asked without end.
    if (updates.length === 0 && timeout > 0 && earlyMs > 0) await clock.sleep(earlyMs, this.#run.signal);
    return updates;
  }

  #dispatch(updates: readonly unknown[]): void {
    const known = updates.flatMap((update) => {
      const read = numbered.safeParse(update);
      return read.success ? [{ id: read.data.update_id, update }] : [];
    });
    if (known.length < updates.length)
      this.#run.context.logger.warn({ count: updates.length - known.length }, "updates without a number were skipped");
    if (known.length === 0 && updates.length > 0) throw new Error("the platform's updates have no numbers");
    for (const { id, update } of known) {
      if (!this.#ledger.begin(id, this.#deps.wallMs())) continue;
      const work = this.#work(id, update).finally(() => this.#working.delete(work));
      this.#working.add(work);
    }
  }

  /** Never rejects. */
  async #work(id: number, update: unknown): Promise<void> {
    const { me, context, signal } = this.#run;
    const insist = <T>(step: () => Promise<T>) => this.#insist(step);
    try {
      await this.#deps.intake.take({ ...asObject(update), update_id: id }, { me, context, signal, insist });
    } catch (error) {
      // It comes again.
      if (signal.aborted) return;
      context.logger.error({ err: safeError(error), update: id }, "an update could not be handled and was skipped");
    }
    this.#ledger.end(id);
  }

  /** Repeats a step while the bus is away or full; meanwhile nothing is asked for. */
  async #insist<T>(step: () => Promise<T>): Promise<T> {
    const { signal, context } = this.#run;
    for (let tries = 1; ; tries += 1) {
      try {
        return await step();
      } catch (error) {
        if (!isPushBack(error) || signal.aborted) throw error;
        if (tries === 1) context.logger.warn({ code: error.code }, "nothing can be stored; no updates are asked for");
      }
      this.#pushedBack += 1;
      await this.#deps.clock.sleep(Math.min(PUSH_BACK_MAX_MS, 250 * 2 ** (tries - 1)), signal);
      this.#pushedBack -= 1;
      signal.throwIfAborted();
    }
  }

  /** Gives what came a moment to be stored; while the bus pushes back, waits for it. */
  async #rest(): Promise<void> {
    const { clock, health } = this.#deps;
    const { signal } = this.#run;
    if (this.#working.size === 0) return;
    const done = new AbortController();
    const stop = () => done.abort();
    signal.addEventListener("abort", stop, { once: true });
    void Promise.all(this.#working).then(stop);
    await clock.sleep(REPOLL_MS, done.signal);
    while (this.#pushedBack > 0 && !signal.aborted) {
      health.paused(true);
      await clock.sleep(REPOLL_MS, done.signal);
    }
    health.paused(false);
    signal.removeEventListener("abort", stop);
  }

  /** Only spares a new process what the bus would recognise anyway. */
  async #remember(): Promise<void> {
    const position = this.#ledger.position();
    if (position === null || position.next === this.#saved) return;
    try {
      await this.#run.context.memory.set(OFFSET, JSON.stringify(position));
      this.#saved = position.next;
    } catch (error) {
      this.#run.context.logger.warn({ err: error }, "the position in the stream of updates could not be remembered");
    }
  }
}

function isPushBack(error: unknown) {
  return hasCode(error, "BUS_OVERLOADED") || hasCode(error, "BUS_UNAVAILABLE");
}

function asObject(update: unknown): object {
  return typeof update === "object" && update !== null ? update : {};
}

function positionOf(text: string | null): { next: number; seenMs: number } | null {
  const [, next, seenMs] = /^\{"next":(-?\d{1,15}),"seenMs":(\d{1,15})\}$/.exec(text ?? "") ?? [];
  return next === undefined || seenMs === undefined ? null : { next: Number(next), seenMs: Number(seenMs) };
}

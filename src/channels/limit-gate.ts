/**
 * The way to the limits of one account for everything that this process sends: whoever must wait stands in line, and only
 * the first of a line asks again. It counts nothing itself. Invariant: nothing passes that the limiter has not let through,
 * also while the limiter cannot be asked; what may be left out never takes the room of what must be sent.
 */
import { hasCode } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Clock } from "./clock.js";
import type { RateLimit, RateLimiter, RateVerdict } from "./ports.js";

export interface LimitGateDeps {
  account: string;
  limiter: RateLimiter;
  clock: Clock;
  logger: Logger;
}

/** Until when somebody waits for a place. */
export interface Patience {
  signal: AbortSignal;
  /** By the clock. */
  untilMs: number;
}

/** How long before a limiter that could not be asked is asked again. */
const AWAY_MS = 500;
/** How long something that may be left out stays away from a bucket where others wait. */
const BEHIND_MS = 250;
/** Share of a limit that previews may use up; the rest is kept for answers. */
const PREVIEW_SHARE = 0.8;

interface Line {
  waiting: Array<() => void>;
}

export class LimitGate {
  readonly #deps: LimitGateDeps;
  readonly #lines = new Map<string, Line>();

  constructor(deps: LimitGateDeps) {
    this.#deps = deps;
  }

  /** Waits for a place in all limits. False: it has none, and the patience is over. Asks at least once. */
  async pass(limits: readonly RateLimit[], { signal, untilMs }: Patience): Promise<boolean> {
    if (limits.length === 0) return true;
    const { clock } = this.#deps;
    let first = await this.#join(limits.find(({ bucket }) => this.#lines.has(bucket))?.bucket, signal);
    try {
      for (;;) {
        const verdict = await this.#ask(limits);
        if (!("bucket" in verdict)) return true;
        if (signal.aborted || clock.nowMs() >= untilMs) return false;
        if (first !== verdict.bucket && verdict.bucket !== "") {
          this.#leave(first);
          const isAlone = !this.#lines.has(verdict.bucket);
          first = await this.#join(verdict.bucket, signal);
          if (!isAlone) continue;
        }
        await clock.sleep(Math.min(verdict.waitMs, untilMs - clock.nowMs()), signal);
      }
    } finally {
      this.#leave(first);
    }
  }

  /** A place at once (0), or how long to wait before asking again, ms: for what may be left out. */
  async tryPass(limits: readonly RateLimit[]): Promise<number> {
    if (limits.length === 0) return 0;
    if (limits.some(({ bucket }) => this.#lines.has(bucket))) return BEHIND_MS;
    const narrower = limits.map((limit) => ({ ...limit, count: Math.max(1, Math.ceil(limit.count * PREVIEW_SHARE)) }));
    return (await this.#ask(narrower)).waitMs;
  }

  /** The platform asked to wait: the narrowest of the limits is left alone for so long, by every process. */
  async park(limits: readonly RateLimit[], ms: number): Promise<void> {
    const { account, limiter, logger } = this.#deps;
    const narrowest = limits.reduce<RateLimit | null>(
      (best, each) => (best && rate(best) < rate(each) ? best : each),
      null,
    );
    if (narrowest === null) return;
    try {
      await limiter.park(account, narrowest.bucket, ms);
    } catch (error) {
      logger.warn({ err: error, account, bucket: narrowest.bucket, ms }, "a wait could not be stored");
    }
  }

  /** Bucket "": it could not be asked. */
  async #ask(limits: readonly RateLimit[]): Promise<RateVerdict> {
    const { account, limiter, logger } = this.#deps;
    try {
      return await limiter.take(account, limits);
    } catch (error) {
      if (!hasCode(error, "BUS_UNAVAILABLE")) throw error;
      logger.debug({ err: error, account }, "the limits could not be asked; nothing is sent meanwhile");
      return { waitMs: AWAY_MS, bucket: "" };
    }
  }

  /** Stands in a line until it is the first of it, or the signal aborts. The line it stands in, to be left later. */
  async #join(bucket: string | undefined, signal: AbortSignal): Promise<string | null> {
    if (bucket === undefined) return null;
    const line = this.#lines.get(bucket);
    if (line === undefined) {
      this.#lines.set(bucket, { waiting: [] });
      return bucket;
    }
    const isFirst = await new Promise<boolean>((resolve) => {
      const onTurn = () => {
        signal.removeEventListener("abort", onAbort);
        resolve(true);
      };
      const onAbort = () => {
        line.waiting.splice(line.waiting.indexOf(onTurn), 1);
        resolve(false);
      };
      if (signal.aborted) return resolve(false);
      line.waiting.push(onTurn);
      signal.addEventListener("abort", onAbort, { once: true });
    });
    return isFirst ? bucket : null;
  }

  #leave(bucket: string | null): void {
    const line = bucket === null ? undefined : this.#lines.get(bucket);
    if (bucket === null || line === undefined) return;
    const next = line.waiting.shift();
    if (next === undefined) this.#lines.delete(bucket);
    else next();
  }
}

function rate({ count, perMs }: RateLimit): number {
  return count / perMs;
}

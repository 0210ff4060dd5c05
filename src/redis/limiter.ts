/**
 * Limits of accounts over Redis: sliding windows by the server's clock, shared by all processes. It neither waits nor decides
 * which limits there are. Invariant: within any window of a bucket there are at most as many calls as it allows.
 */
import type { RateLimit, RateLimiter, RateVerdict } from "../channels/ports.js";
import { integer, list, UnexpectedReply } from "./reply.js";
import type { Scripts } from "./scripts.js";

export class RedisRateLimiter implements RateLimiter {
  readonly #scripts: Pick<Scripts, "run">;

  constructor(scripts: Pick<Scripts, "run">) {
    this.#scripts = scripts;
  }

  async take(account: string, limits: readonly RateLimit[]): Promise<RateVerdict> {
    if (limits.length === 0) return { waitMs: 0 };
    const asked = limits.map(({ bucket, count, perMs, cost }) => {
      // Names may hold any sign, so their borders must not be one.
      return {
        window: JSON.stringify([account, bucket, perMs]),
        parked: parkedOf(account, bucket),
        count,
        perMs,
        cost,
      };
    });
    const [waitMs, which] = list(await this.#scripts.run("limit-take", { limits: asked })).map(integer);
    if (waitMs === 0) return { waitMs };
    const bucket = limits[(which ?? 0) - 1]?.bucket;
    if (waitMs === undefined || bucket === undefined) throw new UnexpectedReply("limit-take");
    return { waitMs, bucket };
  }

  async park(account: string, bucket: string, ms: number): Promise<void> {
    await this.#scripts.run("limit-park", { parked: parkedOf(account, bucket), ms: Math.max(1, Math.ceil(ms)) });
  }
}

function parkedOf(account: string, bucket: string): string {
  return JSON.stringify([account, bucket]);
}

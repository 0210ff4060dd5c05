/** Limits in memory: sliding windows by a clock that the test may hold, and what was parked. */
import type { RateLimit, RateLimiter, RateVerdict } from "../../src/channels/ports.js";

export class MemoryLimiter implements RateLimiter {
  /** Calls by bucket: when, once for each that they count for. */
  readonly calls = new Map<string, number[]>();
  /** Bucket → until when. */
  readonly parked = new Map<string, number>();
  /** How often it was asked. */
  asked = 0;
  /** Thrown by every method while set. */
  failure: Error | null = null;

  constructor(readonly nowMs: () => number) {}

  async take(_account: string, limits: readonly RateLimit[]): Promise<RateVerdict> {
    this.asked += 1;
    if (this.failure !== null) throw this.failure;
    const waits = limits.map((limit) => ({ waitMs: this.#waitMs(limit), bucket: limit.bucket }));
    const longest = waits.reduce((a, b) => (b.waitMs > a.waitMs ? b : a), { waitMs: 0, bucket: "" });
    if (longest.waitMs > 0) return longest;
    for (const { bucket, cost } of limits) {
      const calls = this.calls.get(bucket) ?? [];
      this.calls.set(bucket, [...calls, ...Array.from({ length: cost }, () => this.nowMs())]);
    }
    return { waitMs: 0 };
  }

  async park(_account: string, bucket: string, ms: number): Promise<void> {
    if (this.failure !== null) throw this.failure;
    this.parked.set(bucket, Math.max(this.parked.get(bucket) ?? 0, this.nowMs() + ms));
  }

  #waitMs({ bucket, count, perMs, cost }: RateLimit): number {
    const parkedMs = (this.parked.get(bucket) ?? 0) - this.nowMs();
    const calls = (this.calls.get(bucket) ?? []).filter((at) => at > this.nowMs() - perMs);
    const over = calls.length + Math.min(cost, count) - count;
    const last = calls[over - 1];
    return Math.max(0, parkedMs, last === undefined ? 0 : last + perMs - this.nowMs());
  }
}

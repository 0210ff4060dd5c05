/**
 * Part of the composition root: notices that this process stood still for so long that its leases may be lost. It mends
 * nothing; leases end by themselves. Invariant: it says so once, and counts every time.
 */
import type { Logger } from "./logger.js";
import type { Metrics } from "./metrics.js";

/** Looks several times a lease; returns how to end that. A timer that is late by `limitMs` means a stall. */
export function watchEventLoop({
  limitMs,
  logger,
  metrics,
}: {
  limitMs: number;
  logger: Logger;
  metrics: Metrics;
}): () => void {
  const everyMs = limitMs / 4;
  let lastMs = performance.now();
  let hasSaidSo = false;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const lateMs = Math.round(nowMs - lastMs - everyMs);
    lastMs = nowMs;
    if (lateMs < limitMs) return;
    metrics.count("event_loop_stalls_total", {});
    if (hasSaidSo) return;
    hasSaidSo = true;
    logger.warn(
      { lateMs, limitMs },
      "the process stood still for longer than a lease lasts; sessions may have moved on",
    );
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

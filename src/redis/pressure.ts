/**
 * How full Redis is. It only looks; whoever takes messages in asks it. Invariant: above the mark nothing new is taken in,
 * so that what is in can still be worked off.
 */
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { RedisClient } from "./client.js";

/** Part of `maxmemory` above which nothing new is taken in. */
const MARK = 0.8;

export interface MemoryPressureDeps {
  client: RedisClient;
  deadlineMs: number;
  logger: Logger;
  metrics: Metrics;
}

export class MemoryPressure {
  readonly #deps: MemoryPressureDeps;
  #isHigh = false;

  constructor(deps: MemoryPressureDeps) {
    this.#deps = deps;
  }

  get isHigh(): boolean {
    return this.#isHigh;
  }

  async measure(): Promise<void> {
    const { client, deadlineMs, logger, metrics } = this.#deps;
    const info = await client.attempt((redis) => redis.info("memory"), deadlineMs);
    const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0);
    const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0);
    const isHigh = limit > 0 && used > MARK * limit;
    if (isHigh && !this.#isHigh) logger.warn({ used, limit }, "Redis is nearly full; new messages are refused");
    if (!isHigh && this.#isHigh) logger.info({ used, limit }, "Redis has room again; messages are taken in");
    this.#isHigh = isHigh;
    metrics.set("redis_memory_used_bytes", {}, used);
    metrics.set("redis_memory_limit_bytes", {}, limit);
    metrics.set("redis_memory_pressure", {}, isHigh ? 1 : 0);
  }
}

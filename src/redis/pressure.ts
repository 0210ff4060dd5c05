/**
 * How full Redis is. It only looks; whoever takes messages in asks it. Invariant: above the mark nothing new is taken in,
 * so that what is in can still be worked off.
 */
import type { RedisClient } from "./client.js";

/** Part of `maxmemory` above which nothing new is taken in. */
const MARK = 0.8;

export class MemoryPressure {
  readonly #client: RedisClient;
  readonly #deadlineMs: number;
  #isHigh = false;

  constructor(deps: { client: RedisClient; deadlineMs: number }) {
    this.#client = deps.client;
    this.#deadlineMs = deps.deadlineMs;
  }

  get isHigh(): boolean {
    return this.#isHigh;
  }

  async measure(): Promise<void> {
    const info = await this.#client.attempt((redis) => redis.info("memory"), this.#deadlineMs);
    const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0);
    const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0);
    this.#isHigh = limit > 0 && used > MARK * limit;
  }
}

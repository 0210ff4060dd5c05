/**
 * What an account must know again after a restart, over Redis: one hash an account. It knows no meaning of what it keeps.
 * Invariant: what was set is what any process reads; an outage is `BUS_UNAVAILABLE`, never an empty memory.
 */
import type { AccountMemory } from "../channels/ports.js";
import type { RedisClient } from "./client.js";
import type { Keys } from "./keys.js";

export interface AccountMemoryDeps {
  client: Pick<RedisClient, "attempt">;
  keys: Keys;
  deadlineMs: number;
}

export class RedisAccountMemory implements AccountMemory {
  readonly #deps: AccountMemoryDeps;
  readonly #key: string;

  constructor(deps: AccountMemoryDeps, account: string) {
    this.#deps = deps;
    this.#key = deps.keys.of("accountMemory", account);
  }

  get(name: string): Promise<string | null> {
    const { client, deadlineMs } = this.#deps;
    return client.attempt((redis) => redis.hget(this.#key, name), deadlineMs);
  }

  async set(name: string, value: string): Promise<void> {
    const { client, deadlineMs } = this.#deps;
    await client.attempt((redis) => redis.hset(this.#key, name, value), deadlineMs);
  }

  async list(prefix: string): Promise<Map<string, string>> {
    const { client, deadlineMs } = this.#deps;
    const all = await client.attempt((redis) => redis.hgetall(this.#key), deadlineMs);
    return new Map(Object.entries(all).filter(([name]) => name.startsWith(prefix)));
  }

  async forget(name: string): Promise<void> {
    const { client, deadlineMs } = this.#deps;
    await client.attempt((redis) => redis.hdel(this.#key, name), deadlineMs);
  }
}

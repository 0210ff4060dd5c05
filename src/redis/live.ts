/**
 * Lossy signals and results over Redis: hints for holders, live events for accounts and direct callers, results of
 * inbound messages. Invariant: a result is announced after it is stored, so whoever listens first and reads then
 * misses none.
 */
import type { OutboundMessage, SessionKey, TurnResult } from "../bus/messages.js";
import type { LiveSignals, Results } from "../bus/ports.js";
import type { LiveEvents } from "../channels/ports.js";
import type { RedisClient } from "./client.js";
import type { Feed } from "./feed.js";
import type { Keys } from "./keys.js";

export interface LiveDeps {
  client: RedisClient;
  feed: Feed;
  keys: Keys;
  deadlineMs: number;
}

export class RedisLive implements LiveSignals, LiveEvents {
  readonly #deps: LiveDeps;

  constructor(deps: LiveDeps) {
    this.#deps = deps;
  }

  onHint(listener: (key: SessionKey) => void): Promise<() => Promise<void>> {
    return this.#deps.feed.listen(this.#deps.keys.of("hint"), (text) => listener(text as SessionKey));
  }

  onLive(address: string, listener: (message: OutboundMessage) => void): Promise<() => Promise<void>> {
    const channel = this.#deps.keys.of("live", address);
    return this.#deps.feed.listen(channel, (text) => listener(JSON.parse(text) as OutboundMessage));
  }

  /** What may be lost, on its way to an account that this process serves. */
  follow(account: string, listener: (message: OutboundMessage) => void): Promise<() => Promise<void>> {
    return this.onLive(`account:${account}`, listener);
  }
}

export class RedisResults implements Results {
  readonly #deps: LiveDeps;

  constructor(deps: LiveDeps) {
    this.#deps = deps;
  }

  async get(inboundKey: string): Promise<TurnResult | null> {
    const { client, keys, deadlineMs } = this.#deps;
    const stored = await client.attempt((redis) => redis.get(keys.of("result", inboundKey)), deadlineMs);
    return stored === null ? null : (JSON.parse(stored) as TurnResult);
  }

  async watch(inboundKey: string, onResult: (result: TurnResult) => void): Promise<() => Promise<void>> {
    const { feed, keys } = this.#deps;
    let isDone = false;
    const finish = (result: TurnResult): void => {
      if (isDone) return;
      isDone = true;
      onResult(result);
    };
    const stop = await feed.listen(keys.of("result", inboundKey), (text) => finish(JSON.parse(text) as TurnResult));
    const stored = await this.get(inboundKey);
    if (stored !== null) finish(stored);
    return stop;
  }
}

/**
 * Pub/sub: one listening connection a process, shared by all who listen. What it carries may be lost; whoever cannot
 * afford that reads a log when `onReconnect` calls. Invariant: after a reconnect every channel is subscribed again before
 * anybody is told.
 */
import type { Redis } from "ioredis";
import type { Logger } from "../logger.js";
import { disconnect, type RedisClient } from "./client.js";

type Listener = (text: string) => void;

export class Feed {
  readonly #connection: Redis;
  readonly #logger: Logger;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #onReconnect = new Set<() => void>();
  #wasReady = false;

  constructor(deps: { client: RedisClient; logger: Logger }) {
    this.#logger = deps.logger;
    this.#connection = deps.client.connection("patient");
    this.#connection.options.autoResubscribe = false;
    this.#connection.on("message", (channel: string, text: string) => {
      for (const listener of this.#listeners.get(channel) ?? []) listener(text);
    });
    this.#connection.on("ready", () => void this.#resume());
  }

  async #resume(): Promise<void> {
    const isReconnect = this.#wasReady;
    this.#wasReady = true;
    if (!isReconnect) return;
    try {
      const channels = [...this.#listeners.keys()];
      if (channels.length > 0) await this.#connection.subscribe(...channels);
      for (const listener of this.#onReconnect) listener();
    } catch (error) {
      this.#logger.warn({ err: error }, "listening to Redis could not be resumed; reconnecting");
      this.#connection.disconnect(true);
    }
  }

  /** Listens to a channel from the moment this returns; gives back how to stop. */
  async listen(channel: string, listener: Listener): Promise<() => Promise<void>> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    await this.#connection.subscribe(channel);
    return async () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      await this.#connection.unsubscribe(channel);
    };
  }

  onReconnect(listener: () => void): () => void {
    this.#onReconnect.add(listener);
    return () => this.#onReconnect.delete(listener);
  }

  close(): void {
    disconnect(this.#connection);
  }
}

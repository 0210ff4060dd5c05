/**
 * Pub/sub: one listening connection a process, shared by all who listen. What it carries may be lost; whoever cannot
 * afford that reads a log when `onReconnect` calls. Invariant: after a reconnect every channel is subscribed again before
 * anybody is told.
 */
import type { Redis } from "ioredis";
import { NanogateError } from "../errors.js";
import type { Logger } from "../logger.js";
import { disconnect, type RedisClient } from "./client.js";
import { orAborted } from "./outage.js";

type Listener = (text: string) => void;

/** Nothing is asked of a connection that listens, so nobody would notice that it is dead, ms. */
const SIGN_OF_LIFE_MS = 10_000;

export interface FeedDeps {
  client: RedisClient;
  logger: Logger;
  /** How long `listen` waits for a Redis that is away, ms. */
  deadlineMs: number;
}

export class Feed {
  readonly #deps: FeedDeps;
  readonly #connection: Redis;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #onReconnect = new Set<() => void>();
  readonly #signs: NodeJS.Timeout;
  #wasReady = false;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
    this.#connection = deps.client.connection("patient");
    this.#connection.options.autoResubscribe = false;
    this.#connection.on("message", (channel: string, text: string) => {
      for (const listener of this.#listeners.get(channel) ?? []) listener(text);
    });
    this.#connection.on("ready", () => void this.#resume());
    this.#signs = setInterval(() => this.#askForSign(), SIGN_OF_LIFE_MS).unref();
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
      this.#deps.logger.warn({ err: error }, "listening to Redis could not be resumed; reconnecting");
      if (this.#connection.status === "ready") this.#connection.disconnect(true);
    }
  }

  #askForSign(): void {
    if (this.#connection.status !== "ready") return;
    this.#connection.ping().catch((error: unknown) => {
      this.#deps.logger.debug({ err: error }, "the listening connection gave no sign of life");
    });
  }

  /** Listens to a channel from the moment this returns; gives back how to stop. Throws `BUS_UNAVAILABLE`. */
  async listen(channel: string, listener: Listener): Promise<() => Promise<void>> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    try {
      await orAborted(this.#connection.subscribe(channel), AbortSignal.timeout(this.#deps.deadlineMs));
    } catch (error) {
      this.#forget(channel, listener);
      throw new NanogateError("BUS_UNAVAILABLE", "Redis could not be reached.", { cause: error });
    }
    return async () => this.#forget(channel, listener);
  }

  /** Waits for nothing: commands of one connection keep their order, so a later `listen` is not undone by it. */
  #forget(channel: string, listener: Listener): void {
    const listeners = this.#listeners.get(channel);
    listeners?.delete(listener);
    if (listeners === undefined || listeners.size > 0) return;
    this.#listeners.delete(channel);
    this.#connection.unsubscribe(channel).catch((error: unknown) => {
      this.#deps.logger.debug({ err: error, channel }, "a channel could not be unsubscribed");
    });
  }

  onReconnect(listener: () => void): () => void {
    this.#onReconnect.add(listener);
    return () => this.#onReconnect.delete(listener);
  }

  close(): void {
    clearInterval(this.#signs);
    disconnect(this.#connection);
  }
}

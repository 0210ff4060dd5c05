/**
 * The connection: one for commands, which fails fast and is repeated here, and others made from it for waiting and
 * listening. It knows no key and no script. Invariants: nothing is sent before the server's run id is known and, when
 * that is a new one, before what was acknowledged to the old one has been repeated to its end; a command whose outcome is
 * unknown is repeated by `attempt` only, so everything given to it must be safe to repeat.
 */
import { EventEmitter, once } from "node:events";
import { Redis, type RedisOptions } from "ioredis";
import { NanogateError } from "../errors.js";
import { type Logger, redactText } from "../logger.js";
import type { Metrics } from "../metrics.js";
import { isFull, isOutage, orAborted } from "./outage.js";
import { isSupported, mayEvict, readFacts, type ServerFacts } from "./server-facts.js";

/** Where the server is: a URL (redis, rediss) or a unix socket. */
export type RedisAddress = { url: string } | { socketPath: string };

export interface RedisClientDeps {
  address: RedisAddress;
  /** Shown by the server's CLIENT LIST; the embedded server's last client is found by it. */
  name: string;
  /** A command that got no reply for this long is taken for lost and repeated, ms. */
  commandTimeoutMs: number;
  /** Called when the server cannot be reached: the embedded one is started again. */
  onUnreachable: (() => Promise<void>) | null;
  logger: Logger;
  metrics: Metrics;
}

/** ms between two tries to connect. */
export function reconnectDelayMs(tries: number): number {
  return Math.min(50 * tries, 500);
}

/** The library's own type lets this one be undefined, its constructor does not. */
type Options = Omit<RedisOptions, "replyMapping">;

function optionsOf(deps: RedisClientDeps): Options {
  const place: Options = "socketPath" in deps.address ? { path: deps.address.socketPath } : {};
  return {
    ...place,
    connectionName: deps.name,
    retryStrategy: reconnectDelayMs,
    disableClientInfo: true,
    // For a last word of the server; a connection that is gone already would hold the process up for so long.
    disconnectTimeout: 200,
  };
}

/** Fails at once, and ends a connection on which nothing comes back: its network may be gone without a word. */
function hasteOf({ commandTimeoutMs }: RedisClientDeps): Options {
  return {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: commandTimeoutMs,
    socketTimeout: commandTimeoutMs,
  };
}

function create(deps: RedisClientDeps, options: Options): Redis {
  const all: Options = { ...optionsOf(deps), ...options };
  return "url" in deps.address ? new Redis(deps.address.url, all) : new Redis(all);
}

/** Longer than any command of a waiting connection blocks: a connection that is silent for so long is dead, ms. */
const LONGEST_SILENCE_MS = 15_000;

export class RedisClient {
  readonly #deps: RedisClientDeps;
  readonly #commands: Redis;
  readonly #events = new EventEmitter().setMaxListeners(0);
  /** Those under way; ended with the client. */
  readonly #attempts = new Set<AbortController>();
  #isClosed = false;
  #facts: ServerFacts | null = null;
  /** The life to which everything acknowledged has been repeated. */
  #knownLife: string | null = null;
  #isOpen = false;
  #isAway = false;
  #lastAliveMs = performance.now();
  #newLife: (() => Promise<void>) | null = null;

  constructor(deps: RedisClientDeps) {
    this.#deps = deps;
    this.#commands = create(deps, { lazyConnect: true, ...hasteOf(deps) });
    this.#commands.on("ready", () => void this.#welcome());
    this.#commands.on("close", () => {
      if (this.#isOpen) deps.metrics.count("redis_reconnects_total", {});
      this.#isOpen = false;
    });
    this.#commands.on("error", (error: Error) => {
      if (!this.#isAway && !this.#isClosed)
        deps.logger.warn({ err: error, redis: this.label }, "Redis is not reachable; it is tried again until it is");
      this.#isAway = true;
      this.#unreachable(error);
    });
  }

  /** The server's run id; scripts carry it. Throws `BUS_UNAVAILABLE` before the first connect. */
  get runId(): string {
    if (this.#facts === null) throw new NanogateError("BUS_UNAVAILABLE", "Redis has not been reached yet.");
    return this.#facts.runId;
  }

  /** When a command last succeeded (monotonic, ms). */
  get lastAliveMs(): number {
    return this.#lastAliveMs;
  }

  get isReady(): boolean {
    return this.#isOpen;
  }

  /** What repeats what had been acknowledged, run before anything else when the server lives a new life. */
  onNewLife(replay: () => Promise<void>): void {
    this.#newLife = replay;
  }

  /** Connects and checks the server. Waits for one that is away; throws `REDIS_TOO_OLD`. */
  async connect(signal: AbortSignal): Promise<ServerFacts> {
    const ready = once(this.#events, "open", { signal });
    const refused = once(this.#events, "refused", { signal });
    this.#commands.connect().catch(() => {
      // The error event says it, and the retry strategy goes on.
    });
    const [facts] = await Promise.race([ready, refused.then(([error]) => Promise.reject(error))]);
    return facts as ServerFacts;
  }

  /** A connection became ready: learn whose life it is, repeat what may be lost, then let commands through. */
  async #welcome(): Promise<void> {
    const { logger } = this.#deps;
    try {
      const facts = await readFacts(this.#commands);
      if (!isSupported(facts)) {
        const refusal = new NanogateError("REDIS_TOO_OLD", `The Redis server is version ${facts.version}.`);
        this.#events.emit("refused", refusal);
        return;
      }
      if (this.#knownLife === null && mayEvict(facts)) {
        logger.warn(
          { policy: facts.policy },
          "Redis may evict keys: set maxmemory-policy to noeviction, or accepted messages can vanish when its memory is full",
        );
      }
      this.#facts = facts;
      if (this.#knownLife !== null && this.#knownLife !== facts.runId) {
        logger.warn("Redis was restarted; repeating what it may have lost");
        await this.#newLife?.();
      }
      // Only now: a replay that was broken off begins anew with the next connection.
      this.#knownLife = facts.runId;
      this.#isOpen = this.#commands.status === "ready";
      if (this.#isOpen) this.#open(facts);
    } catch (error) {
      logger.warn({ err: error }, "Redis answered and was gone again; reconnecting");
      // One that is being made already must not be ended: at the wrong moment that ends the client for good.
      if (this.#commands.status === "ready") this.#commands.disconnect(true);
    }
  }

  #open(facts: ServerFacts): void {
    if (this.#isAway) this.#deps.logger.info({ redis: this.label }, "Redis is reached again");
    this.#isAway = false;
    this.#events.emit("open", facts);
  }

  #unreachable(error: Error): void {
    if (this.#isClosed) return;
    this.#deps.logger.debug({ err: error }, "Redis is not reachable");
    this.#deps.onUnreachable?.().catch((cause: unknown) => {
      this.#deps.logger.error({ err: cause }, "the embedded Redis could not be started again");
    });
  }

  /** One try of a command, whether or not the gate is open; for the replay only. */
  get raw(): Redis {
    return this.#commands;
  }

  /**
   * Runs a command that is safe to repeat, and repeats it while the server is away.
   * Throws `BUS_UNAVAILABLE` after `deadlineMs`, `BUS_OVERLOADED` when memory is full.
   */
  async attempt<T>(command: (redis: Redis) => Promise<T>, deadlineMs: number): Promise<T> {
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), deadlineMs);
    this.#attempts.add(over);
    if (this.#isClosed) over.abort();
    try {
      return await this.#repeat(command, over.signal);
    } finally {
      clearTimeout(timer);
      this.#attempts.delete(over);
    }
  }

  async #repeat<T>(command: (redis: Redis) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      try {
        if (!this.#isOpen) await once(this.#events, "open", { signal });
        const reply = await orAborted(command(this.#commands), signal);
        this.#lastAliveMs = performance.now();
        return reply;
      } catch (error) {
        if (isFull(error)) {
          throw new NanogateError("BUS_OVERLOADED", "Redis has no memory left for more messages.", { cause: error });
        }
        if (!isOutage(error) && !signal.aborted) throw error;
        if (signal.aborted) throw new NanogateError("BUS_UNAVAILABLE", "Redis could not be reached.", { cause: error });
        await pause(25);
      }
    }
  }

  /**
   * A connection of its own. `patient` ones wait as long as they must (blocking reads, listening); `hasty` ones fail at once
   * while the server is away.
   */
  connection(temper: "patient" | "hasty"): Redis {
    const patience = { maxRetriesPerRequest: null, enableOfflineQueue: true, socketTimeout: LONGEST_SILENCE_MS };
    const connection = create(this.#deps, temper === "patient" ? patience : hasteOf(this.#deps));
    connection.on("error", (error: Error) => this.#unreachable(error));
    return connection;
  }

  /** The address without credentials, for people. */
  get label(): string {
    const address = this.#deps.address;
    return "url" in address ? redactText(address.url) : address.socketPath;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isOpen = false;
    for (const attempt of this.#attempts) attempt.abort();
    if (this.#commands.status === "ready") await this.#commands.quit().catch(() => "gone");
    disconnect(this.#commands);
  }
}

/** Ends a connection; one that has ended already would keep the process alive for two seconds more. */
export function disconnect(connection: Redis): void {
  if (connection.status !== "end") connection.disconnect();
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

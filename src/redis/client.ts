/**
 * The connection: one for commands, which fails fast and is repeated here, and others made from it for waiting and
 * listening. It knows no key and no script. Invariants: nothing is sent before the server's run id is known and, when
 * that is a new one, before what was acknowledged to the old one has been repeated; a command whose outcome is
 * unknown is repeated by `attempt` only, so everything given to it must be safe to repeat.
 */
import { EventEmitter, once } from "node:events";
import { Redis, type RedisOptions } from "ioredis";
import { NanogateError } from "../errors.js";
import { type Logger, redactText } from "../logger.js";

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
}

/** ms between two tries to connect. */
export function reconnectDelayMs(tries: number): number {
  return Math.min(50 * tries, 500);
}

/** The library's own type lets this one be undefined, its constructor does not. */
type Options = Omit<RedisOptions, "replyMapping">;

function optionsOf(deps: RedisClientDeps): Options {
  const address = deps.address;
  const place: Options = "socketPath" in address ? { path: address.socketPath } : {};
  return {
    ...place,
    connectionName: deps.name,
    retryStrategy: reconnectDelayMs,
    disableClientInfo: true,
  };
}

function create(deps: RedisClientDeps, options: Options): Redis {
  const all: Options = { ...optionsOf(deps), ...options };
  const address = deps.address;
  return "url" in address ? new Redis(address.url, all) : new Redis(all);
}

const OUTAGE = /^(LOADING|READONLY|MASTERDOWN|UNBLOCKED|BUSY|TRYAGAIN|CLUSTERDOWN)/;
const BROKEN =
  /Connection is closed|Stream isn't writeable|Command timed out|ECONN|EPIPE|ENOENT|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN|max retries|Socket closed|Socket timeout/i;

/** Whether an error says that the server is away (and not that the command is wrong). */
export function isOutage(error: unknown): boolean {
  return error instanceof Error && (OUTAGE.test(error.message) || BROKEN.test(error.message));
}

/** Whether an error says that the server's memory is full. */
export function isFull(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("OOM");
}

/** Facts about the server, read at each connect. */
export interface ServerFacts {
  runId: string;
  version: string;
  policy: string | null;
}

function parseInfo(info: string): Map<string, string> {
  return new Map(
    info
      .split(/\r?\n/)
      .filter((line) => line.includes(":"))
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
  );
}

export class RedisClient {
  readonly #deps: RedisClientDeps;
  readonly #commands: Redis;
  readonly #events = new EventEmitter();
  #facts: ServerFacts | null = null;
  #isOpen = false;
  #isClosed = false;
  #lastAliveMs = 0;
  #newLife: (() => Promise<void>) | null = null;

  constructor(deps: RedisClientDeps) {
    this.#deps = deps;
    this.#commands = create(deps, {
      lazyConnect: true,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      commandTimeout: deps.commandTimeoutMs,
    });
    this.#commands.on("ready", () => void this.#welcome());
    this.#commands.on("close", () => {
      this.#isOpen = false;
    });
    this.#commands.on("error", (error: Error) => this.#unreachable(error));
  }

  /** The server's run id; scripts carry it. Throws `BUS_UNAVAILABLE` before the first connect. */
  get runId(): string {
    if (this.#facts === null) throw new NanogateError("BUS_UNAVAILABLE", "Redis has not been reached yet.");
    return this.#facts.runId;
  }

  /** When a command last succeeded (epoch, ms). */
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

  async #readFacts(): Promise<ServerFacts> {
    const info = parseInfo(await this.#commands.info("server", "memory"));
    const version = info.get("valkey_version") ?? info.get("redis_version") ?? "0";
    return { runId: info.get("run_id") ?? "", version, policy: info.get("maxmemory_policy") ?? null };
  }

  /** A connection became ready: learn whose life it is, repeat what may be lost, then let commands through. */
  async #welcome(): Promise<void> {
    try {
      const facts = await this.#readFacts();
      if (Number.parseInt(facts.version, 10) < 7) {
        this.#events.emit(
          "refused",
          new NanogateError("REDIS_TOO_OLD", `The Redis server is version ${facts.version}.`),
        );
        return;
      }
      if (this.#facts === null && facts.policy !== null && facts.policy !== "noeviction") {
        this.#deps.logger.warn(
          { policy: facts.policy },
          "Redis may evict keys: set maxmemory-policy to noeviction, or accepted messages can vanish when its memory is full",
        );
      }
      const isNewLife = this.#facts !== null && this.#facts.runId !== facts.runId;
      this.#facts = facts;
      if (isNewLife) {
        this.#deps.logger.warn("Redis was restarted; repeating what it may have lost");
        await this.#newLife?.();
      }
      this.#isOpen = this.#commands.status === "ready";
      if (this.#isOpen) this.#events.emit("open", facts);
    } catch (error) {
      this.#deps.logger.warn({ err: error }, "Redis answered and was gone again; reconnecting");
      this.#commands.disconnect(true);
    }
  }

  #unreachable(error: Error): void {
    if (this.#isClosed) return;
    this.#deps.logger.debug({ err: error }, "Redis is not reachable");
    this.#events.emit("unreachable");
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
    const signal = AbortSignal.timeout(deadlineMs);
    for (;;) {
      try {
        if (!this.#isOpen) await once(this.#events, "open", { signal });
        const reply = await command(this.#commands);
        this.#lastAliveMs = Date.now();
        return reply;
      } catch (error) {
        if (isFull(error)) {
          throw new NanogateError("BUS_OVERLOADED", "Redis has no memory left for more messages.", { cause: error });
        }
        const isAway = isOutage(error) || signal.aborted;
        if (!isAway) throw error;
        if (signal.aborted || this.#isClosed) {
          throw new NanogateError("BUS_UNAVAILABLE", "Redis could not be reached.", { cause: error });
        }
        await pause(25);
      }
    }
  }

  /**
   * A connection of its own. `patient` ones wait as long as they must (blocking reads, listening); `hasty` ones fail at once
   * while the server is away.
   */
  connection(temper: "patient" | "hasty"): Redis {
    const patience = { maxRetriesPerRequest: null, enableOfflineQueue: true };
    const haste = { maxRetriesPerRequest: 0, enableOfflineQueue: false, autoResendUnfulfilledCommands: false };
    const connection = create(this.#deps, temper === "patient" ? patience : haste);
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

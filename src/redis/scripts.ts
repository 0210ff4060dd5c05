/**
 * Runs the Lua scripts of `scripts/`: puts the key names and the shared functions in front of each, sends it by its
 * hash, and repeats it while Redis is away. It knows no meaning of any script. Invariant: every call carries the run id
 * of the server its connection reached.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import type { Metrics } from "../metrics.js";
import type { RedisClient } from "./client.js";
import { KEY_NAMES, type Keys } from "./keys.js";

const NAMES = [
  "answers",
  "bot-budget",
  "chat-read",
  "check",
  "consume",
  "dead-letter",
  "depths",
  "emit",
  "hold",
  "limit-park",
  "limit-take",
  "open",
  "overdue",
  "own-account",
  "pairing-decide",
  "pairing-request",
  "pairing-revoke",
  "park",
  "peek",
  "publish",
  "raise",
  "reap",
  "receipt",
  "release",
  "renew",
  "reply",
  "rewake",
  "settle",
  "stop",
  "token-issue",
  "token-redeem",
  "unpark",
  "yield",
] as const;
export type ScriptName = (typeof NAMES)[number];

interface Source {
  text: string;
  sha: string;
}

/** `repeat`: what was acknowledged may come back also when memory is full meanwhile. */
interface Script {
  first: Source;
  repeat: Source;
}

function read(name: string): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), "utf8");
}

function assemble(name: ScriptName, common: string): Script {
  const body = read(name);
  const firstLine = body.slice(0, body.indexOf("\n"));
  const names = Object.entries(KEY_NAMES).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const rest = [`local K = {${names.join(",")}}`, common, body.slice(firstLine.length)].join("\n");
  return { first: sourceOf(firstLine, rest), repeat: sourceOf("#!lua flags=allow-oom", rest) };
}

function sourceOf(firstLine: string, rest: string): Source {
  const text = `${firstLine}\n${rest}`;
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** What every script may need to know of this process. */
export interface ScriptDefaults {
  owner: string;
  leaseMs: number;
  /** Tries of a message before it is given up. */
  maxTries: number;
  giveUpNotice: string;
  /** Turns over all processes; 0 for no bound. */
  maxTurns: number;
}

export interface ScriptsDeps {
  client: RedisClient;
  keys: Keys;
  defaults: ScriptDefaults;
  /** How long a call is repeated while Redis is away, ms. */
  deadlineMs: number;
  metrics: Metrics;
}

/** Text that any JSON reader takes: lone surrogates become U+FFFD. */
function encode(args: object): string {
  return JSON.stringify(args, (_, value: unknown) => (typeof value === "string" ? value.toWellFormed() : value));
}

/** How every fenced script says that the fence is stale. */
function isRefusedAsLost(reply: unknown): boolean {
  return Array.isArray(reply) && reply[0] === "lost";
}

export class Scripts {
  readonly #deps: ScriptsDeps;
  readonly #scripts: ReadonlyMap<ScriptName, Script>;

  constructor(deps: ScriptsDeps) {
    this.#deps = deps;
    const common = read("_common");
    this.#scripts = new Map(NAMES.map((name) => [name, assemble(name, common)]));
  }

  /** Runs a script; its arguments and reply are what its header says. Safe to repeat, as all scripts are. */
  async run(name: ScriptName, args: object, deadlineMs = this.#deps.deadlineMs): Promise<unknown> {
    const { client, defaults, metrics } = this.#deps;
    const text = encode({ ...defaults, ...args });
    const reply = await client.attempt((redis) => this.#send(redis, this.#script(name).first, text), deadlineMs);
    if (isRefusedAsLost(reply)) metrics.count("refused_writes_total", { operation: name });
    return reply;
  }

  /** Repeats what was acknowledged once: one try past the gate, and past every bound (`A.repeated`). */
  repeatNow(name: ScriptName, args: object): Promise<unknown> {
    const text = encode({ ...this.#deps.defaults, ...args, repeated: true });
    return this.#send(this.#deps.client.raw, this.#script(name).repeat, text);
  }

  #script(name: ScriptName): Script {
    const script = this.#scripts.get(name);
    if (script === undefined) throw new Error(`no script ${name}`);
    return script;
  }

  async #send(redis: Redis, source: Source, text: string): Promise<unknown> {
    const { keys, client } = this.#deps;
    const args = [1, keys.of("boot"), keys.base, client.runId, text] as const;
    try {
      return await redis.evalsha(source.sha, ...args);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return redis.eval(source.text, ...args);
    }
  }
}

/**
 * Pairings over Redis: codes that wait for an owner, and who was let in. It decides nothing about who is a stranger and
 * words no message. Invariant: a code pairs one person once, and every limit holds over all processes, since each step is
 * one script.
 */
import { randomBytes, randomUUID } from "node:crypto";
import type {
  Paired,
  PairingAnswer,
  PairingAsk,
  PairingAttempt,
  PairingDecision,
  PairingRequest,
  PairingStore,
} from "../channels/ports.js";
import type { RedisClient } from "./client.js";
import { envelopesOf } from "./envelope.js";
import type { Keys } from "./keys.js";
import { integer, list, text, UnexpectedReply } from "./reply.js";
import type { ScriptName } from "./scripts.js";

export interface PairingLimits {
  /** How long a code may be approved, ms. */
  ttlMs: number;
  /** How long a code is remembered afterwards, so that "expired" and "used" can be told from "unknown", ms. */
  spentMs: number;
  /** Codes that may wait in one channel. */
  maxWaiting: number;
  /** One telling of a code, and of "too many wait", counts for so long, ms. */
  tellMs: number;
  fullMs: number;
  /** Failed tries of one, and of all, until nobody is listened to for `lockMs`. */
  maxTries: number;
  maxTriesOfAll: number;
  lockMs: number;
  /** How long somebody who was denied gets no new code, ms. */
  deniedMs: number;
}

/** Limits of a real gateway. */
export const PAIRING_LIMITS: Readonly<PairingLimits> = {
  ttlMs: 600_000,
  spentMs: 86_400_000,
  maxWaiting: 3,
  tellMs: 60_000,
  fullMs: 600_000,
  maxTries: 5,
  maxTriesOfAll: 20,
  lockMs: 600_000,
  deniedMs: 3_600_000,
};

/** 32 letters and digits of which no two look alike: a byte gives one of them without a bias. */
const ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const LENGTH = 8;
const SHAPE = new RegExp(`^[${ALPHABET}]{${LENGTH}}$`);

/** Runs a script; one that changed something is repeated when Redis comes back without it. */
export type RunScript = (name: ScriptName, args: object, isRefused: (reply: unknown) => boolean) => Promise<unknown>;

export interface PairingsDeps {
  run: RunScript;
  client: Pick<RedisClient, "attempt">;
  keys: Keys;
  /** How long a look waits for a Redis that is away, ms. */
  deadlineMs: number;
  limits: PairingLimits;
  /** Owners are configured, so nobody becomes one by being the first. */
  hasOwners: boolean;
}

export class RedisPairings implements PairingStore {
  readonly #deps: PairingsDeps;

  constructor(deps: PairingsDeps) {
    this.#deps = deps;
  }

  async find(channel: string, senderId: string): Promise<{ isOwner: boolean } | null> {
    const { client, keys, deadlineMs } = this.#deps;
    const field = `${channel}:${senderId}`.toWellFormed();
    const stored = await client.attempt((redis) => redis.hget(keys.of("paired"), field), deadlineMs);
    return stored === null ? null : { isOwner: (JSON.parse(stored) as Kept).owner };
  }

  async request({ channel, senderId, welcome }: PairingAsk): Promise<PairingAnswer> {
    const { ttlMs, spentMs, maxWaiting: most, tellMs, fullMs } = this.#deps.limits;
    const sender = senderId.toWellFormed();
    for (;;) {
      const code = randomCode();
      const [envelope] = envelopesOf([welcome(readable(code))]);
      const args = { channel, sender, code, welcome: envelope, most, ttlMs, spentMs, tellMs, fullMs };
      const reply = list(await this.#deps.run("pairing-request", args, (made) => kindOf(made) !== "code"));
      const answer = answerFrom(reply, { channel, senderId: sender });
      if (answer !== "taken") return answer;
    }
  }

  async decide({ verdict, code, by, call }: PairingAttempt): Promise<PairingDecision> {
    const { maxTries: mostTries, maxTriesOfAll: mostAll, lockMs, deniedMs } = this.#deps.limits;
    const { hasOwners } = this.#deps;
    const args = { code: plainCode(code), by, verdict, call, hasOwners, mostTries, mostAll, lockMs, deniedMs };
    const reply = list(await this.#deps.run("pairing-decide", args, (made) => kindOf(made) !== "done"));
    return decisionFrom(reply);
  }

  async revoke(channel: string, senderId: string): Promise<boolean> {
    const args = { channel, sender: senderId, call: randomUUID() };
    return kindOf(await this.#deps.run("pairing-revoke", args, (made) => kindOf(made) !== "ok")) === "ok";
  }

  async pending(): Promise<PairingRequest[]> {
    const { client, keys, deadlineMs } = this.#deps;
    return client.attempt(async (redis) => {
      const [seconds, micros] = await redis.time();
      const nowMs = Math.floor(Number(seconds) * 1000 + Number(micros) / 1000);
      const codes = await redis.zrangebyscore(keys.of("pairingWaiting"), `(${nowMs}`, "+inf");
      const found = await Promise.all(codes.map((code) => redis.hgetall(keys.of("pairingCode", code))));
      return found.flatMap(({ channel, sender, expires }, index) => {
        if (channel === undefined || sender === undefined || expires === undefined) return [];
        const expiresMs = Number(expires);
        return [
          { code: readable(codes[index] ?? ""), channel, senderId: sender, expiresMs, leftMs: expiresMs - nowMs },
        ];
      });
    }, deadlineMs);
  }

  async paired(): Promise<Paired[]> {
    const { client, keys, deadlineMs } = this.#deps;
    const stored = await client.attempt((redis) => redis.hgetall(keys.of("paired")), deadlineMs);
    const people = Object.entries(stored).map(([id, kept]) => {
      const { since, owner } = JSON.parse(kept) as Kept;
      const cut = id.indexOf(":");
      return { channel: id.slice(0, cut), senderId: id.slice(cut + 1), isOwner: owner, sinceMs: since };
    });
    return people.sort((one, other) => one.sinceMs - other.sinceMs);
  }
}

/** A pairing as the script keeps it. */
interface Kept {
  since: number;
  owner: boolean;
}

function randomCode(): string {
  return [...randomBytes(LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

function readable(code: string): string {
  return `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`;
}

/** A code as it is kept, however it was typed; empty for what can be none, which counts as a try like any other. */
function plainCode(typed: string): string {
  const code = typed.slice(0, 100).replaceAll(/[\s-]/g, "").toUpperCase();
  return SHAPE.test(code) ? code : "";
}

function kindOf(reply: unknown): string {
  return text(list(reply)[0]);
}

function answerFrom(reply: readonly unknown[], who: { channel: string; senderId: string }): PairingAnswer | "taken" {
  const [kind, first, expires, left, telling, isNew] = reply;
  switch (kind) {
    case "paired":
      return { kind, isOwner: first === "1" };
    case "denied":
    case "taken":
      return kind === "taken" ? kind : { kind };
    case "full":
      return { kind, tellingMs: integer(first) };
    case "code": {
      const request = { ...who, code: readable(text(first)), expiresMs: integer(expires), leftMs: integer(left) };
      return { kind, request, tellingMs: integer(telling), isNew: isNew === "1" };
    }
    default:
      throw new UnexpectedReply("pairing-request");
  }
}

function decisionFrom(reply: readonly unknown[]): PairingDecision {
  const [kind, first, sender, isOwner] = reply;
  switch (kind) {
    case "done":
      return { kind, channel: text(first), senderId: text(sender), isOwner: isOwner === "1" };
    case "unknown":
    case "expired":
    case "used":
      return { kind };
    case "locked":
      return { kind, forMs: integer(first) };
    default:
      throw new UnexpectedReply("pairing-decide");
  }
}

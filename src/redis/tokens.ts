/**
 * One-time tokens over Redis: made here, kept as digests only, used up by whichever process sees them first. It decides
 * nothing about who may have one. Invariant: a token lets in at most once, also over processes, repeated calls and a
 * Redis that lost its last moments.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import type { IssuedToken, OneTimeTokens } from "../channels/websocket/ports.js";
import { integer, list, text } from "./reply.js";
import type { Scripts } from "./scripts.js";

export interface TokenLimits {
  /** How long a token may be used, ms. */
  ttlMs: number;
  /** Tokens alive at once, over all processes. */
  maxAlive: number;
}

/** Limits of a real gateway. */
export const TOKEN_LIMITS: Readonly<TokenLimits> = { ttlMs: 300_000, maxAlive: 10_000 };

const PREFIX = "ngt_";
const SHAPE = /^ngt_[A-Za-z0-9_-]{43}$/;

export interface TokensDeps {
  scripts: Pick<Scripts, "run">;
  limits: TokenLimits;
}

export class RedisTokens implements OneTimeTokens {
  readonly #deps: TokensDeps;

  constructor(deps: TokensDeps) {
    this.#deps = deps;
  }

  async issue(clientId: string): Promise<IssuedToken> {
    const { ttlMs, maxAlive } = this.#deps.limits;
    const token = PREFIX + randomBytes(32).toString("base64url");
    const args = { token: digestOf(token), client: clientId, ttlMs, most: maxAlive };
    const [kind, freeInMs] = list(await this.#deps.scripts.run("token-issue", args));
    if (kind === "ok") return { ok: true, token, ttlMs };
    return { ok: false, retryAfterMs: integer(freeInMs) };
  }

  async redeem(token: string): Promise<string | null> {
    // What nobody can have been given costs no call.
    if (!SHAPE.test(token)) return null;
    const args = { token: digestOf(token), call: randomUUID() };
    const [kind, clientId] = list(await this.#deps.scripts.run("token-redeem", args));
    return kind === "ok" ? text(clientId) : null;
  }
}

/** What is kept of a token; its 32 random bytes cannot be guessed from it. */
function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}

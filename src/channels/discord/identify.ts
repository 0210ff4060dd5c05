/**
 * Whether and when the bot may identify: Discord's own account of it, and the budget kept here. It makes no connection.
 * Invariant: what waits ends only with its connection, since the library takes any other error for leave to identify.
 */
import { NanogateError } from "../../errors.js";
import type { Logger } from "../../logger.js";
import type { Clock } from "../clock.js";
import { type IdentifyBudget, mayIdentify, type SessionLimit } from "./budget.js";
import { type Rest, RestError } from "./rest.js";
import type { Vitals } from "./vitals.js";
import { fieldsOf } from "./wire.js";

export interface IdentifyDeps {
  rest: Rest;
  budget: IdentifyBudget;
  vitals: Vitals;
  clock: Clock;
  logger: Logger;
  /** Aborts when the channel is stopped while it still connects. */
  signal: AbortSignal;
}

/** A wait for the budget that is longer is left to whoever starts the channel again, ms. */
const LONGEST_WAIT_MS = 15_000;

/** What Discord says of its own account of identifies, before one is used. */
export async function checkLimits(deps: IdentifyDeps): Promise<void> {
  const { budget } = deps;
  const limit = await askLimit(deps);
  if (!mayIdentify(limit)) throw exhausted(limit.resetAfterMs);
  const waitMs = await budget.waitMs();
  if (waitMs > LONGEST_WAIT_MS) throw exhausted(waitMs);
}

async function askLimit({ rest, vitals, signal }: IdentifyDeps): Promise<SessionLimit> {
  try {
    const answer = await rest.call({ method: "GET", path: "gateway/bot", signal });
    return limitIn(answer);
  } catch (error) {
    const isWrongToken = error instanceof RestError && error.failure.kind === "refused" && error.failure.status === 401;
    if (!isWrongToken) throw reasonOf(error);
    const refused = new NanogateError("DISCORD_TOKEN_INVALID", "Discord does not take the bot's token (401).");
    vitals.fail(refused, { isPermanent: true });
    throw refused;
  }
}

function limitIn(answer: unknown): SessionLimit {
  const { total, remaining, reset_after } = fieldsOf(fieldsOf(answer).session_start_limit);
  if (typeof total !== "number" || typeof remaining !== "number")
    return { total: 1000, remaining: 1000, resetAfterMs: 0 };
  return { total, remaining, resetAfterMs: Number(reset_after) || 0 };
}

function exhausted(waitMs: number): NanogateError {
  const minutes = Math.max(1, Math.ceil(waitMs / 60_000));
  const words = `The bot has connected too often and waits ${minutes} min, so that Discord does not reset its token.`;
  return new NanogateError("DISCORD_IDENTIFY_LIMIT", words);
}

/**
 * Returns when the bot may identify. Rejects only when the connection has ended meanwhile: for any other error the library
 * would identify all the same.
 */
export async function waitForPlace(deps: IdentifyDeps, closed: AbortSignal, ended: AbortSignal): Promise<void> {
  const { budget, vitals, clock, logger } = deps;
  const signal = AbortSignal.any([closed, ended]);
  for (;;) {
    const waitMs = await takeFrom(budget, logger);
    if (signal.aborted || waitMs === 0) break;
    vitals.waiting();
    if (waitMs > LONGEST_WAIT_MS) vitals.fail(exhausted(waitMs), { isPermanent: false });
    await clock.sleep(Math.min(waitMs, LONGEST_WAIT_MS), signal);
  }
  const resetAfterMs = signal.aborted ? 0 : await exhaustedFor(deps);
  if (resetAfterMs > 0) vitals.fail(exhausted(resetAfterMs), { isPermanent: false });
  // Whoever sees the failure ends this link, and that closes the connection.
  if (resetAfterMs > 0 || ended.aborted) await abortOf(closed);
  closed.throwIfAborted();
  logger.info({}, "identifying with Discord");
  vitals.shaking();
}

async function takeFrom(budget: IdentifyBudget, logger: Logger): Promise<number> {
  try {
    return await budget.take();
  } catch (error) {
    logger.error({ err: safe(error) }, "it is not known whether the bot may identify; it waits");
    return LONGEST_WAIT_MS;
  }
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** How long nobody may identify, by Discord's own account; 0 when one may, or when it cannot be asked. */
async function exhaustedFor(deps: IdentifyDeps): Promise<number> {
  try {
    const limit = await askLimit(deps);
    return mayIdentify(limit) ? 0 : Math.max(1, limit.resetAfterMs);
  } catch (error) {
    deps.logger.warn({ err: safe(error) }, "Discord could not be asked how often the bot may still identify");
    return 0;
  }
}

/** An error of the connection, in words that may be shown. */
export function reasonOf(error: unknown): NanogateError {
  if (error instanceof NanogateError) return error;
  const words = error instanceof RestError ? error.message : "the connection could not be made";
  return new NanogateError("DISCORD_UNREACHABLE", `Discord cannot be reached: ${words}.`, { cause: safe(error) });
}

/** An error as it may be logged: addresses and what was sent stay behind. */
export function safe(error: unknown): Error {
  if (!(error instanceof Error)) return new Error("unknown");
  return new Error(`${error.name}: ${error.message.replaceAll(/(?:https?|wss?):\S+/g, "[address]")}`);
}

/**
 * What went wrong with a call to the Bot API, in words that may be logged and shown. It decides nothing about repeating.
 * Invariant: no URL, no payload and no cause of the SDK's errors gets through: the token is in each of them.
 */
import { GrammyError, HttpError } from "grammy";
import { redactText } from "../../logger.js";

/** Names of network errors; anything longer may be a text with a URL in it. */
const SHORT_CODE = /^[A-Za-z0-9_-]{1,40}$/;

/** An error that may be logged, made of one that may not. */
export function safeError(error: unknown): Error {
  const safe = new Error(whatFailed(error));
  safe.name = error instanceof Error && SHORT_CODE.test(error.name) ? error.name : "Error";
  // Where the SDK failed tells nothing; where we did, everything.
  const isOurs = error instanceof Error && !(error instanceof GrammyError) && !(error instanceof HttpError);
  if (isOurs && error.stack !== undefined) safe.stack = redactText(error.stack);
  return safe;
}

/** One line about a failed call. */
export function whatFailed(error: unknown): string {
  if (error instanceof GrammyError)
    return redactText(`${error.method}: ${error.error_code} ${error.description}`.slice(0, 300));
  if (error instanceof HttpError) return `the network failed: ${networkCode(error.error)}`;
  if (error instanceof Error) return redactText(error.message.slice(0, 300));
  return "an unknown failure";
}

function networkCode(error: unknown): string {
  if (typeof error !== "object" || error === null) return "unknown";
  const code = "code" in error ? error.code : undefined;
  const name = "name" in error ? error.name : undefined;
  return [code, name].find((word): word is string => typeof word === "string" && SHORT_CODE.test(word)) ?? "unknown";
}

/** The code by which the Bot API refused a call; null when it did not answer. */
export function refusalCode(error: unknown): number | null {
  return error instanceof GrammyError ? error.error_code : null;
}

/** How long the platform asks to be left alone, ms; null when it does not. */
export function retryAfterMs(error: unknown): number | null {
  const seconds = error instanceof GrammyError ? error.parameters.retry_after : undefined;
  return seconds === undefined ? null : seconds * 1000;
}

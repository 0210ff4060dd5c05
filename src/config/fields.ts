/**
 * Building blocks of the schema: each field carries one sentence that says what is allowed, and that sentence is its
 * only error message. It reads nothing and knows no setting. Invariant: an error of a field never holds the value found.
 */
import { z } from "zod";

/** A duration in ms; fractions are allowed. */
export function durationMs(min: number, max: number) {
  const error = `a number of milliseconds from ${min} to ${max}`;
  return z.number({ error }).min(min, { error }).max(max, { error });
}

/** A whole number within bounds, both included. */
export function wholeNumber(min: number, max: number) {
  const error = `a whole number from ${min} to ${max}`;
  return z.number({ error }).int({ error }).min(min, { error }).max(max, { error });
}

/** A whole number, or null for "no limit". */
export function wholeNumberOrNull(min: number, max: number) {
  const error = `a whole number from ${min} to ${max}, or null`;
  return z.number({ error }).int({ error }).min(min, { error }).max(max, { error }).nullable();
}

/** true or false. */
export function yesOrNo() {
  return z.boolean({ error: "true or false" });
}

/** A text of at least one character; `what` says what it is. */
export function text(what: string) {
  return z.string({ error: what }).min(1, { error: what });
}

/** A text of one form; `what` says which. */
export function textLike(pattern: RegExp, what: string) {
  return z.string({ error: what }).regex(pattern, { error: what });
}

/** One of a few words. */
export function oneOf<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.enum(words, { error: words.map((word) => `"${word}"`).join(" or ") });
}

/** The template that takes a value from the environment. */
export function fromEnvironment(variable: string): string {
  return `\${${variable}}`;
}

/**
 * Readers of script replies. They check shapes and nothing else. Invariant: a reply of another shape than its script's
 * header says is an error naming the script, never an undefined that travels on.
 */

/** A reply that does not have the shape its script promises: a fault of ours. */
export class UnexpectedReply extends Error {
  override readonly name = "UnexpectedReply";
}

export function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new UnexpectedReply(`expected a list, got ${typeof value}`);
  return value;
}

export function text(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  throw new UnexpectedReply(`expected text, got ${value === null ? "null" : typeof value}`);
}

export function integer(value: unknown): number {
  const number = Number(text(value));
  if (!Number.isSafeInteger(number)) throw new UnexpectedReply(`expected an integer, got ${text(value).slice(0, 40)}`);
  return number;
}

/**
 * Ids as Discord makes them: time in their upper bits, so that a later id is the greater number. It remembers nothing but
 * the last one. Invariant: every id of one maker is greater than the one before.
 */

const EPOCH_MS = 1_420_070_400_000n;

export class Snowflakes {
  #last = 0n;

  next(): string {
    const now = (BigInt(Date.now()) - EPOCH_MS) << 22n;
    this.#last = now > this.#last ? now : this.#last + 1n;
    return this.#last.toString();
  }
}

/** Whether `a` is the older one. */
export function isOlder(a: string, b: string): boolean {
  return BigInt(a) < BigInt(b);
}

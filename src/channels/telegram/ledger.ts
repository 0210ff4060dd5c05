/**
 * Which updates have been seen, which are done, and so from which one on the platform is asked. It asks nobody. Invariant:
 * the offset never passes an update that is not done, since asking from an offset acknowledges everything before it.
 */

/** After a week without updates the platform may number from anywhere. */
const NUMBERS_LAST_MS = 6 * 24 * 3_600_000;

/** What is kept of it. */
export interface Position {
  /** The first update that is not acknowledged. */
  next: number;
  /** When the last one came, ms since the epoch. */
  seenMs: number;
}

export class Ledger {
  readonly #open = new Set<number>();
  /** Done, but behind one that is not. */
  readonly #done = new Set<number>();
  #next: number | null = null;
  #seenMs = 0;

  /** Goes on from where another process was. */
  restore({ next, seenMs }: Position): void {
    if (this.#next !== null) return;
    this.#next = next;
    this.#seenMs = seenMs;
  }

  /** Notes an update that came; false when it is being worked on or is done. */
  begin(update: number, wallMs: number): boolean {
    this.#seenMs = wallMs;
    if (this.#open.has(update) || this.#done.has(update)) return false;
    const isBehind = this.#next !== null && this.#open.size === 0 && update < this.#next;
    if (isBehind) this.#done.clear();
    this.#next = isBehind ? update + 1 : Math.max(this.#next ?? 0, update + 1);
    this.#open.add(update);
    return true;
  }

  end(update: number): void {
    this.#open.delete(update);
    this.#done.add(update);
    const first = this.#first();
    for (const done of this.#done) if (first !== null && done < first) this.#done.delete(done);
  }

  get isIdle(): boolean {
    return this.#open.size === 0;
  }

  /** Where to ask from; null: from whatever the platform has. */
  offset(wallMs: number): number | null {
    const isOld = this.isIdle && wallMs - this.#seenMs > NUMBERS_LAST_MS;
    return isOld ? null : this.#first();
  }

  /** What another process needs to go on; null before the first update. */
  position(): Position | null {
    const next = this.#first();
    return next === null ? null : { next, seenMs: this.#seenMs };
  }

  #first(): number | null {
    return this.isIdle ? this.#next : Math.min(...this.#open);
  }
}

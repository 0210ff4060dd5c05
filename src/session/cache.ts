/**
 * A bounded memory of the least recently used kind. What is taken out is its taker's alone until it is put back, so that
 * no two holders ever share an object.
 *
 * Invariant: never more than `size` entries; the one that was put back longest ago goes first.
 */
export class LruCache<Key, Value> {
  readonly #size: number;
  readonly #entries = new Map<Key, Value>();

  constructor(size: number) {
    this.#size = size;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  /** Takes an entry out; null when there is none. */
  take(key: Key): Value | null {
    const value = this.#entries.get(key);
    this.#entries.delete(key);
    return value ?? null;
  }

  /** Puts an entry in as the newest. */
  put(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#size) return;
      this.#entries.delete(oldest);
    }
  }
}

/**
 * How many connections each identity has in this process. It knows no socket and closes none. Invariant: whoever came in
 * is counted until it has left, and an identity that has left altogether costs nothing.
 */
export class Crowd {
  readonly #present = new Map<string, number>();

  /** Counts one more of an identity; false when there are `most` of it already. */
  enter(identity: string, most: number): boolean {
    const count = this.#present.get(identity) ?? 0;
    if (count >= most) return false;
    this.#present.set(identity, count + 1);
    return true;
  }

  leave(identity: string): void {
    const count = this.#present.get(identity) ?? 0;
    if (count > 1) this.#present.set(identity, count - 1);
    else this.#present.delete(identity);
  }
}

/**
 * Lanes: work of one key runs one after the other, work of different keys side by side. It knows nothing of deliveries.
 * Invariant: work of a key starts in the order in which it was added, and a lane that is through leaves nothing behind.
 */

export class Lanes {
  readonly #tails = new Map<string, Promise<void>>();
  readonly #onError: (key: string, error: unknown) => void;
  #waiting = 0;

  /** `onError` takes what a piece of work threw; its lane goes on. */
  constructor(onError: (key: string, error: unknown) => void) {
    this.#onError = onError;
  }

  /** Pieces of work that wait or run. */
  get size(): number {
    return this.#waiting;
  }

  /** Whether nothing of this key waits or runs. */
  isFree(key: string): boolean {
    return !this.#tails.has(key);
  }

  /** Returns when this piece of work has ended, however it ended. */
  add(key: string, work: () => Promise<void>): Promise<void> {
    this.#waiting += 1;
    const before = this.#tails.get(key) ?? Promise.resolve();
    const tail = before.then(work).then(undefined, (error: unknown) => this.#onError(key, error));
    const settled = tail.then(() => {
      this.#waiting -= 1;
      if (this.#tails.get(key) === settled) this.#tails.delete(key);
    });
    this.#tails.set(key, settled);
    return settled;
  }

  /** Returns when all that was added before has ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#tails.values());
  }
}

/** The lane of a message: topics and threads of one chat do not wait for each other. */
export function laneOf({ chatId, threadId }: { chatId: string; threadId?: string }): string {
  return JSON.stringify(threadId === undefined ? [chatId] : [chatId, threadId]);
}

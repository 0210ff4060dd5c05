/**
 * Work in order within a chat, chats side by side. It knows no messages. Invariant: a chat with nothing to do costs
 * nothing; work that fails holds nothing up.
 */

export class ChatOrder {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` when all earlier work of that chat has ended, however it ended. */
  after<T>(chatId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(chatId) ?? Promise.resolve();
    const run = before.then(work);
    const ended = Promise.allSettled([run]);
    this.#last.set(chatId, ended);
    void ended.then(() => {
      if (this.#last.get(chatId) === ended) this.#last.delete(chatId);
    });
    return run;
  }
}

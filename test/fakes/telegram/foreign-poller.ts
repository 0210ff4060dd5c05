/**
 * Another program that polls with the bot's token, as a forgotten test run does. It confirms nothing, so that nothing is
 * lost by it. Invariant: after `end` it asks no more.
 */
import type { FakeTelegram } from "./fake-telegram.js";

export class ForeignPoller {
  readonly #over = new AbortController();
  readonly #done: Promise<void>;
  /** How often it was refused, since somebody else polls. */
  conflicts = 0;

  constructor(private readonly fake: FakeTelegram) {
    this.#done = this.#run();
  }

  async end(): Promise<void> {
    this.#over.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      try {
        // An offset of the past: it is given whatever waits, and confirms none of it.
        const url = `${this.fake.apiRoot}/bot${this.fake.token}/getUpdates?timeout=20&offset=1`;
        const response = await fetch(url, { signal });
        await response.arrayBuffer();
        if (response.status === 409) this.conflicts += 1;
        // Updates that nobody confirms would be given at once, again and again.
        await new Promise((resolve) => setTimeout(resolve, 20));
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  }
}

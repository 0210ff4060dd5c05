/**
 * Stopping in the mirror of starting: steps are pushed as things start and run newest first. It knows none of them.
 * Invariant: every step runs once, whatever the one before it did, and stopping twice is stopping once.
 */
import type { Logger } from "./logger.js";

/** Steps of stopping, newest first; each runs whatever the one before it did. */
export class Stopping {
  readonly #logger: Logger;
  readonly #steps: Array<{ name: string; step: () => Promise<unknown> | unknown }> = [];
  #stopped: Promise<void> | null = null;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  push(name: string, step: () => Promise<unknown> | unknown): void {
    this.#steps.unshift({ name, step });
  }

  run(): Promise<void> {
    this.#stopped ??= this.#runAll();
    return this.#stopped;
  }

  async #runAll(): Promise<void> {
    for (const { name, step } of this.#steps) {
      try {
        await step();
      } catch (error) {
        this.#logger.error({ err: error, step: name }, "a step of stopping failed");
      }
    }
  }
}

/** A clock that a test moves. Sleeps end when their time has come or their signal aborts. */
import type { Clock } from "../../src/channels/clock.js";

export class ManualClock implements Clock {
  #nowMs = 0;
  readonly #sleepers = new Set<{ untilMs: number; wake: () => void }>();

  nowMs(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const sleeper = { untilMs: this.#nowMs + ms, wake: () => {} };
      sleeper.wake = () => {
        this.#sleepers.delete(sleeper);
        signal.removeEventListener("abort", sleeper.wake);
        resolve();
      };
      this.#sleepers.add(sleeper);
      signal.addEventListener("abort", sleeper.wake, { once: true });
    });
  }

  /** Time passes and nobody wakes: the process was frozen. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  /** Moves on, a sleeper at a time; what each one starts gets its turn before the next wakes. */
  async advance(ms: number): Promise<void> {
    const target = this.#nowMs + ms;
    for (;;) {
      await settle();
      const next = [...this.#sleepers].sort((a, b) => a.untilMs - b.untilMs)[0];
      if (next === undefined || next.untilMs > target) break;
      this.#nowMs = Math.max(this.#nowMs, next.untilMs);
      next.wake();
    }
    this.#nowMs = target;
    await settle();
  }
}

/** Lets everything that is ready run. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

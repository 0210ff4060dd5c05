/**
 * The rounds every process makes: sessions of dead processes are taken back, lost wake-ups found, and how full Redis is
 * is looked at. Invariant: rounds of one kind never overlap, and a failing round is followed by the next.
 */
import { hasCode } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Bus } from "./bus.js";
import type { ReadyQueue, Upkeep } from "./ports.js";

export interface UpkeepLoopDeps {
  bus: Bus;
  upkeep: Upkeep;
  ready: ReadyQueue;
  /** Looks at the server's memory; its result is kept by whoever hands it in. */
  measurePressure: () => Promise<void>;
  reapMs: number;
  sweepMs: number;
  logger: Logger;
}

export class UpkeepLoop {
  readonly #deps: UpkeepLoopDeps;
  readonly #stop = new AbortController();
  /** When each kind of round last succeeded (monotonic, ms). */
  readonly #succeededMs = new Map<string, number>();
  #rounds: Promise<void>[] = [];

  constructor(deps: UpkeepLoopDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { bus, upkeep, ready, reapMs, sweepMs, measurePressure } = this.#deps;
    const reap = async () => bus.schedule(await upkeep.reap(), "reap.stored");
    const sweep = async () => bus.schedule(await upkeep.sweep((wake) => ready.waits(wake)));
    this.#rounds = [
      this.#every("reap", reapMs, reap),
      this.#every("sweep", sweepMs, sweep),
      this.#every("pressure", 1000, measurePressure),
    ];
  }

  /** For how long the kind of round that fares worst has not succeeded, ms; 0 before the start. */
  get silentForMs(): number {
    return performance.now() - Math.min(performance.now(), ...this.#succeededMs.values());
  }

  async #every(kind: string, ms: number, round: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    this.#succeededMs.set(kind, performance.now());
    while (!signal.aborted) {
      await pause(ms, signal);
      if (signal.aborted) return;
      try {
        await round();
        this.#succeededMs.set(kind, performance.now());
      } catch (error) {
        const level = hasCode(error, "BUS_UNAVAILABLE") ? "debug" : "error";
        this.#deps.logger[level]({ err: error, kind }, "a round of upkeep failed");
      }
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#rounds);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

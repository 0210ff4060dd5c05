/**
 * How the channel's incoming side is, by completed round trips alone: neither a connection nor a sent message counts.
 * Invariant: it says "running" only after a round trip since the start or the last failure, and "failed" always with what to
 * do; it needs nobody to run for that.
 */
import { ERROR_ADVICE, type ErrorCode } from "../../errors.js";
import type { ChannelHealth } from "../channel.js";
import type { Clock } from "../clock.js";

export interface Failure {
  code: ErrorCode;
  problem: string;
  /** Only a person can mend it. */
  isPermanent: boolean;
}

export class InboundHealth {
  readonly #clock: Clock;
  /** Without a round trip for so long it has failed. */
  readonly #patienceMs: number;
  #state: "starting" | "running" | "stopped" = "starting";
  #failure: Failure | null = null;
  #lastMs = 0;
  #trouble = "no answer";
  #isPaused = false;

  constructor(clock: Clock, patienceMs: number) {
    this.#clock = clock;
    this.#patienceMs = patienceMs;
  }

  started(): void {
    this.#state = "starting";
    this.#failure = null;
    this.#isPaused = false;
    this.#lastMs = this.#clock.nowMs();
  }

  stopped(): void {
    this.#state = "stopped";
  }

  /** A round trip was completed. */
  progressed(): void {
    if (this.#state === "stopped") return;
    this.#state = "running";
    this.#failure = null;
    this.#lastMs = this.#clock.nowMs();
  }

  /** Nothing is asked for, on purpose: what came before cannot be stored now. */
  paused(isPaused: boolean): void {
    if (this.#isPaused && !isPaused) this.#lastMs = this.#clock.nowMs();
    this.#isPaused = isPaused;
  }

  /** Something went wrong that may pass. */
  troubled(what: string): void {
    this.#trouble = what;
  }

  failed(failure: Failure): void {
    this.#failure = failure;
  }

  health(): ChannelHealth {
    if (this.#state === "stopped") return { state: "stopped" };
    if (this.#failure !== null) return asHealth(this.#failure);
    const silentMs = this.#clock.nowMs() - this.#lastMs;
    if (this.#isPaused || silentMs <= this.#patienceMs) return { state: this.#state };
    const problem = `Telegram could not be asked for ${Math.round(silentMs / 1000)} s: ${this.#trouble}`;
    return asHealth({ code: "TELEGRAM_UNREACHABLE", problem, isPermanent: false });
  }
}

function asHealth({ code, problem, isPermanent }: Failure): ChannelHealth {
  const advice = ERROR_ADVICE[code];
  return { state: "failed", problem, advice, ...(isPermanent ? { isPermanent } : {}) };
}

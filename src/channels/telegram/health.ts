/**
 * How the channel's incoming side is, by completed round trips alone: neither a connection nor a sent message counts.
 * Invariant: it says "running" only after a round trip since the start or the last failure, and "failed" always with what to
 * do; what failed is told until a round trip shows that it is over, also over a restart. It needs nobody to run for that.
 */
import { ERROR_ADVICE, type ErrorCode } from "../../errors.js";
import type { ChannelHealth } from "../channel.js";
import type { Clock } from "../clock.js";

export interface Failure {
  code: ErrorCode;
  problem: string;
  /** `permanent`: only a person can mend it. `deaf`: nothing is heard, sending works. */
  kind: "permanent" | "deaf" | "passing";
}

export class InboundHealth {
  readonly #clock: Clock;
  /** Without a round trip for so long it has failed. */
  readonly #patienceMs: number;
  #state: "starting" | "running" | "stopped" = "stopped";
  #failure: Failure | null = null;
  /** What was wrong before the last start, or before something else went wrong. */
  #past: Failure | null = null;
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
    if (this.#state === "stopped") return;
    const failure = this.#present();
    this.#past = failure?.kind === "permanent" ? null : failure;
    this.#state = "stopped";
  }

  /** A round trip was completed. */
  progressed(): void {
    if (this.#state === "stopped") return;
    this.#state = "running";
    this.#failure = null;
    this.#past = null;
    this.#lastMs = this.#clock.nowMs();
  }

  /** Nothing is asked for, on purpose: what came before cannot be stored now. */
  paused(isPaused: boolean): void {
    if (this.#isPaused && !isPaused) this.#lastMs = this.#clock.nowMs();
    this.#isPaused = isPaused;
  }

  /** Something went wrong that may pass; why nothing was heard before is no longer why. */
  troubled(what: string): void {
    this.#trouble = what;
    if (this.#failure?.kind !== "deaf") return;
    this.#past = unreachable(`Telegram could not be asked: ${what}`);
    this.#failure = null;
  }

  failed(failure: Failure): void {
    this.#failure = failure;
    if (this.#state === "running") this.#state = "starting";
    // The platform was asked, and answered.
    if (failure.kind === "deaf") this.#lastMs = this.#clock.nowMs();
  }

  health(): ChannelHealth {
    if (this.#state === "stopped") return { state: "stopped" };
    const failure = this.#present();
    return failure === null ? { state: this.#state } : asHealth(failure);
  }

  #present(): Failure | null {
    if (this.#failure !== null) return this.#failure;
    const silentMs = this.#clock.nowMs() - this.#lastMs;
    if (this.#isPaused || silentMs <= this.#patienceMs)
      return this.#past === null ? null : { ...this.#past, kind: "deaf" };
    return unreachable(`Telegram could not be asked for ${Math.round(silentMs / 1000)} s: ${this.#trouble}`);
  }
}

function unreachable(problem: string): Failure {
  return { code: "TELEGRAM_UNREACHABLE", problem, kind: "passing" };
}

function asHealth({ code, problem, kind }: Failure): ChannelHealth {
  const failed = { state: "failed", problem, advice: ERROR_ADVICE[code] } as const;
  switch (kind) {
    case "permanent":
      return { ...failed, isPermanent: true };
    case "deaf":
      return { ...failed, isDeaf: true };
    case "passing":
      return failed;
    default:
      return kind satisfies never;
  }
}

/**
 * How fast one connection may send: a bucket of frames that refills with time. It answers nobody and closes nothing.
 * Invariant: over any span no more frames pass than the burst and what was refilled in it.
 */

export interface PaceLimits {
  /** Frames that may come at once. */
  burstFrames: number;
  framesPerSecond: number;
  /** Frames refused without a rest, after which a connection is too much. */
  maxRefusedFrames: number;
}

/** What becomes of a frame; a refused one may come again after `retryAfterMs`. */
export type Verdict = { ok: true } | { ok: false; retryAfterMs: number; isTooMuch: boolean };

export class Pace {
  readonly #limits: PaceLimits;
  readonly #nowMs: () => number;
  #left: number;
  #filledMs: number;
  /** Since the bucket was last full. */
  #refused = 0;

  /** `nowMs`: a clock that never steps back. */
  constructor(limits: PaceLimits, nowMs: () => number) {
    this.#limits = limits;
    this.#nowMs = nowMs;
    this.#left = limits.burstFrames;
    this.#filledMs = nowMs();
  }

  take(): Verdict {
    const { burstFrames, framesPerSecond, maxRefusedFrames } = this.#limits;
    const nowMs = this.#nowMs();
    this.#left = Math.min(burstFrames, this.#left + ((nowMs - this.#filledMs) / 1000) * framesPerSecond);
    this.#filledMs = nowMs;
    if (this.#left === burstFrames) this.#refused = 0;
    if (this.#left >= 1) {
      this.#left -= 1;
      return { ok: true };
    }
    this.#refused += 1;
    // Each refused frame is told a later time, so that they do not all come again at once.
    const retryAfterMs = Math.ceil(((this.#refused - this.#left) / framesPerSecond) * 1000);
    return { ok: false, retryAfterMs, isTooMuch: this.#refused > maxRefusedFrames };
  }
}

/**
 * Keeps a provider that fails again and again from being asked for a while. It knows neither providers nor errors, only
 * whether calls ended well; it sets no timer. Invariants: while it is open nobody passes; after that one probe at a time
 * does, and only how a probe or another call ends opens or closes it. [RUN-34]
 */

const FAILURES_TO_OPEN = 3;
const OPEN_MS = 60_000;

/** How a call that passed has ended: `neither` where it says nothing about the provider, as after an abort. */
export type CallEnd = "success" | "failure" | "neither";

/** One breaker. Times are in ms of any clock that does not go back. */
export class CircuitBreaker {
  #failures = 0;
  /** Null: closed. */
  #openUntilMs: number | null = null;
  #isProbing = false;

  constructor(readonly deps: { nowMs(): number; onOpen(openMs: number): void }) {}

  /** Null: the call must not be made. Else the function to be called once, with how the call ended. */
  enter(): ((end: CallEnd) => void) | null {
    if (this.#openUntilMs === null) return (end) => this.#leave(end, false);
    if (this.#isProbing || this.deps.nowMs() < this.#openUntilMs) return null;
    this.#isProbing = true;
    return (end) => this.#leave(end, true);
  }

  #leave(end: CallEnd, isProbe: boolean): void {
    if (isProbe) this.#isProbing = false;
    if (end === "success") {
      this.#failures = 0;
      this.#openUntilMs = null;
    }
    if (end !== "failure") return;
    this.#failures += 1;
    // Calls that began before it opened and fail now tell nothing new.
    const opens = isProbe || (this.#openUntilMs === null && this.#failures >= FAILURES_TO_OPEN);
    if (!opens) return;
    this.#openUntilMs = this.deps.nowMs() + OPEN_MS;
    this.deps.onOpen(OPEN_MS);
  }
}

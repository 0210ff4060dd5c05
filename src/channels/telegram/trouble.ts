/**
 * What is done about a failed call to the platform: how long it is left alone, and what that says about the channel. It
 * calls nothing. Invariants: a wait that the platform states is kept exactly, also over a restart of the channel; another
 * program with the same token is never fought.
 */
import type { Logger } from "../../logger.js";
import { backOffMs, type Clock } from "../clock.js";
import { refusalCode, retryAfterMs, safeError, whatFailed } from "./api-error.js";
import type { InboundHealth } from "./health.js";

/** At least one long poll, in which the other program's request ends. */
const CONFLICT_MS = 35_000;
const CONFLICT_MAX_MS = 300_000;
/** Refusals that no repetition changes: the token is wrong, revoked, or of a deleted bot. */
const FOR_GOOD: readonly (number | null)[] = [401, 403, 404];

export class Trouble {
  readonly #clock: Clock;
  readonly #health: InboundHealth;
  #quietUntilMs = 0;
  #tries = 0;
  #conflicts = 0;

  constructor(clock: Clock, health: InboundHealth) {
    this.#clock = clock;
    this.#health = health;
  }

  /** A round trip was completed. */
  over(): void {
    this.#tries = 0;
    this.#conflicts = 0;
  }

  /** Returns when the platform may be called again, or when the signal aborts. */
  async quiet(signal: AbortSignal): Promise<void> {
    if (this.quietMs() > 0) await this.#clock.sleep(this.quietMs(), signal);
  }

  /** How long the platform is to be left alone; 0 or less: no longer. */
  quietMs(): number {
    return this.#quietUntilMs - this.#clock.nowMs();
  }

  /** Takes note of a failed call. True: no repetition will help. */
  note(error: unknown, logger: Logger): boolean {
    const code = refusalCode(error);
    const what = whatFailed(error);
    this.#health.troubled(what);
    if (FOR_GOOD.includes(code)) {
      const problem = `Telegram does not take this bot's token: ${what}`;
      this.#health.failed({ code: "TELEGRAM_TOKEN_INVALID", problem, kind: "permanent" });
      logger.error({ err: safeError(error) }, "the platform does not take the token");
      return true;
    }
    const waitMs = code === 409 ? this.#conflict(what) : (retryAfterMs(error) ?? this.#backOff());
    this.#quietUntilMs = this.#clock.nowMs() + waitMs;
    logger.warn({ err: safeError(error), waitMs }, "the platform could not be asked; trying again");
    return false;
  }

  #backOff(): number {
    this.#tries += 1;
    return backOffMs(this.#tries);
  }

  #conflict(what: string): number {
    this.#conflicts += 1;
    const cause = /webhook/i.test(what) ? "somebody has set a webhook" : "another program polls with this token";
    this.#health.failed({
      code: "TELEGRAM_CONFLICT",
      problem: `Telegram gives this bot's updates to somebody else: ${cause}.`,
      kind: "deaf",
    });
    return Math.min(CONFLICT_MAX_MS, CONFLICT_MS * 2 ** (this.#conflicts - 1));
  }
}

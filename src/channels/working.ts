/**
 * Shows that an answer is being made: one sign a turn, begun with its first event, kept up, and ended whatever becomes of the
 * turn. It knows no streams. Invariant: a sign that was begun is ended exactly once, after its last repetition, at the latest
 * when its turn has been silent for ten minutes.
 */
import type { OutboundMessage } from "../bus/messages.js";
import type { Logger } from "../logger.js";
import type { LiveView } from "./channel.js";
import { type Clock, inTime } from "./clock.js";

export interface WorkingDeps {
  live: LiveView<unknown>;
  clock: Clock;
  logger: Logger;
}

interface Sign {
  message: OutboundMessage;
  lastMs: number;
  ended: AbortController;
  life: Promise<void>;
}

/** A turn that is silent for so long is not worked on any more. */
export const SILENCE_MS = 600_000;
const CALL_LIMIT_MS = 5_000;
/** Turns beyond this show no sign. */
const MAX_SIGNS = 10_000;

export class Working {
  readonly #deps: WorkingDeps;
  readonly #signs = new Map<string, Sign>();
  /** Calls under way that take a sign away. */
  readonly #ends = new Set<Promise<void>>();

  constructor(deps: WorkingDeps) {
    this.#deps = deps;
  }

  /** Something happened in a turn that is not over. */
  see(message: OutboundMessage): void {
    const nowMs = this.#deps.clock.nowMs();
    const known = this.#signs.get(message.turnId);
    if (known !== undefined) known.lastMs = nowMs;
    if (known !== undefined || this.#signs.size >= MAX_SIGNS) return;
    const sign: Sign = { message, lastMs: nowMs, ended: new AbortController(), life: Promise.resolve() };
    this.#signs.set(message.turnId, sign);
    sign.life = this.#keepUp(sign);
  }

  /** The turn has shown its last message, or is over. False: no sign of it was shown here. */
  end(turnId: string): boolean {
    const sign = this.#signs.get(turnId);
    sign?.ended.abort();
    return sign !== undefined;
  }

  /** Takes a sign away that another process has begun. */
  async endForeign(message: OutboundMessage): Promise<void> {
    await this.#takeAway(message);
  }

  /** Ends all signs, and returns when that is done. */
  async stop(): Promise<void> {
    const lives = [...this.#signs.values()].map(({ ended, life }) => {
      ended.abort();
      return life;
    });
    await Promise.all([...lives, ...this.#ends]);
  }

  async #keepUp(sign: Sign): Promise<void> {
    const { live, clock } = this.#deps;
    const { message, ended } = sign;
    try {
      await this.#call("begin", message);
      while (!ended.signal.aborted) {
        await clock.sleep(live.workingEveryMs, ended.signal);
        if (clock.nowMs() - sign.lastMs >= SILENCE_MS) break;
        if (!ended.signal.aborted) await this.#call("again", message);
      }
    } finally {
      this.#signs.delete(message.turnId);
      await this.#takeAway(message);
    }
  }

  #takeAway(message: OutboundMessage): Promise<void> {
    const call = this.#call("end", message).finally(() => this.#ends.delete(call));
    this.#ends.add(call);
    return call;
  }

  /** What nobody misses may fail. */
  async #call(phase: "begin" | "again" | "end", message: OutboundMessage): Promise<void> {
    const { live, clock, logger } = this.#deps;
    const within = { ms: CALL_LIMIT_MS, signal: new AbortController().signal };
    try {
      await inTime(clock, within, (signal) => live.working(phase, message, signal));
    } catch (error) {
      const { turnId: turn, chatId } = message;
      logger.debug({ err: error, turn, chatId, phase }, "a sign of work could not be shown");
    }
  }
}

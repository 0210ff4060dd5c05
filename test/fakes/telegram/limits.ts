/**
 * Telegram's limits, watched: who breaks them is noted, and told so only where a test wants that. It delays nothing.
 * Invariant: what Telegram publishes is counted at arrival, within sliding windows, edits like sends.
 */
import type { Journal } from "./journal.js";
import { tooMany } from "./refusal.js";

/** A wait that was told may be over so much earlier. */
const TOLERANCE_MS = 30;
/** Windows are shorter by what the way of two requests may differ on a busy machine; who keeps no limit is far quicker. */
const WAY_MS = 400;

export interface Counted {
  method: string;
  chatId: number;
  isGroup: boolean;
  /** Messages that the call makes. */
  messages: number;
}

interface Allowance {
  bucket: string;
  count: number;
  perMs: number;
  cost: number;
}

interface Wait {
  seconds: number;
  untilMs: number | null;
}

export class Limits {
  readonly #times = new Map<string, number[]>();
  readonly #waits = new Map<number, Wait>();
  /** Whether who breaks a limit is refused with 429. */
  isEnforced = false;

  constructor(
    private readonly journal: Journal,
    private readonly nowMs: () => number,
  ) {}

  /** The next call into this chat is told to wait; calls before that is over are violations. */
  flood(chatId: number, seconds: number): void {
    this.#waits.set(chatId, { seconds, untilMs: null });
  }

  /**
   * A call into a chat. A wait begins with one that shows something (`isCounted`), and is for all: throws a refusal while the
   * chat must be left alone.
   */
  arrived(method: string, chatId: number, isCounted: boolean): void {
    const wait = this.#waits.get(chatId);
    if (wait === undefined) return;
    const now = this.nowMs();
    if (wait.untilMs === null) {
      if (!isCounted) return;
      wait.untilMs = now + wait.seconds * 1000;
      throw tooMany(wait.seconds);
    }
    const leftMs = wait.untilMs - now;
    if (leftMs <= TOLERANCE_MS) {
      this.#waits.delete(chatId);
      return;
    }
    this.journal.violated("during_wait", `${method} into ${chatId}, ${Math.round(leftMs)} ms too early`);
    throw tooMany(Math.ceil(leftMs / 1000));
  }

  /** A call that shows something. Throws only when limits are enforced. */
  count({ method, chatId, isGroup, messages }: Counted): void {
    const broken = [
      this.#take("bot_rate", `${method} of the bot`, { bucket: "bot", count: 30, perMs: 1000, cost: messages }),
      this.#take("chat_rate", `${method} into ${chatId}`, { bucket: `chat ${chatId}`, count: 1, perMs: 1000, cost: 1 }),
      isGroup &&
        this.#take("group_rate", `${method} into ${chatId}`, {
          bucket: `group ${chatId}`,
          count: 20,
          perMs: 60_000,
          cost: messages,
        }),
    ];
    if (broken.includes(true) && this.isEnforced) throw tooMany(1);
  }

  #take(
    kind: "bot_rate" | "chat_rate" | "group_rate",
    what: string,
    { bucket, count, perMs, cost }: Allowance,
  ): boolean {
    const now = this.nowMs();
    const times = (this.#times.get(bucket) ?? []).filter((at) => now - at < perMs - WAY_MS);
    for (let each = 0; each < cost; each += 1) times.push(now);
    this.#times.set(bucket, times);
    if (times.length <= count) return false;
    this.journal.violated(kind, `${what}: ${times.length} within ${perMs} ms`);
    return true;
  }
}

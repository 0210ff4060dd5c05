/**
 * How often the bot may identify. Discord resets the token of a bot that does so more than a thousand times a day, so this
 * keeps an account of its own in the account's memory, over restarts and processes. It knows no connection. Invariant: within
 * any day never more than `burst + 1 day / everyMs` identifies.
 */
import { z } from "zod";
import { hasCode } from "../../errors.js";
import type { AccountMemory } from "../ports.js";

export interface IdentifyRules {
  /** So many may follow each other. */
  burst: number;
  /** Then one each so many ms. */
  everyMs: number;
  /** Least time between two, ms. */
  spacingMs: number;
}

/** 20 and then 360 a day. Discord itself wants 5 s between two. */
export const IDENTIFY_RULES: IdentifyRules = { burst: 20, everyMs: 240_000, spacingMs: 5200 };

/** What Discord says of its own account. */
export interface SessionLimit {
  total: number;
  remaining: number;
  resetAfterMs: number;
}

/** Identifies of Discord's own account that are not touched: somebody must be able to start the bot by hand. */
export function mayIdentify({ total, remaining }: SessionLimit): boolean {
  return remaining > Math.min(50, Math.floor(total / 20));
}

interface State {
  /** Identifies that may be made at once, as of `atMs`. */
  left: number;
  atMs: number;
  lastMs: number;
}

export interface BudgetDeps {
  memory: Pick<AccountMemory, "get" | "set">;
  rules: IdentifyRules;
  /** The time of day, ms since the epoch. */
  wallMs: () => number;
}

const NAME = "identify";
/** Asked again after so long when nothing is known, ms. */
const UNKNOWN_MS = 5000;

export class IdentifyBudget {
  readonly #deps: BudgetDeps;
  #state: State | null = null;

  constructor(deps: BudgetDeps) {
    this.#deps = deps;
  }

  /** Takes one identify. The time to wait before asking again, ms; 0: taken. */
  async take(): Promise<number> {
    const { rules, wallMs } = this.#deps;
    const known = await this.#load();
    if (known === null) return UNKNOWN_MS;
    const nowMs = wallMs();
    const state = refilled(known, nowMs, rules);
    const waitMs = waitOf(state, nowMs, rules);
    if (waitMs > 0) return waitMs;
    const taken = { left: state.left - 1, atMs: nowMs, lastMs: nowMs };
    return (await this.#keep(taken)) ? 0 : UNKNOWN_MS;
  }

  /** The time until one may be taken, ms. */
  async waitMs(): Promise<number> {
    const { rules, wallMs } = this.#deps;
    const known = await this.#load();
    const nowMs = wallMs();
    return known === null ? UNKNOWN_MS : waitOf(refilled(known, nowMs, rules), nowMs, rules);
  }

  /** What the memory says; while it is away, what was last known here. */
  async #load(): Promise<State | null> {
    try {
      const { memory, rules, wallMs } = this.#deps;
      const text = await memory.get(NAME);
      this.#state = text === null ? { left: rules.burst, atMs: wallMs(), lastMs: 0 } : read(text, wallMs());
    } catch (error) {
      if (!hasCode(error, "BUS_UNAVAILABLE")) throw error;
    }
    return this.#state;
  }

  /** False: another process would not know of it, and neither would a later life. */
  async #keep(state: State): Promise<boolean> {
    try {
      await this.#deps.memory.set(NAME, JSON.stringify(state));
    } catch (error) {
      if (!hasCode(error, "BUS_UNAVAILABLE")) throw error;
      return false;
    }
    this.#state = state;
    return true;
  }
}

function refilled({ left, atMs, lastMs }: State, nowMs: number, { burst, everyMs }: IdentifyRules): State {
  // A clock that was set back gives nothing.
  const earned = Math.max(0, nowMs - atMs) / everyMs;
  return { left: Math.min(burst, left + earned), atMs: nowMs, lastMs: Math.min(lastMs, nowMs) };
}

function waitOf({ left, lastMs }: State, nowMs: number, { everyMs, spacingMs }: IdentifyRules): number {
  const forOne = left >= 1 ? 0 : (1 - left) * everyMs;
  return Math.ceil(Math.max(0, forOne, lastMs + spacingMs - nowMs));
}

const stateShape = z.object({ left: z.number(), atMs: z.number(), lastMs: z.number() });

/** Something unreadable counts as all used up: better late than a reset token. */
function read(text: string, nowMs: number): State {
  const read = stateShape.safeParse(parsed(text));
  return read.success ? read.data : { left: 0, atMs: nowMs, lastMs: nowMs };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

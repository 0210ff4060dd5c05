/**
 * What the channel is made of from outside, and how patient it is. Types and constants only. Invariant: everything it needs is
 * handed in at once.
 */
import type { Clock } from "../clock.js";
import { IDENTIFY_RULES, type IdentifyRules } from "./budget.js";
import { PATIENCE, type Patience } from "./vitals.js";

/** The channel's slice of the config. */
export interface DiscordConfig {
  apiRoot: string;
  streaming: boolean;
  editIntervalMs: number;
  reaction: string | null;
  lateEdits: "ignore" | "answer";
  backfillMessages: number;
}

export interface DiscordDeps {
  config: DiscordConfig;
  token: string;
  /** Where events wait that could not be stored. */
  spoolFolder: string;
  clock: Clock;
  /** The time of day, ms since the epoch. */
  wallMs: () => number;
  timing: DiscordTiming;
}

/** How patient the channel is with Discord. */
export interface DiscordTiming {
  patience: Patience;
  identify: IdentifyRules;
  /** How long the guilds of a new session are waited for, ms. */
  guildsMs: number;
  /** How often marks of what was read are kept, ms. */
  flushMs: number;
}

export const DISCORD_TIMING: DiscordTiming = {
  patience: PATIENCE,
  identify: IDENTIFY_RULES,
  guildsMs: 5000,
  flushMs: 30_000,
};

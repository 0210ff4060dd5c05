/**
 * What the channels need from outside: limits and an account's memory shared by all processes, live events, a shelf for
 * files, pairings. Implemented by `redis/` and `media/`, handed in by `gateway.ts`. Types only; whatever asks Redis may
 * throw `BUS_UNAVAILABLE`.
 */
import type { MediaRef, OutboundMessage, Outgoing } from "../bus/messages.js";

/** At most `count` calls within any `perMs`, over all processes. */
export interface RateLimit {
  /** Its name within the account: the bot, one chat, one group. */
  bucket: string;
  count: number;
  perMs: number;
  /** Calls that this one counts for (an album: one a file). */
  cost: number;
}

/** 0: taken. Else the time to wait before asking again, ms, and the bucket that keeps waiting longest. */
export type RateVerdict = { waitMs: 0 } | { waitMs: number; bucket: string };

/** Limits of an account that are known in advance. */
export interface RateLimiter {
  /** Takes a place in all of the limits, or in none. */
  take(account: string, limits: readonly RateLimit[]): Promise<RateVerdict>;
  /** The platform asked to leave a bucket alone for so long; also after a change of owner. */
  park(account: string, bucket: string, ms: number): Promise<void>;
}

/** What an account must know again after a restart: a position in its platform's stream, chats it has seen. */
export interface AccountMemory {
  get(name: string): Promise<string | null>;
  set(name: string, value: string): Promise<void>;
  /** All names that begin so, with their values. */
  list(prefix: string): Promise<Map<string, string>>;
  forget(name: string): Promise<void>;
}

/** Lossy events on their way to an account: deltas, tools, typing, ends of turns. */
export interface LiveEvents {
  follow(account: string, listener: (message: OutboundMessage) => void): Promise<() => Promise<void>>;
}

/** A file on its way in. */
export interface IncomingFile {
  /** As its sender called it; may be anything. */
  name: string | null;
  /** As its sender typed it; only believed where the bytes say nothing. */
  mime: string | null;
  isVoice: boolean;
  body: AsyncIterable<Uint8Array>;
}

/** The one store of files. */
export interface MediaShelf {
  /** Bytes that one file may have; a channel need not fetch what is announced as bigger. */
  readonly maxBytes: number;
  /** Keeps a file under a safe name. Throws `MEDIA_REFUSED` (too large, empty) with a reason for its sender. */
  save(file: IncomingFile): Promise<MediaRef>;
  /** The absolute path of a kept file. Throws `MEDIA_REFUSED` for one that is gone or that no shelf holds. */
  pathOf(ref: MediaRef): Promise<string>;
}

/** A request for pairing that waits for an owner. */
export interface PairingRequest {
  /** As people read it: `XXXX-XXXX`. */
  code: string;
  channel: string;
  senderId: string;
  /** ms since the epoch. */
  expiresMs: number;
  /** Until then, by the clock that all processes share, ms. */
  leftMs: number;
}

/** Somebody unknown who wrote to the bot alone. */
export interface PairingAsk {
  channel: string;
  senderId: string;
  /** What the person is told when an owner has approved the code; kept with the request, sent by the approval itself. */
  welcome(code: string): Outgoing;
}

/**
 * `tellingMs` names one telling of it: as long as it stays the same, it is told already. `isNew`: this call began it.
 */
export type PairingAnswer =
  | { kind: "code"; request: PairingRequest; tellingMs: number; isNew: boolean }
  /** Too many wait in this channel. */
  | { kind: "full"; tellingMs: number }
  /** An owner said no a short while ago. */
  | { kind: "denied" }
  /** Paired meanwhile. */
  | { kind: "paired"; isOwner: boolean };

/** A try to decide about a code. */
export interface PairingAttempt {
  verdict: "approve" | "deny";
  /** As somebody typed it. */
  code: string;
  /** Who tries: their attempts are limited, whether the code is right or not. */
  by: string;
  /** Names this try: repeated, it gives the same answer and counts once. */
  call: string;
}

export type PairingDecision =
  | { kind: "done"; channel: string; senderId: string; isOwner: boolean }
  | { kind: "unknown" | "expired" | "used" }
  /** Too many tries; not even a right code counts now. */
  | { kind: "locked"; forMs: number };

/** Somebody who may speak by pairing. */
export interface Paired {
  channel: string;
  senderId: string;
  isOwner: boolean;
  /** ms since the epoch. */
  sinceMs: number;
}

/** Who may speak by pairing. Every step is atomic over all processes. */
export interface PairingStore {
  /** Whether this person is paired, and whether as the first ever, who is an owner. */
  find(channel: string, senderId: string): Promise<{ isOwner: boolean } | null>;
  /** The code of this person, made if there is none. */
  request(ask: PairingAsk): Promise<PairingAnswer>;
  decide(attempt: PairingAttempt): Promise<PairingDecision>;
  /** False: that person was not paired. */
  revoke(channel: string, senderId: string): Promise<boolean>;
  /** What waits for an owner, the oldest first. */
  pending(): Promise<PairingRequest[]>;
  paired(): Promise<Paired[]>;
}

/** A bot that spoke. */
export interface BotSpending {
  channel: string;
  chatId: string;
  botId: string;
  /** The same message counts once. */
  messageId: string;
  /** So many messages within any `perMs`. */
  messages: number;
  perMs: number;
}

/** How much other bots may say: at most so many messages of one bot in one chat within a time. */
export interface BotBudget {
  /** `spent`: no more for now, for the first time in this window; `still_spent`: and it has been said already. */
  spend(spending: BotSpending): Promise<"taken" | "spent" | "still_spent">;
}

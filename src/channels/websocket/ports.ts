/**
 * What the WebSocket channel needs from outside: the numbered log of each chat, who owns a chat, and one-time tokens.
 * Implemented by `redis/`, handed in by `gateway.ts`. Types only; any method may throw `BUS_UNAVAILABLE`.
 */
import type { OutboundMessage } from "../../bus/messages.js";

/** Where a chat's event log stands. `epoch` grows when the store came back as another server. */
export interface ChatHead {
  epoch: number;
  seq: number;
}

/** One numbered event; numbers of a chat start at 1 and grow by exactly 1. */
export interface ChatEvent {
  seq: number;
  message: OutboundMessage;
}

/** Events after a number, oldest first, or word that they are no longer there. */
export type ChatRead = { kind: "events"; head: ChatHead; events: ChatEvent[] } | { kind: "resync"; head: ChatHead };

/** Numbered, bounded logs of what was said in a chat; the same numbers for every reader. */
export interface ChatLog {
  head(account: string, chatId: string): Promise<ChatHead>;
  /** Events with a number above `after`; `epoch` null means the present one. */
  read(account: string, chatId: string, after: number, epoch: number | null): Promise<ChatRead>;
  /** Calls back for each event as it is appended; may miss some. Returns how to end it. */
  follow(account: string, chatId: string, onEvent: (event: ChatEvent) => void): Promise<() => Promise<void>>;
  /** Calls back when the connection was lost and is back. Returns how to end it. */
  onReconnect(listener: () => void): () => void;
  /** Binds a chat to the identity that comes first; returns the identity it belongs to. */
  claim(account: string, chatId: string, identity: string): Promise<string>;
}

/** A token, or word that too many are alive. */
export type IssuedToken = { ok: true; token: string; ttlMs: number } | { ok: false; retryAfterMs: number };

/** Tokens that let one connection in, as the client they were issued for, at any process of the gateway. */
export interface OneTimeTokens {
  issue(clientId: string): Promise<IssuedToken>;
  /** Uses a token up; the client it belongs to, or null when it is unknown, used or expired. */
  redeem(token: string): Promise<string | null>;
}

/**
 * What delivery needs from outside: the outbox of an account and the event log of a chat. Implemented by `redis/`, handed in
 * by `gateway.ts`. Types only; any method may throw `BUS_UNAVAILABLE`.
 */
import type { OutboundMessage, Outgoing } from "./messages.js";

/** One delivery that an account's owner took from its outbox. */
export interface Delivery {
  /** Position in the stream. */
  entryId: string;
  outgoing: Outgoing;
}

/** What became of a part of an outbound message. */
export type Receipt =
  | { state: "sent"; platformId: string }
  | { state: "unknown"; reason: string }
  /** Its sending was begun; whoever finds this and nothing later does not know whether it arrived. `atMs`: since the epoch. */
  | { state: "begun"; atMs: number }
  /** Refused as it was: these stand in its place, each with a receipt of its own (`2.0`, `2.1`). */
  | { state: "changed"; into: readonly unknown[] };

export interface DeadLetter {
  id: string;
  channel: string;
  chatId: string;
  text: string;
  error: string;
  attempts: number;
}

/** The outbox of one account, fenced by the owner's lease. */
export interface OutboxStore {
  /**
   * Takes the ownership of an account for `leaseMs`; null while another process has it. Its owner prolongs it under the
   * same fence, and gives it back with `leaseMs` 0 (the answer is then null).
   */
  own(account: string, leaseMs: number): Promise<{ fence: number } | null>;
  /** Waits up to `waitMs` for entries after `afterEntryId` (`0` for all that are not yet consumed). */
  read(account: string, afterEntryId: string, waitMs: number): Promise<Delivery[]>;
  /** Stores the receipt of a part, or forgets it (null); throws `LEASE_LOST` when the ownership is not ours. */
  receipt(account: string, fence: number, outboundId: string, part: string, receipt: Receipt | null): Promise<void>;
  /** By the name of the part. */
  receipts(outboundId: string): Promise<Map<string, Receipt>>;
  /** Ends a delivery: done, or into the dead letters. */
  consume(account: string, fence: number, delivery: Delivery, deadLetter: DeadLetter | null): Promise<void>;
}

/** Where a chat's event log stands. */
export interface ChatHead {
  epoch: number;
  seq: number;
}

export interface ChatEvent {
  seq: number;
  message: OutboundMessage;
}

/** Numbered, bounded logs of what was said in a chat; the same numbers for every reader. */
export interface ChatEvents {
  head(account: string, chatId: string): Promise<ChatHead>;
  /**
   * Events with a number above `after`, oldest first. `resync` when they are no longer kept, or when the reader's epoch
   * is an earlier one and `after` lies beyond what survived into the present one. `epoch` null: the present one.
   */
  read(
    account: string,
    chatId: string,
    after: number,
    epoch: number | null,
  ): Promise<{ kind: "events"; head: ChatHead; events: ChatEvent[] } | { kind: "resync"; head: ChatHead }>;
  /** Calls back for each event as it is appended; may miss some (after a reconnect): compare numbers and `read`. */
  follow(account: string, chatId: string, onEvent: (event: ChatEvent) => void): Promise<() => Promise<void>>;
  /** Calls back when the connection was lost and is back: followers must `read` what they missed. */
  onReconnect(listener: () => void): () => void;
  /** Binds a chat to the identity that created it; returns the identity it belongs to. */
  claim(account: string, chatId: string, identity: string): Promise<string>;
}

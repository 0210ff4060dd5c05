/**
 * What a feed and a connection know of each other. Types only. Invariant: a follower never throws, so one of them cannot
 * keep the others of its chat from their events.
 */
import type { ChatHead } from "./ports.js";

/** One connection's interest in a chat. No method throws. */
export interface Follower {
  isGone(): boolean;
  attached(head: ChatHead): void;
  resync(head: ChatHead): void;
  /** A rendered event, the same text for every follower. */
  deliver(text: string): void;
  /** Returns when what was delivered has left this process, or never will. */
  flushed(): Promise<void>;
}

/** Where a client says it stands. */
export interface Position {
  after: number;
  epoch: number | null;
}

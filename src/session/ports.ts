/**
 * What a session needs from outside: a lease with a fence. Implemented by `redis/`, handed in by `gateway.ts`.
 * Types only.
 */
import type { MailboxMessage, Route, SessionKey } from "../bus/messages.js";

/** The session file as the last settlement knew it. `inode` is a decimal string (64-bit). */
export interface FileState {
  inode: string;
  bytes: number;
  fence: number;
}

/** A stream that a holder had begun to show; whoever comes after it must end or void it. */
export interface OpenStream {
  streamId: string;
  turnId: string;
  route: Route;
}

/** A session that became ready by giving another (or itself) back; a job must be added for it. */
export interface Scheduled {
  key: SessionKey;
  wake: number;
  delayMs: number;
}

/** A message handed to its holder, what is answered together with it, and whether a stop covers it. */
export interface Waiting {
  message: MailboxMessage;
  /** What was said there in the same breath (`debounceMs`), in order. */
  fragments: readonly MailboxMessage[];
  isStopped: boolean;
}

/** What a new holder is given. */
export interface Claim {
  /** Grows with every lease; rows, settlements and emissions under a smaller one have no effect. */
  fence: number;
  /** Null when no settlement is known: the file is then taken as it is. */
  file: FileState | null;
  /** The oldest waiting message; null for work without a message, or when nothing waits any more. */
  next: Waiting | null;
  /** Failed tries of that message so far. */
  attempts: number;
  openStream: OpenStream | null;
}

/** Leases of sessions. Every method may throw `BUS_UNAVAILABLE`. */
export interface LeaseStore {
  /** Takes the session if it is scheduled under this wake number. `full`: no slot is free, it will be woken again. */
  open(key: SessionKey, wake: number): Promise<{ ok: true; claim: Claim } | { ok: false; why: "stale" | "full" }>;
  /** Takes an idle or waiting session for work without a message. */
  hold(key: SessionKey): Promise<{ ok: true; claim: Claim } | { ok: false; why: "busy" }>;
  /** Gives a held session back, with what is now known of its file (null: nothing); scheduled again if mail came. */
  release(key: SessionKey, fence: number, file: FileState | null): Promise<Scheduled[]>;
  /** Prolongs all leases of this process; returns those it no longer owns. */
  renew(held: ReadonlyArray<{ key: SessionKey; fence: number }>): Promise<SessionKey[]>;
  /** Raises a holder's fence to at least `atLeast`; returns the fence now in force. */
  raise(key: SessionKey, fence: number, atLeast: number): Promise<number>;
}

/** Proof of holding, as the writing code needs it. */
export interface Lease {
  readonly key: SessionKey;
  /** May grow once, by `raise`, before the first row. */
  readonly fence: number;
  /** Aborts with `LEASE_LOST` when the lease is lost or was not renewed for 0.8 of its length. */
  readonly signal: AbortSignal;
  /** Throws `LEASE_LOST` unless the lease is surely ours at this instant; asked before every write. */
  assertHeld(): void;
  /** Raises the fence above one found in the session file. */
  raise(atLeast: number): Promise<void>;
}

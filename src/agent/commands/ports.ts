/**
 * What commands need from outside: who is paired and who waits for it. Implemented by `redis/`, handed in by `gateway.ts`.
 * Types only; every method may throw `BUS_UNAVAILABLE`.
 */

/** How a try to decide about a code ended. `locked`: too many tries; not even a right code counts for `forMs`. */
export type CodeDecision =
  | { kind: "done"; channel: string; senderId: string; isOwner: boolean }
  | { kind: "unknown" | "expired" | "used" }
  | { kind: "locked"; forMs: number };

export interface WaitingCode {
  code: string;
  channel: string;
  senderId: string;
  leftMs: number;
}

export interface PairedPerson {
  channel: string;
  senderId: string;
  isOwner: boolean;
}

export interface Pairings {
  pending(): Promise<readonly WaitingCode[]>;
  paired(): Promise<readonly PairedPerson[]>;
  /** `by` names who tries, `call` this try: repeated, it gives the same answer. */
  decide(attempt: { verdict: "approve" | "deny"; code: string; by: string; call: string }): Promise<CodeDecision>;
  /** False: that person was not paired. */
  revoke(channel: string, senderId: string): Promise<boolean>;
}

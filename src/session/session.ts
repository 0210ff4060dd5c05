/**
 * A session: the agent's memory of one conversation, as it is held in memory. It is made from what a file holds and
 * changed only by the open session that writes the same change to the file; it neither reads nor writes.
 *
 * Invariant: whatever stands in a metadata line, every field here has its type and its range. [SES-1, SES-2]
 */
import type { Metadata, SessionKey } from "../bus/messages.js";
import type { MetadataLine } from "./jsonl.js";
import { isRecord, type Row } from "./row.js";

export interface Session {
  readonly key: SessionKey;
  /** Every row of the file that counts, oldest first. */
  readonly messages: readonly Row[];
  /** ISO 8601. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly metadata: Metadata;
  /** Rows before this index are summarised or put behind it by `/new`: history starts here. */
  readonly lastConsolidated: number;
  /** Rows before this index belong to conversations that `/new` has ended. */
  readonly clearedRows: number;
}

/** What changes in a session beside its rows. */
export type SessionState = Pick<Session, "createdAt" | "updatedAt" | "metadata" | "lastConsolidated" | "clearedRows">;

/** What a session is made from. */
export interface SessionSource {
  key: SessionKey;
  rows: readonly Row[];
  line: MetadataLine | null;
  /** ISO 8601; stands in for times that are missing or wrong. */
  now: string;
}

function timeOf(value: unknown): string | null {
  return typeof value === "string" && !Number.isNaN(Date.parse(value)) ? value : null;
}

function indexOf(value: unknown, length: number): number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= length ? value : 0;
}

function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b;
  return Date.parse(a) >= Date.parse(b) ? a : b;
}

/** The state that a metadata line gives, with what is wrong in it repaired. [SES-2, SES-24] */
export function sessionState(source: SessionSource): SessionState {
  const { line, rows, now } = source;
  const stored = timeOf(line?.updated_at);
  const written = timeOf(rows.at(-1)?.timestamp);
  return {
    createdAt: timeOf(line?.created_at) ?? timeOf(rows[0]?.timestamp) ?? now,
    updatedAt: later(stored, written) ?? now,
    metadata: isRecord(line?.metadata) ? line.metadata : {},
    lastConsolidated: indexOf(line?.last_consolidated, rows.length),
    clearedRows: indexOf(line?.cleared, rows.length),
  };
}

/** A session of these rows. `messages` is `rows` itself and grows with it. */
export function createSession(source: SessionSource): Session {
  return { key: source.key, messages: source.rows, ...sessionState(source) };
}

/** The line that stores `state`; `fence` tells a fenced-out writer's line from the holder's; null outside a workspace. */
export function metadataLine(key: SessionKey, state: SessionState, fence: number | null): string {
  return JSON.stringify({
    _type: "metadata",
    key,
    created_at: state.createdAt,
    updated_at: state.updatedAt,
    metadata: state.metadata,
    last_consolidated: state.lastConsolidated,
    ...(state.clearedRows > 0 ? { cleared: state.clearedRows } : {}),
    ...(fence === null ? {} : { fence }),
  });
}

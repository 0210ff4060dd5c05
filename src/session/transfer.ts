/**
 * Sessions on their way out of a workspace and into one: as JSONL text, ours or nanobot's. Pure; it opens no file and
 * takes no lease. Invariant: what is exported and read again is the same session; fences stay behind, as they mean
 * nothing in another workspace.
 */
import { asSessionKey, type SessionKey } from "../bus/messages.js";
import { SessionReader } from "./jsonl.js";
import { sessionKeyOfFile } from "./keys.js";
import { isRecord, type Row } from "./row.js";
import { createSession, metadataLine, type Session } from "./session.js";

/** A session as a file to be imported holds it. */
export interface ImportedSession {
  session: Session;
  /** Lines that are no rows, and rows of writers that had been fenced out. */
  skipped: number;
}

/** A session's text: its metadata, then one row a line. */
export function exportText(session: Session): string {
  const rows = session.messages.map(({ fence: _ours, ...row }) => JSON.stringify(row));
  return `${[metadataLine(session.key, session, null), ...rows].join("\n")}\n`;
}

/** Reads a file of that kind; `name`, its file's, says the key where the metadata does not. Null when it is no session. */
export function readImport(bytes: Buffer, name: string, now: string): ImportedSession | null {
  const reader = new SessionReader();
  reader.feed(bytes);
  reader.finish();
  const key = keyOf(reader.metadata?.key, name);
  const isEmpty = reader.rows.length === 0 && reader.metadata === null;
  if (key === null || isEmpty) return null;
  const rows = reader.rows.map(({ fence: _theirs, ...row }) => row as Row);
  const session = createSession({ key, rows, line: reader.metadata, now });
  const notRows = reader.badLines.filter((line) => !isProviderState(line)).length;
  return { session, skipped: notRows + reader.fencedOut };
}

function keyOf(recorded: unknown, name: string): SessionKey | null {
  const isKey = typeof recorded === "string" && recorded.length > 0 && recorded.length <= 512;
  return isKey ? asSessionKey(recorded) : sessionKeyOfFile(name);
}

/** nanobot keeps a provider's own state in a line of its own; it means nothing to another gateway. [SES-7] */
function isProviderState(line: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(line.toString("utf8"));
    return isRecord(value) && value._type === "provider_state";
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

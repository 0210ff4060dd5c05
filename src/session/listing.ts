/**
 * Looking at session files without a lease: one whole, or all in short. It writes nothing, fills no cache, and sees only
 * what a holder would accept: rows of fenced-out writers and a line still being written are not shown.
 *
 * Invariant: listing reads a bounded part of each file, and no file hides the others. [SES-25, SES-29, SES-30]
 */
import { type FileHandle, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { SessionKey } from "../bus/messages.js";
import type { Logger } from "../logger.js";
import { isSystemError, unreadable } from "./io.js";
import { SessionReader } from "./jsonl.js";
import { sessionKeyOfFile } from "./keys.js";
import { readRange } from "./repair.js";
import { type Row, textOf } from "./row.js";
import { createSession, type Session } from "./session.js";

/** A session as its file shows it. */
export interface SessionView extends Session {
  /** Rows ignored because their writer had been fenced out, and lines that are not usable. */
  fencedOut: number;
  badLines: number;
}

/** A session in a list. */
export interface SessionSummary {
  key: SessionKey;
  createdAt: string;
  updatedAt: string;
  /** Null when none was given. */
  title: string | null;
  /** The first words of its present conversation; empty when it has none. */
  preview: string;
}

const HEAD_BYTES = 1_000_000;
const TAIL_BYTES = 64 * 1024;
const PREVIEW_ROWS = 200;
const PREVIEW_CHARACTERS = 120;
const REASONING = /<(think|thinking|reasoning)>[\s\S]*?(?:<\/\1>|$)/gi;

async function withFile<T>(path: string, use: (handle: FileHandle, size: number) => Promise<T>): Promise<T> {
  const handle = await open(path, "r");
  try {
    return await use(handle, (await handle.stat()).size);
  } finally {
    await handle.close();
  }
}

async function read(handle: FileHandle, start: number, end: number): Promise<SessionReader> {
  const reader = new SessionReader();
  for await (const piece of readRange(handle, start, end)) reader.feed(piece);
  return reader;
}

/** The whole session as its file holds it now; null when there is no file. Throws `SESSION_UNREADABLE`. */
export async function viewSession(path: string, key: SessionKey, nowMs: number): Promise<SessionView | null> {
  try {
    return await withFile(path, async (handle, size) => {
      const reader = await read(handle, 0, size);
      reader.finish();
      const now = new Date(nowMs).toISOString();
      const session = createSession({ key, rows: reader.rows, line: reader.metadata, now });
      return { ...session, fencedOut: reader.fencedOut, badLines: reader.badLines.length };
    });
  } catch (error) {
    if (isSystemError(error, "ENOENT")) return null;
    throw unreadable(path, error);
  }
}

function previewOf(rows: readonly Row[]): string {
  const shown = rows.filter((row) => !row._command && !row._hidden_history && !row._automation_turn);
  const hasText = (row: Row): boolean => textOf(row.content).trim() !== "";
  const first =
    shown.find((row) => row.role === "user" && hasText(row)) ??
    shown.find((row) => row.role === "assistant" && hasText(row));
  const symbols = [
    ...textOf(first?.content ?? null)
      .replaceAll(/\s+/g, " ")
      .trim(),
  ];
  return symbols.length > PREVIEW_CHARACTERS
    ? `${symbols.slice(0, PREVIEW_CHARACTERS - 1).join("")}…`
    : symbols.join("");
}

function titleOf(metadata: Session["metadata"]): string | null {
  if (typeof metadata.title !== "string") return null;
  const isEdited = metadata.title_user_edited === true;
  const title = (isEdited ? metadata.title : metadata.title.replaceAll(REASONING, "")).trim();
  return title === "" ? null : title;
}

/**
 * A file in short. The newest metadata line is looked for in the last part of the file, then in the first; one that
 * stands between the two in a long file is not seen.
 */
async function summarise(path: string, name: string): Promise<SessionSummary | null> {
  return await withFile(path, async (handle, size) => {
    const head = await read(handle, 0, Math.min(size, HEAD_BYTES));
    const tail = await read(handle, Math.max(size - TAIL_BYTES, 0), size);
    if (size <= HEAD_BYTES) head.finish();
    tail.finish();
    const recordedKey = head.metadata?.key ?? tail.metadata?.key;
    const key = sessionKeyOfFile(name, typeof recordedKey === "string" ? recordedKey : undefined);
    if (key === null) return null;
    const now = (await handle.stat()).mtime.toISOString();
    const begun = createSession({ key, rows: head.rows, line: head.metadata, now });
    const newest = createSession({ key, rows: tail.rows, line: tail.metadata ?? head.metadata, now });
    const cleared = Number(tail.metadata?.cleared ?? head.metadata?.cleared) || 0;
    return {
      key,
      createdAt: begun.createdAt,
      updatedAt: newest.updatedAt,
      title: titleOf(newest.metadata),
      preview: previewOf(head.rows.slice(cleared, cleared + PREVIEW_ROWS)),
    };
  });
}

/** Every session of the folder, newest first. A file that cannot be read is left out, with a log line. */
export async function listSessions(folder: string, logger: Logger): Promise<SessionSummary[]> {
  const summaries: SessionSummary[] = [];
  for (const name of await readdir(folder)) {
    if (!name.endsWith(".jsonl")) continue;
    try {
      const summary = await summarise(join(folder, name), name);
      if (summary !== null) summaries.push(summary);
    } catch (error) {
      logger.warn({ err: error, file: name }, "a session file cannot be listed");
    }
  }
  return summaries.sort((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt) || (a.key < b.key ? -1 : 1));
}

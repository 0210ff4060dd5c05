/**
 * Taking a session file over: leftovers, fence line, reading, a fence above any found, and the repair or compaction that
 * the file needs. Afterwards the file holds nothing bad and every later row of an older holder is void.
 *
 * Invariant: the fence line is written before anything is read, so that nothing an older holder appends later counts,
 * and a file is never shortened without its bytes being kept aside.
 */
import type { FileHandle } from "node:fs/promises";
import { asUnwritable, type FileTools, type FreshHandle, fenceLine, openForAppend, SessionFile } from "./file.js";
import { SessionReader } from "./jsonl.js";
import { settleLeftovers } from "./leftovers.js";
import type { FileState, Lease } from "./ports.js";
import { asLines, keepAside, keepFileAside } from "./repair.js";
import type { RewriteGuard } from "./rewrite.js";
import { metadataLine, sessionState } from "./session.js";

/** A file is compacted when its metadata and fence lines outnumber its rows, and are more than this. */
const COMPACT_ABOVE_LINES = 64;

/** What a manager remembers of a file that it closed. */
export interface CachedContent {
  identity: string;
  content: SessionReader;
}

export interface Opening {
  path: string;
  lease: Lease;
  /** The file at the last settlement; null when none is known. */
  known: FileState | null;
  cached: CachedContent | null;
  guard: RewriteGuard;
  tools: FileTools;
}

const nowOf = (tools: FileTools): string => new Date(tools.clock()).toISOString();

/** The whole file as it should be: metadata, rows, and last the fence, which no row of the file may stand behind. */
function wholeText(opening: Opening, content: SessionReader): string {
  const { lease, tools } = opening;
  const state = sessionState({ key: lease.key, rows: content.rows, line: content.metadata, now: nowOf(tools) });
  const lines = [metadataLine(lease.key, state, lease.fence), ...content.rows.map((row) => JSON.stringify(row))];
  return `${[...lines, fenceLine(lease.fence)].join("\n")}\n`;
}

/** Writes the file anew without what is stale, bad or fenced out in it. */
export async function rewriteSessionFile(opening: Opening, file: SessionFile): Promise<void> {
  await file.replace(wholeText(opening, file.content), opening.guard);
}

/** A fence line into the file; a new file gets its metadata before it, so that line 1 says whose it is. */
async function fence(opening: Opening, file: SessionFile, isNew: boolean): Promise<void> {
  await file.appendUnread(isNew ? wholeText(opening, file.content) : `\n${fenceLine(opening.lease.fence)}\n`);
}

function usableCopy(opening: Opening, fresh: FreshHandle): SessionReader | null {
  const { cached } = opening;
  if (cached === null || cached.identity !== fresh.identity || cached.content.bytes > fresh.size) return null;
  return cached.content;
}

async function keepShortened(opening: Opening, fresh: FreshHandle): Promise<void> {
  const { path, known, lease, tools } = opening;
  if (known === null || known.inode !== fresh.inode || fresh.size >= known.bytes) return;
  const kept = await keepFileAside({ path, io: tools.io, nowMs: tools.clock() }, fresh.size);
  const ids = { session: lease.key, file: path, bytes: fresh.size, known: known.bytes, kept };
  tools.logger.warn(ids, "the session file is shorter than it was; what is left is used, a copy is kept");
}

/** Keeps bad lines aside and writes the file without them. [SES-21, SES-22] */
async function repair(opening: Opening, file: SessionFile, originalBytes: number): Promise<void> {
  const { path, lease, tools } = opening;
  const { badLines, rows, metadata } = file.content;
  const target = { path, io: tools.io, nowMs: tools.clock() };
  const isHopeless = rows.length === 0 && metadata === null;
  const kept = isHopeless ? await keepFileAside(target, originalBytes) : await keepAside(target, asLines(badLines));
  const ids = { session: lease.key, file: path, lines: badLines.length, rows: rows.length, kept };
  tools.logger.warn(ids, isHopeless ? "nothing in the session file is usable; it starts anew" : "bad lines kept aside");
  await rewriteSessionFile(opening, file);
}

async function takeOver(opening: Opening, file: SessionFile, originalBytes: number): Promise<void> {
  const { lease, tools } = opening;
  await fence(opening, file, originalBytes === 0);
  await file.readTail();
  while (file.content.fence > lease.fence) {
    await lease.raise(file.content.fence + 1);
    await fence(opening, file, false);
    await file.readTail();
  }
  const { content } = file;
  if (content.fencedOut > 0) {
    const ids = { session: lease.key, file: file.path, rows: content.fencedOut };
    tools.logger.info(ids, "rows of fenced-out writers are ignored");
  }
  const isStale = content.overhead > Math.max(COMPACT_ABOVE_LINES, content.rows.length);
  if (content.badLines.length > 0) await repair(opening, file, originalBytes);
  else if (isStale) await rewriteSessionFile(opening, file);
}

async function prepare(opening: Opening): Promise<FreshHandle> {
  const { path, known, lease, tools } = opening;
  await settleLeftovers({ path, known, lease, io: tools.io, logger: tools.logger });
  const fresh = await openForAppend(path);
  if (known !== null && fresh.inode !== known.inode) {
    const ids = { session: lease.key, fence: lease.fence, file: path, known: known.inode, inode: fresh.inode };
    tools.logger.warn(ids, "the session file is another one than before; taken as it is");
  }
  await keepShortened(opening, fresh).catch((error: unknown) => closeAndThrow(fresh.handle, error));
  return fresh;
}

async function closeAndThrow(handle: FileHandle, error: unknown): Promise<never> {
  await handle.close();
  throw error;
}

/**
 * Opens the file for its holder. Throws `SESSION_UNREADABLE`, `SESSION_UNWRITABLE`, `LEASE_LOST`, or what the guard throws;
 * nothing is then left open.
 */
export async function openSessionFile(opening: Opening): Promise<SessionFile> {
  const { path, lease, tools } = opening;
  const fresh = await prepare(opening).catch((error: unknown) => {
    throw asUnwritable(path, error);
  });
  const content = usableCopy(opening, fresh) ?? new SessionReader();
  const isNew = fresh.size === 0;
  const file = new SessionFile({ path, lease, handle: fresh.handle, inode: fresh.inode, content, isNew }, tools);
  try {
    await takeOver(opening, file, fresh.size);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

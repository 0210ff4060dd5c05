/**
 * Keeping aside what a session file holds beside rows, byte for byte, before anything replaces it. It does not judge lines.
 *
 * Invariant: a kept file is on the disk before this returns and is never overwritten by a later one.
 */
import { type FileHandle, open } from "node:fs/promises";
import { isSystemError, type SessionIo } from "./io.js";

const NEWLINE = Buffer.from("\n");
const READ_BYTES = 1 << 20;

/** `20260102T030405678Z`: sorts by time and is safe in a file name. */
function stampOf(nowMs: number): string {
  return new Date(nowMs).toISOString().replaceAll(/[-:.]/g, "");
}

async function createAside(path: string, nowMs: number): Promise<{ handle: FileHandle; aside: string }> {
  for (let copy = 1; ; copy += 1) {
    const aside = `${path}.bad-${stampOf(nowMs)}${copy === 1 ? "" : `-${copy}`}`;
    try {
      return { handle: await open(aside, "wx", 0o600), aside };
    } catch (error) {
      if (!isSystemError(error, "EEXIST")) throw error;
    }
  }
}

/** Bytes of an open file from `start` up to `end`, piece by piece. */
export async function* readRange(handle: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  for (let position = start; position < end; ) {
    const piece = Buffer.alloc(Math.min(READ_BYTES, end - position));
    const { bytesRead } = await handle.read(piece, 0, piece.length, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}

/** Whose lines, and when. */
export interface Aside {
  path: string;
  io: SessionIo;
  nowMs: number;
}

/** Keeps these pieces aside in `<name>.jsonl.bad-<time>`; returns its path. */
export async function keepAside(target: Aside, pieces: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<string> {
  const { handle, aside } = await createAside(target.path, target.nowMs);
  try {
    for await (const piece of pieces) await handle.appendFile(piece);
    await target.io.sync(handle);
    return aside;
  } finally {
    await handle.close();
  }
}

/** Lines with their newlines given back. */
export function asLines(lines: readonly Buffer[]): Buffer[] {
  return lines.flatMap((line) => [line, NEWLINE]);
}

/** Keeps the first `end` bytes of the file itself aside; returns the copy's path. */
export async function keepFileAside(target: Aside, end: number): Promise<string> {
  const handle = await open(target.path, "r");
  try {
    return await keepAside(target, readRange(handle, 0, end));
  } finally {
    await handle.close();
  }
}

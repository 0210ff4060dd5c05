/**
 * What a rewriter that was killed or fenced out has left beside a session file, and what becomes of it when the next
 * holder opens the session. It reads no rows.
 *
 * Invariant: after it has run, no rewriter of an earlier lease can put its file in place any more: its temporary file is
 * gone. A rewriter makes the `.prev` link before it checks its lease, so where no `.prev` stands, none has checked yet,
 * and the check will refuse it.
 */
import { link, readdir, rename, rm, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Logger } from "../logger.js";
import { inodeOf, isSystemError, type SessionIo, syncFolder } from "./io.js";
import type { FileState, Lease } from "./ports.js";

export const prevPath = (path: string): string => `${path}.prev`;
/** A holder's own temporary file: two holders never share one, so none can rename the other's half-written file. */
export const temporaryPath = (path: string, fence: number): string => `${path}.tmp-${fence}`;

/** Every file that belongs to a session, its own first where it exists. */
export async function filesOf(path: string): Promise<string[]> {
  const name = basename(path);
  const folder = dirname(path);
  const names = await readdir(folder);
  return names
    .filter((other) => other === name || other.startsWith(`${name}.`))
    .sort()
    .map((other) => join(folder, other));
}

/** Removes temporary files of rewriters of this session. */
export async function removeTemporaries(path: string): Promise<void> {
  for (const file of await filesOf(path)) if (file.startsWith(`${path}.tmp-`)) await rm(file, { force: true });
}

/** Keeps the present file reachable as `.prev` until its replacement is known to the bus. */
export async function linkPrev(path: string): Promise<void> {
  const prev = prevPath(path);
  try {
    await link(path, prev);
  } catch (error) {
    if (!isSystemError(error, "EEXIST")) throw error;
    if ((await inodeOf(prev)) === (await inodeOf(path))) return;
    await unlink(prev);
    await link(path, prev);
  }
}

export interface LeftoverRequest {
  path: string;
  known: FileState | null;
  lease: Lease;
  io: SessionIo;
  logger: Logger;
}

/**
 * Puts `.prev` back when a rewrite was done whose end the bus never learnt of; removes it otherwise. Call it under the
 * lease and before the file is opened.
 */
export async function settleLeftovers(request: LeftoverRequest): Promise<void> {
  const { path, known, lease, io, logger } = request;
  const prev = prevPath(path);
  const prevInode = await inodeOf(prev);
  const ids = { session: lease.key, fence: lease.fence, file: path };
  if (prevInode !== null) {
    // Before the look at the file itself: a sleeping rewriter may wake between the two.
    await removeTemporaries(path);
    lease.assertHeld();
    if (known !== null && prevInode === known.inode && (await inodeOf(path)) !== known.inode) {
      await rename(prev, path);
      await syncFolder(dirname(path), io);
      logger.warn(ids, "an unfinished rewrite of the session file was undone");
    } else {
      await unlink(prev);
    }
  }
}

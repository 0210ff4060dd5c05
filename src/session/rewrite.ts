/**
 * Replacing a session file as a whole: temporary file, `.prev` link, check of the lease, rename, commit. What goes into
 * the new file is the caller's; appending to it is the caller's too, and only after this has returned.
 *
 * Invariant: at every instant the name leads to one whole file, and until `commit` has returned the file that the bus
 * knows is reachable, as itself or as `.prev`.
 */
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { FaultHook } from "../faults.js";
import { isSystemError, type SessionIo, syncFolder, unwritable } from "./io.js";
import { linkPrev, prevPath, temporaryPath } from "./leftovers.js";
import type { FileState, Lease } from "./ports.js";

/** What a rewrite asks the bus; both throw `LEASE_LOST` when the fence is stale. */
export interface RewriteGuard {
  /** Asks the bus itself whether the lease is ours. */
  check(): Promise<void>;
  /** Stores the new file's state (a settlement that settles nothing and stays). */
  commit(file: FileState): Promise<void>;
}

export interface Replacement {
  path: string;
  bytes: Buffer;
  lease: Lease;
  guard: RewriteGuard;
  io: SessionIo;
  faults: FaultHook;
}

async function writeTemporary({ path, bytes, lease, io }: Replacement): Promise<FileHandle> {
  const temporary = temporaryPath(path, lease.fence);
  await rm(temporary, { force: true });
  const handle = await open(temporary, "ax+", 0o600);
  try {
    for (let done = 0; done < bytes.length; ) {
      const written = await io.append(handle, bytes.subarray(done));
      if (written === 0) throw unwritable(temporary);
      done += written;
    }
    await io.sync(handle);
    return handle;
  } catch (error) {
    await handle.close();
    await rm(temporary, { force: true });
    throw error;
  }
}

async function putInPlace(replacement: Replacement): Promise<void> {
  const { path, lease, guard, io, faults } = replacement;
  lease.assertHeld();
  await linkPrev(path);
  faults("rewrite.linked");
  await guard.check();
  lease.assertHeld();
  // Fails when a later holder has taken the temporary file away.
  await rename(temporaryPath(path, lease.fence), path);
  await syncFolder(dirname(path), io);
  faults("rewrite.renamed");
}

/**
 * Puts a new file with these bytes in the place of the old one. Returns it, open for reading and appending.
 * Throws `SESSION_UNWRITABLE` or `LEASE_LOST`; the caller must then write nothing more and close.
 */
export async function replaceFile(replacement: Replacement): Promise<{ handle: FileHandle; inode: string }> {
  const { path, bytes, lease, guard } = replacement;
  const handle = await writeTemporary(replacement);
  try {
    const inode = String((await handle.stat({ bigint: true })).ino);
    await putInPlace(replacement);
    await guard.commit({ inode, bytes: bytes.length, fence: lease.fence });
    await rm(prevPath(path), { force: true });
    return { handle, inode };
  } catch (error) {
    await handle.close();
    // Nothing else is touched: whoever holds the session now decides about the rest.
    await rm(temporaryPath(path, lease.fence), { force: true });
    if (isSystemError(error, "ENOENT")) lease.assertHeld();
    throw error;
  }
}

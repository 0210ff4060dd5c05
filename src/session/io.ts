/**
 * The two file operations that decide about loss, as a port, and the translation of what a disk says into our errors.
 * It knows no rows and no leases.
 *
 * Invariant: a permission or disk error is never taken for corruption; it keeps its cause. [SES-23]
 */
import { type FileHandle, open, stat } from "node:fs/promises";
import pLimit from "p-limit";
import { NanogateError } from "../errors.js";

/** Writing and flushing; tests count them and let them fail. */
export interface SessionIo {
  /** One write at the end of the file. Returns how many bytes were taken, which may be fewer. */
  append(handle: FileHandle, bytes: Buffer): Promise<number>;
  /** Returns when the file (or folder) is on the disk. */
  sync(handle: FileHandle): Promise<void>;
}

/** Flushes at a time: Node has four threads for files, and a slow disk must not keep reads and appends from all of them. */
const MAX_FLUSHES = 2;

export const nodeIo: SessionIo = {
  append: async (handle, bytes) => (await handle.write(bytes, 0, bytes.length, null)).bytesWritten,
  sync: (handle) => handle.sync(),
};

/** `io` with a bound on flushes at a time. */
export function withFewFlushes(io: SessionIo): SessionIo {
  const flush = pLimit(MAX_FLUSHES);
  return { ...io, sync: (handle) => flush(() => io.sync(handle)) };
}

/** True when `error` is the system's error of this name, such as `ENOENT`. */
export function isSystemError(error: unknown, ...names: string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && names.includes(error.code);
}

/** `SESSION_UNREADABLE` with the system's error behind it. */
export function unreadable(path: string, cause: unknown): NanogateError {
  return new NanogateError("SESSION_UNREADABLE", `The session file ${path} cannot be read.`, { cause });
}

/** `SESSION_UNWRITABLE`, with the system's error behind it where there is one. */
export function unwritable(path: string, cause?: unknown): NanogateError {
  return new NanogateError("SESSION_UNWRITABLE", `The session file ${path} cannot be written.`, { cause });
}

/** What names a file while its name may change; null when nothing has this name. */
export async function inodeOf(path: string): Promise<string | null> {
  try {
    return String((await stat(path, { bigint: true })).ino);
  } catch (error) {
    if (isSystemError(error, "ENOENT")) return null;
    throw error;
  }
}

/** Makes new and changed names in a folder durable. File systems that cannot flush a folder are let be. [SES-16] */
export async function syncFolder(folder: string, io: SessionIo): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await io.sync(handle);
  } catch (error) {
    if (!isSystemError(error, "EINVAL", "EPERM", "EACCES", "ENOTSUP")) throw error;
  } finally {
    await handle.close();
  }
}

/** Flushes a file or folder by its name. */
export async function syncPath(path: string, io: SessionIo): Promise<void> {
  const handle = await open(path, "r");
  try {
    await io.sync(handle);
  } finally {
    await handle.close();
  }
}

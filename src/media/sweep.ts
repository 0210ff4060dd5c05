/**
 * Takes files out of the media folder that are kept no longer. Any number of processes may do it at once. It follows no link
 * and touches nothing outside the folders of months. Invariant: a file younger than `keepMs` is never removed.
 */
import type { Dirent } from "node:fs";
import { lstat, readdir, rmdir, unlink } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "../logger.js";

export interface SweepDeps {
  folder: string;
  keepMs: number;
  /** Epoch ms. */
  nowMs: number;
  logger: Logger;
}

const DAY_MS = 86_400_000;
/** No file is on its way in for longer. */
const PART_MS = DAY_MS;
const MONTH = /^\d{4}-\d{2}$/;
/** A month that files may still come into, on whatever clock, is not removed. */
const OPEN_MONTH_MS = 40 * DAY_MS;

function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isCode(error, "ENOENT")) return [];
    throw error;
  }
}

/** Removes the file if it is old enough. */
async function expire(file: string, { keepMs, nowMs }: SweepDeps): Promise<boolean> {
  const limitMs = path.basename(file).startsWith(".") ? Math.min(keepMs, PART_MS) : keepMs;
  try {
    const { mtimeMs } = await lstat(file);
    if (nowMs - mtimeMs <= limitMs) return false;
    await unlink(file);
    return true;
  } catch (error) {
    // Another process was faster.
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}

async function removeIfEmpty(month: string, { nowMs }: SweepDeps): Promise<void> {
  if (nowMs - Date.parse(`${path.basename(month)}-01T00:00:00Z`) <= OPEN_MONTH_MS) return;
  try {
    await rmdir(month);
  } catch (error) {
    if (!isCode(error, "ENOTEMPTY", "EEXIST", "ENOENT")) throw error;
  }
}

async function sweepMonth(month: string, deps: SweepDeps): Promise<number> {
  let removed = 0;
  for (const entry of await entriesOf(month)) {
    if (entry.isFile() && (await expire(path.join(month, entry.name), deps))) removed += 1;
  }
  await removeIfEmpty(month, deps);
  return removed;
}

/** How many files went. A month that fails is logged, and the next is looked at. */
export async function sweepFolder(deps: SweepDeps): Promise<number> {
  let removed = 0;
  for (const entry of await entriesOf(deps.folder)) {
    if (!entry.isDirectory() || !MONTH.test(entry.name)) continue;
    try {
      removed += await sweepMonth(path.join(deps.folder, entry.name), deps);
    } catch (error) {
      deps.logger.warn({ err: error, month: entry.name }, "old files could not be removed");
    }
  }
  return removed;
}

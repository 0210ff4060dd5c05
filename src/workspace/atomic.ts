/**
 * Making a small file that did not exist, in one step that many processes may try at once. It never replaces anything.
 *
 * Invariant: the name leads to nothing or to the whole text, also when the writer is killed.
 */
import { randomUUID } from "node:crypto";
import { link, open, rm } from "node:fs/promises";

/** True when `error` is the system's error of this name. */
export function isSystemError(error: unknown, ...names: string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && names.includes(error.code);
}

/** Writes `text` to a new file beside `path` and returns its name; it is on the disk. */
export async function writeBeside(path: string, text: string): Promise<string> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  const handle = await open(temporary, "wx", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return temporary;
}

/** Makes `path` with this text unless it exists. Returns whether it was made here. */
export async function createWhole(path: string, text: string): Promise<boolean> {
  const temporary = await writeBeside(path, text);
  try {
    await link(temporary, path);
    return true;
  } catch (error) {
    if (isSystemError(error, "EEXIST")) return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
}

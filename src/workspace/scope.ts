/**
 * The bounds of a workspace for tools: a path is judged by where it really leads. It opens nothing, so a file that is
 * swapped between this check and its use is not its concern.
 *
 * Invariant: what it returns lies in the root after every link is followed, whether or not the last parts exist yet.
 */
import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { isSystemError } from "./atomic.js";

/** The path leads out of the root. The message may be shown to the model. */
export class OutsideWorkspaceError extends Error {
  override readonly name = "OutsideWorkspaceError";
  constructor(readonly path: string) {
    super(`The path "${path}" leads out of the workspace. Give a path inside it, relative to its root.`);
  }
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (isSystemError(error, "ENOENT")) return false;
    throw error;
  }
}

/** Where a path leads: the real path of its nearest part that exists, and the rest as it is written. */
async function realLocation(path: string): Promise<string> {
  const missing: string[] = [];
  for (let part = path; ; part = dirname(part)) {
    // A link whose target is missing exists itself: following it fails, and must, as a write would create the target.
    if (await exists(part)) return join(await realpath(part), ...missing);
    missing.unshift(basename(part));
    if (dirname(part) === part) return path;
  }
}

/**
 * The real, absolute path of `path` (relative to `root`, or absolute) if it lies in `root`. Throws
 * `OutsideWorkspaceError` otherwise, also for a link that leads nowhere.
 */
export async function resolveInside(root: string, path: string): Promise<string> {
  if (path.includes("\0")) throw new OutsideWorkspaceError(path.replaceAll("\0", "\\0"));
  const realRoot = await realpath(root);
  const wanted = resolve(realRoot, path);
  try {
    const real = await realLocation(wanted);
    if (isInside(realRoot, real)) return real;
  } catch (error) {
    if (!isSystemError(error, "ENOENT", "ELOOP", "ENOTDIR", "ENAMETOOLONG")) throw error;
    throw isSystemError(error, "ENOENT", "ELOOP") ? new OutsideWorkspaceError(path) : error;
  }
  throw new OutsideWorkspaceError(path);
}

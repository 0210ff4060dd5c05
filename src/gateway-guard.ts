/**
 * Which paths the model's file tools may touch: the workspace, or the whole disk where the config says so. It opens nothing.
 * Invariants: what the gateway itself writes is closed to tools, restricted or not; files that people sent can be read by
 * their path and in no other way, so nobody finds those of another chat by looking around.
 */
import { realpath } from "node:fs/promises";
import path from "node:path";
import type { PathGuard } from "./agent/tools/ports.js";
import { resolveInside } from "./workspace/scope.js";
import type { Workspace } from "./workspace/workspace.js";

export interface GuardDeps {
  workspace: Pick<Workspace, "root" | "sessions" | "internal">;
  /** Where files that people sent are kept; need not exist yet. */
  mediaFolder: string;
  /** Whether tools stay in the workspace. */
  isRestricted: boolean;
}

/** A kept file: in the folder of a month, and not on its way in. */
const KEPT_FILE = /^\d{4}-\d{2}[\\/][^\\/.][^\\/]*$/;

function isIn(folder: string, file: string): boolean {
  return file === folder || file.startsWith(folder + path.sep);
}

async function realOf(folder: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return folder;
    throw error;
  }
}

/** The judge of one workspace. */
export function createPathGuard({ workspace, mediaFolder, isRestricted }: GuardDeps): PathGuard {
  const { root, sessions, internal } = workspace;

  async function inside(given: string): Promise<string> {
    const found = await (isRestricted ? resolveInside(root, given) : resolveInside("/", path.resolve(root, given)));
    const media = await realOf(mediaFolder);
    if ([sessions, internal, media].some((folder) => isIn(folder, found))) {
      throw new Error(`${given} belongs to the gateway; tools may not look around in it or change it.`);
    }
    return found;
  }

  return {
    resolveInside: inside,
    async resolveReadable(given) {
      const wanted = path.resolve(root, given);
      const [folder] = [mediaFolder, await realOf(mediaFolder)].filter((each) => isIn(each, wanted));
      if (folder === undefined || !KEPT_FILE.test(path.relative(folder, wanted))) return inside(given);
      return resolveInside(folder, wanted);
    },
  };
}

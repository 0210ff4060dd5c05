/**
 * The workspace's identity: a random id in `.nanogate/workspace-id`, which names its keys in Redis. It is never derived
 * from a path: another workspace is other sessions, and two hosts may see one workspace under two paths.
 *
 * Invariant: however many processes ask at once, and whichever of them is killed, all that return have the same id.
 */
import { createHash, randomBytes } from "node:crypto";
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
import { NanogateError } from "../errors.js";
import { createWhole, isSystemError, writeBeside } from "./atomic.js";

const ID = /^[0-9a-f]{32}$/;
/** The beginning of an id, or the zeros that some file systems leave after a power loss. */
const TORN = /^(?:[0-9a-f]{0,31}|\0+)$/;

export const idPath = (folder: string): string => join(folder, "workspace-id");

type Found = { kind: "none" } | { kind: "id"; id: string } | { kind: "torn"; seed: string } | { kind: "invalid" };

async function look(path: string): Promise<Found> {
  try {
    const handle = await open(path, "r");
    try {
      const text = (await handle.readFile("latin1")).trim();
      if (ID.test(text)) return { kind: "id", id: text };
      if (!TORN.test(text)) return { kind: "invalid" };
      const { ino, mtimeNs } = await handle.stat({ bigint: true });
      return { kind: "torn", seed: `${ino}:${mtimeNs}:${text}` };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (isSystemError(error, "ENOENT")) return { kind: "none" };
    throw error;
  }
}

/**
 * The id that replaces a torn one is a function of the torn file, so that processes which repair it at the same time
 * write the same id over each other's.
 */
async function repair(path: string, seed: string): Promise<void> {
  const id = createHash("sha256").update(`workspace-id:${seed}`).digest("hex").slice(0, 32);
  await rename(await writeBeside(path, `${id}\n`), path);
}

/** True when the workspace has no id yet: nobody has used it. */
export async function isUnused(folder: string): Promise<boolean> {
  return (await look(idPath(folder))).kind === "none";
}

/** The id kept in this folder; null when there is none that can be used as it stands. */
export async function readWorkspaceId(folder: string): Promise<string | null> {
  const found = await look(idPath(folder));
  return found.kind === "id" ? found.id : null;
}

/** The id kept in this folder, made if there is none. Throws `WORKSPACE_UNUSABLE` for a file that holds something else. */
export async function ensureWorkspaceId(folder: string): Promise<string> {
  const path = idPath(folder);
  for (let tries = 0; tries < 8; tries += 1) {
    const found = await look(path);
    switch (found.kind) {
      case "id":
        return found.id;
      case "none":
        await createWhole(path, `${randomBytes(16).toString("hex")}\n`);
        break;
      case "torn":
        await repair(path, found.seed);
        break;
      case "invalid":
        throw new NanogateError("WORKSPACE_UNUSABLE", `${path} does not hold a workspace id (32 hexadecimal digits).`);
      default:
        found satisfies never;
    }
  }
  throw new NanogateError("WORKSPACE_UNUSABLE", `${path} cannot be kept: something removes or changes it.`);
}

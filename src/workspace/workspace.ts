/**
 * The workspace: the one folder that sessions, memory and tools share. Opening it makes what is missing and says why it
 * cannot be used; it holds no lock and keeps nothing open.
 *
 * Invariant: bootstrap files are written on first use only and never over a file that is there; what a user deletes later
 * stays deleted.
 */
import { constants } from "node:fs";
import { access, mkdir, readFile, realpath, statfs } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NanogateError } from "../errors.js";
import { createWhole, isSystemError } from "./atomic.js";
import { ensureWorkspaceId, isUnused, readWorkspaceId } from "./workspace-id.js";

/** Files that a new workspace starts with, by their path in it. */
export const BOOTSTRAP_FILES = ["AGENTS.md", "USER.md", "SOUL.md", "HEARTBEAT.md", "memory/MEMORY.md"] as const;
export type BootstrapFile = (typeof BOOTSTRAP_FILES)[number];

/** An open workspace. Every path is absolute and real. */
export interface Workspace {
  /** 32 hexadecimal digits; the same on every host that mounts it. */
  id: string;
  root: string;
  sessions: string;
  memory: string;
  skills: string;
  /** `.nanogate`: what belongs to the gateway itself. */
  internal: string;
  /** Appends of two hosts may overwrite each other here: all workers must run on one host. */
  isNetworkFileSystem: boolean;
}

/** A workspace as it is found, for those who only look. */
export type FoundWorkspace = Pick<Workspace, "id" | "root" | "sessions">;

/** Types that `statfs` gives on Linux: NFS, SMB (its three generations), AFS. */
const NETWORK_TYPES: readonly number[] = [0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x5346414f];

/** A template's text, for those who ask whether a file was ever changed. */
export async function readTemplate(file: BootstrapFile): Promise<string> {
  const name = file.slice(file.lastIndexOf("/") + 1);
  return await readFile(fileURLToPath(new URL(`./templates/${name}`, import.meta.url)), "utf8");
}

async function makeFolders(dir: string): Promise<Omit<Workspace, "id" | "isNetworkFileSystem">> {
  await mkdir(dir, { recursive: true });
  const root = await realpath(dir);
  const folders = {
    root,
    internal: join(root, ".nanogate"),
    sessions: join(root, "sessions"),
    memory: join(root, "memory"),
    skills: join(root, "skills"),
  };
  await mkdir(folders.internal, { recursive: true, mode: 0o700 });
  await mkdir(folders.sessions, { recursive: true, mode: 0o700 });
  await mkdir(folders.memory, { recursive: true });
  await mkdir(folders.skills, { recursive: true });
  for (const folder of Object.values(folders)) await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  return folders;
}

/** Before the id is made: a start that was killed in between writes the rest next time. */
async function writeBootstrapFiles(root: string): Promise<void> {
  for (const file of BOOTSTRAP_FILES) await createWhole(join(root, file), await readTemplate(file));
}

async function isNetworkFolder(folder: string): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const { type } = await statfs(folder);
  // Some builds give the 32-bit type with its sign.
  return NETWORK_TYPES.includes(type >>> 0);
}

/**
 * Opens a workspace, made if it is missing. Safe to call from many processes at once. Throws `WORKSPACE_UNUSABLE`, with
 * what the system said.
 */
export async function openWorkspace(dir: string): Promise<Workspace> {
  try {
    const folders = await makeFolders(dir);
    if (await isUnused(folders.internal)) await writeBootstrapFiles(folders.root);
    const id = await ensureWorkspaceId(folders.internal);
    return { id, ...folders, isNetworkFileSystem: await isNetworkFolder(folders.sessions) };
  } catch (error) {
    throw unusable(dir, error);
  }
}

/** A workspace that somebody has used, without making or changing anything; null where there is none. */
export async function findWorkspace(dir: string): Promise<FoundWorkspace | null> {
  try {
    const root = await realpath(dir);
    const id = await readWorkspaceId(join(root, ".nanogate"));
    return id === null ? null : { id, root, sessions: join(root, "sessions") };
  } catch (error) {
    if (isSystemError(error, "ENOENT", "ENOTDIR")) return null;
    throw unusable(dir, error);
  }
}

function unusable(dir: string, error: unknown): NanogateError {
  if (error instanceof NanogateError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new NanogateError("WORKSPACE_UNUSABLE", `The workspace ${dir} cannot be used: ${why}.`, { cause: error });
}

/**
 * The tool `list_dir`: names in a folder, folders with a slash. It follows no links and opens no file. Invariant: the
 * answer is sorted and bounded, and says how much it left out.
 */
import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { done, type FileToolDeps, fileFailure } from "./files.js";
import type { Tool, ToolContext } from "./tool.js";

const DEFAULT_ENTRIES = 200;
const MAX_ENTRIES = 1000;
/** Folders whose contents are rarely meant; they are named, not entered. */
const NOT_ENTERED = new Set([".git", "node_modules"]);

const input = z.strictObject({
  path: z.string().min(1).default(".").describe("Folder to list; relative paths start at the workspace"),
  recursive: z.boolean().default(false).describe("Also list what is in its folders"),
  max_entries: z.number().int().min(1).max(MAX_ENTRIES).default(DEFAULT_ENTRIES).describe("Most entries to list"),
});
type ListInput = z.infer<typeof input>;

interface Listing {
  names: string[];
  isCut: boolean;
}

function label(entry: Dirent, name: string): string {
  if (entry.isDirectory()) return `${name}/`;
  return entry.isSymbolicLink() ? `${name} (link)` : name;
}

async function collect(folder: string, prefix: string, call: ListInput, signal: AbortSignal): Promise<Listing> {
  signal.throwIfAborted();
  const entries = (await readdir(folder, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
  const names: string[] = [];
  for (const entry of entries) {
    if (names.length >= call.max_entries) return { names, isCut: true };
    names.push(label(entry, prefix + entry.name));
    if (!call.recursive || !entry.isDirectory() || NOT_ENTERED.has(entry.name)) continue;
    const room = { ...call, max_entries: call.max_entries - names.length };
    const inner = await collect(join(folder, entry.name), `${prefix}${entry.name}/`, room, signal);
    names.push(...inner.names);
    if (inner.isCut) return { names, isCut: true };
  }
  return { names, isCut: false };
}

/** Makes the tool. */
export function createListDir(deps: FileToolDeps): Tool<ListInput> {
  return {
    name: "list_dir",
    description: "List the files and folders of a folder.",
    input,
    isReadOnly: true,
    async run(call: ListInput, context: ToolContext) {
      try {
        const real = await deps.guard.resolveInside(call.path);
        const { names, isCut } = await collect(real, "", call, context.signal);
        if (names.length === 0 && !isCut) return done("(the folder is empty)");
        const more = isCut ? [`(more entries left out; at most ${call.max_entries} are shown, see max_entries)`] : [];
        return done([...names, ...more].join("\n"));
      } catch (error) {
        return fileFailure(error, call.path);
      }
    },
  };
}

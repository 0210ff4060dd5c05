/**
 * The tools that work on the workspace's files: adding one is its file and one line here. It makes them and does nothing
 * else. Invariant: none of them touches a path that the guard has not resolved.
 */
import { createEditFile } from "./edit-file.js";
import type { FileToolDeps } from "./files.js";
import { createListDir } from "./list-dir.js";
import { createReadFile } from "./read-file.js";
import type { Tool } from "./tool.js";
import { createWriteFile } from "./write-file.js";

/** The file tools of one conversation. */
export function createWorkspaceTools(deps: FileToolDeps): Tool[] {
  return [createReadFile(deps), createWriteFile(deps), createEditFile(deps), createListDir(deps)];
}

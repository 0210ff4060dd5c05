/**
 * The tool `write_file`: a whole file at once, parents included. It appends and merges nothing. Invariant: a reader sees
 * the old file or the new one, never a part of either.
 */
import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import writeFileAtomic from "write-file-atomic";
import { z } from "zod";
import { done, type FileToolDeps, failed, fileFailure, statOrNull } from "./files.js";
import type { Tool, ToolResult } from "./tool.js";

const MAX_BYTES = 10 * 1024 * 1024;

const input = z.strictObject({
  path: z.string().min(1).describe("File to write; relative paths start at the workspace"),
  content: z.string().describe("The whole content of the file"),
});
type WriteInput = z.infer<typeof input>;

async function write(call: WriteInput, deps: FileToolDeps): Promise<ToolResult> {
  const bytes = Buffer.byteLength(call.content, "utf8");
  if (bytes > MAX_BYTES)
    return failed(`The content has ${bytes} bytes; the limit is ${MAX_BYTES}. Write smaller files.`);
  const real = await deps.guard.resolveInside(call.path);
  const before = await statOrNull(real);
  if (before !== null && !before.isFile()) return failed(`${call.path} is not a file; it was not written.`);
  await mkdir(dirname(real), { recursive: true });
  await writeFileAtomic(real, call.content, { encoding: "utf8" });
  deps.reads.noteWrite(real, await stat(real));
  return done(`${before === null ? "Created" : "Replaced"} ${call.path} (${bytes} bytes).`);
}

/** Makes the tool. */
export function createWriteFile(deps: FileToolDeps): Tool<WriteInput> {
  return {
    name: "write_file",
    description: "Write a whole text file; folders on the way are made, an existing file is replaced.",
    input,
    isReadOnly: false,
    async run(call: WriteInput) {
      try {
        return await write(call, deps);
      } catch (error) {
        return fileFailure(error, call.path);
      }
    },
  };
}

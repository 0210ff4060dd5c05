/**
 * The tool `read_file`: numbered lines of a text file. It reads no folder, device or binary file, and never the whole of
 * a large file: it stops where the answer is full. Invariant: whatever was left out is said, with how to go on.
 */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { z } from "zod";
import { done, type FileToolDeps, failed, fileFailure, looksLikeText } from "./files.js";
import type { Tool, ToolContext, ToolResult } from "./tool.js";

const MAX_LINES = 2000;
const MAX_CHARS = 128_000;
const MAX_FILE_BYTES = 100 * 1024 * 1024;
const PROBE_BYTES = 8192;

const input = z.strictObject({
  path: z.string().min(1).describe("File to read; relative paths start at the workspace"),
  offset: z.number().int().min(1).default(1).describe("First line, from 1"),
  limit: z.number().int().min(1).max(MAX_LINES).default(MAX_LINES).describe("Most lines to read"),
  force: z.boolean().default(false).describe("Show the lines again although they were read before and did not change"),
});
type ReadInput = z.infer<typeof input>;

interface Window {
  lines: string[];
  /** Number of the first line that was not shown, or null at the end of the file. */
  nextLine: number | null;
  /** Lines seen; the file's number of lines only where `nextLine` is null. */
  seen: number;
}

/** Takes lines until the window is full; the file is read no further. */
class WindowReader {
  readonly window: Window = { lines: [], nextLine: null, seen: 0 };
  #rest = "";
  #chars = 0;

  constructor(readonly range: ReadInput) {}

  /** False when nothing more is needed. */
  take(chunk: string): boolean {
    const parts = (this.#rest + chunk).split("\n");
    // A single endless line must not fill the memory; what is cut here would not be shown anyway.
    this.#rest = (parts.pop() ?? "").slice(0, MAX_CHARS + 1);
    return parts.every((line) => this.#line(line));
  }

  end(): void {
    if (this.#rest !== "") this.#line(this.#rest);
  }

  #line(raw: string): boolean {
    const number = this.window.seen + 1;
    if (this.window.lines.length >= this.range.limit || this.#chars >= MAX_CHARS) {
      this.window.nextLine = number;
      return false;
    }
    this.window.seen = number;
    if (number < this.range.offset) return true;
    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    const room = MAX_CHARS - this.#chars;
    this.window.lines.push(`${number}| ${line.length <= room ? line : `${line.slice(0, room)} … (line cut)`}`);
    this.#chars += line.length;
    return true;
  }
}

async function readWindow(handle: FileHandle, range: ReadInput, signal: AbortSignal): Promise<Window> {
  const reader = new WindowReader(range);
  const stream = handle.createReadStream({ encoding: "utf8", start: 0, autoClose: false, signal });
  for await (const chunk of stream) if (!reader.take(String(chunk))) return reader.window;
  reader.end();
  return reader.window;
}

function describe(window: Window, range: ReadInput): ToolResult {
  if (window.seen === 0) return done("(the file is empty)");
  if (window.lines.length === 0) return failed(`The file has only ${window.seen} lines.`);
  const footer =
    window.nextLine === null
      ? `(end of file, ${window.seen} lines)`
      : `(lines ${range.offset} to ${window.nextLine - 1}; more follow: go on with offset ${window.nextLine})`;
  return done([...window.lines, "", footer].join("\n"));
}

async function readText(range: ReadInput, deps: FileToolDeps, signal: AbortSignal): Promise<ToolResult> {
  const real = await deps.guard.resolveReadable(range.path);
  // Not blocking: opening a pipe that nobody writes to would wait for ever.
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (stats.isDirectory()) return failed(`${range.path} is a folder. list_dir shows what is in it.`);
    if (!stats.isFile()) return failed(`${range.path} is a device or a pipe, not a file.`);
    if (stats.size > MAX_FILE_BYTES)
      return failed(`${range.path} has ${stats.size} bytes; the limit is ${MAX_FILE_BYTES}.`);
    const key = `${range.offset}+${range.limit}`;
    if (!range.force && deps.reads.isRepeat(real, stats, key)) {
      return done(`${range.path} has not changed since you read these lines above. Use force to see them again.`);
    }
    const probe = await handle.read(Buffer.alloc(PROBE_BYTES), 0, PROBE_BYTES, 0);
    if (!looksLikeText(probe.buffer.subarray(0, probe.bytesRead))) {
      return failed(`${range.path} is a binary file (${stats.size} bytes), not text.`);
    }
    const result = describe(await readWindow(handle, range, signal), range);
    deps.reads.noteRead(real, stats, key);
    return result;
  } finally {
    await handle.close();
  }
}

/** Makes the tool. */
export function createReadFile(deps: FileToolDeps): Tool<ReadInput> {
  return {
    name: "read_file",
    description: `Read a text file as numbered lines, at most ${MAX_LINES} at a time.`,
    input,
    isReadOnly: true,
    async run(range: ReadInput, context: ToolContext) {
      try {
        return await readText(range, deps, context.signal);
      } catch (error) {
        return fileFailure(error, range.path);
      }
    },
  };
}

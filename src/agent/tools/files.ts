/**
 * What the file tools share: their results, errors in words a model can act on, and what was read before. It judges no
 * path; the guard does. Invariant: `FileReads` is bounded and says "unchanged" only for a file whose size and time of
 * change are those of the reading.
 */
import { isUtf8 } from "node:buffer";
import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import type { PathGuard } from "./ports.js";
import type { ToolResult } from "./tool.js";

export function done(text: string): ToolResult {
  return { type: "done", text, isError: false };
}

export function failed(text: string): ToolResult {
  return { type: "done", text, isError: true };
}

/** A file system error as a result; anything else is thrown on. */
export function fileFailure(error: unknown, path: string): ToolResult {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "ENOENT":
      return failed(`${path} does not exist. list_dir shows what there is.`);
    case "EISDIR":
      return failed(`${path} is a folder, not a file. list_dir shows what is in it.`);
    case "ENOTDIR":
      return failed(`A part of ${path} is a file, not a folder.`);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return failed(`The gateway has no permission for ${path}.`);
    case "ENOSPC":
    case "EDQUOT":
      return failed(`The disk is full; ${path} was not written.`);
    case "ENAMETOOLONG":
      return failed("The name is too long for the file system.");
    default:
      throw error;
  }
}

/** What a path is, or null when there is nothing. */
export async function statOrNull(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/** Whether the beginning of a file is text: valid UTF-8 without NUL. A character cut at the end does not count. */
export function looksLikeText(beginning: Buffer): boolean {
  if (beginning.includes(0)) return false;
  for (let cut = 0; cut <= 3 && cut <= beginning.length; cut += 1) {
    if (isUtf8(beginning.subarray(0, beginning.length - cut))) return true;
  }
  return false;
}

interface Version {
  mtimeMs: number;
  size: number;
  ranges: Set<string>;
}

const MAX_REMEMBERED = 500;

/**
 * What a conversation has read. Make one for each conversation, and not for longer than its earlier results are in
 * the model's context: a repeated read is answered with a reference to the first.
 */
export class FileReads {
  readonly #versions = new Map<string, Version>();

  /** True when this very range was read, and the file has not changed since. */
  isRepeat(path: string, stats: Stats, range: string): boolean {
    return this.knows(path, stats) && this.#versions.get(path)?.ranges.has(range) === true;
  }

  /** True when the file is as it was when it was last read or written here. */
  knows(path: string, stats: Stats): boolean {
    const version = this.#versions.get(path);
    return version !== undefined && version.mtimeMs === stats.mtimeMs && version.size === stats.size;
  }

  noteRead(path: string, stats: Stats, range: string): void {
    const ranges = this.knows(path, stats) ? (this.#versions.get(path)?.ranges ?? []) : [];
    this.#remember(path, stats, new Set([...ranges, range]));
  }

  /** After a write the next read shows the file again. */
  noteWrite(path: string, stats: Stats): void {
    this.#remember(path, stats, new Set());
  }

  has(path: string): boolean {
    return this.#versions.has(path);
  }

  #remember(path: string, stats: Stats, ranges: Set<string>): void {
    this.#versions.delete(path);
    this.#versions.set(path, { mtimeMs: stats.mtimeMs, size: stats.size, ranges });
    const oldest = this.#versions.keys().next().value;
    if (this.#versions.size > MAX_REMEMBERED && oldest !== undefined) this.#versions.delete(oldest);
  }
}

/** What every file tool is made with. */
export interface FileToolDeps {
  guard: PathGuard;
  reads: FileReads;
}

/**
 * The tool `edit_file`: replaces a text in a file by another. It never guesses between several places: it lists them.
 * Invariants: a reader sees the old file or the new one; line ends of the file are kept; a file that is not text is
 * never rewritten.
 */
import { isUtf8 } from "node:buffer";
import type { Stats } from "node:fs";
import { mkdir, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import writeFileAtomic from "write-file-atomic";
import { z } from "zod";
import { findMatches, type Match, replaceMatches } from "./edit-match.js";
import { done, type FileToolDeps, failed, fileFailure, statOrNull } from "./files.js";
import type { Tool, ToolResult } from "./tool.js";

const MAX_FILE_BYTES = 10 * 1024 * 1024;
const MAX_LISTED = 20;

const input = z.strictObject({
  path: z.string().min(1).describe("File to edit; relative paths start at the workspace"),
  old_text: z.string().describe("The text to replace, exactly as in the file; empty only to create a new file"),
  new_text: z.string().describe("What to put in its place"),
  replace_all: z.boolean().default(false).describe("Replace every place where old_text stands"),
  occurrence: z.number().int().min(1).optional().describe("Which place, from 1, when there are several"),
  line_hint: z.number().int().min(1).optional().describe("Take the place nearest to this line"),
  expected_replacements: z.number().int().min(1).optional().describe("How many places there must be; all are replaced"),
});
type EditInput = z.infer<typeof input>;

type Choice = { ok: true; matches: Match[] } | { ok: false; problem: string };

function ambiguous(matches: readonly Match[]): Choice {
  const lines = matches.slice(0, MAX_LISTED).map((match) => match.line);
  const more = matches.length > MAX_LISTED ? " and more" : "";
  return {
    ok: false,
    problem: `old_text stands at ${matches.length} places (lines ${lines.join(", ")}${more}). Give more of the text around it, or occurrence, line_hint or replace_all.`,
  };
}

function nearestTo(matches: readonly Match[], line: number): Choice {
  const sorted = [...matches].sort((a, b) => Math.abs(a.line - line) - Math.abs(b.line - line));
  const [first, second] = sorted;
  const isTie = first && second && Math.abs(first.line - line) === Math.abs(second.line - line);
  return first && !isTie ? { ok: true, matches: [first] } : ambiguous(matches);
}

/** Which of the places found are meant. `matches` is not empty. */
function choose(matches: Match[], call: EditInput): Choice {
  const expected = call.expected_replacements;
  if (expected !== undefined && expected !== matches.length) {
    return {
      ok: false,
      problem: `old_text stands at ${matches.length} places, not at ${expected}. Nothing was changed.`,
    };
  }
  if (call.replace_all || expected !== undefined) return { ok: true, matches };
  if (call.occurrence !== undefined) {
    const chosen = matches[call.occurrence - 1];
    if (chosen) return { ok: true, matches: [chosen] };
    return {
      ok: false,
      problem: `There is no occurrence ${call.occurrence}; old_text stands at ${matches.length} places.`,
    };
  }
  if (matches.length === 1) return { ok: true, matches };
  return call.line_hint === undefined ? ambiguous(matches) : nearestTo(matches, call.line_hint);
}

function notFound(text: string, call: EditInput): ToolResult {
  const first =
    call.old_text
      .split("\n")
      .find((line) => line.trim() !== "")
      ?.trim() ?? "";
  const line = text.split("\n").findIndex((candidate) => first !== "" && candidate.includes(first)) + 1;
  const hint = line > 0 ? ` Its first line stands on line ${line}, but what follows differs.` : "";
  return failed(
    `old_text was not found in ${call.path}.${hint} Read the file and copy the text exactly. Nothing was changed.`,
  );
}

function stalenessOf(real: string, stats: Stats, deps: FileToolDeps): string {
  if (deps.reads.knows(real, stats)) return "";
  return deps.reads.has(real)
    ? "\nWarning: the file had changed since it was last read. Read it again before further edits."
    : "\nWarning: the file had not been read before this edit.";
}

async function create(real: string, before: Stats | null, call: EditInput, deps: FileToolDeps): Promise<ToolResult> {
  if (before !== null && before.size > 0) {
    return failed(`${call.path} is not empty: an empty old_text only creates a new file. Give the text to replace.`);
  }
  await mkdir(dirname(real), { recursive: true });
  await writeFileAtomic(real, call.new_text, { encoding: "utf8" });
  deps.reads.noteWrite(real, await stat(real));
  return done(`Created ${call.path}.`);
}

async function edit(call: EditInput, deps: FileToolDeps): Promise<ToolResult> {
  const real = await deps.guard.resolveInside(call.path);
  const before = await statOrNull(real);
  if (before !== null && !before.isFile()) return failed(`${call.path} is not a file.`);
  if (Buffer.byteLength(call.new_text) > MAX_FILE_BYTES) return failed(`new_text is over ${MAX_FILE_BYTES} bytes.`);
  if (call.old_text === "") return create(real, before, call, deps);
  if (before !== null && before.size > MAX_FILE_BYTES) {
    return failed(`${call.path} has ${before.size} bytes; the limit for edits is ${MAX_FILE_BYTES}.`);
  }
  if (call.old_text === call.new_text) return failed("old_text and new_text are the same; nothing was changed.");
  const bytes = await readFile(real);
  if (!isUtf8(bytes) || bytes.includes(0)) return failed(`${call.path} is a binary file; it was not changed.`);
  const text = bytes.toString("utf8");
  const matches = findMatches(text, call.old_text);
  if (matches.length === 0) return notFound(text, call);
  const chosen = choose(matches, call);
  if (!chosen.ok) return failed(chosen.problem);
  const warning = before === null ? "" : stalenessOf(real, before, deps);
  await writeFileAtomic(real, replaceMatches(text, chosen.matches, call.new_text), { encoding: "utf8" });
  deps.reads.noteWrite(real, await stat(real));
  const lines = chosen.matches.slice(0, MAX_LISTED).map((match) => match.line);
  return done(`Replaced ${chosen.matches.length} in ${call.path} (line ${lines.join(", ")}).${warning}`);
}

/** Makes the tool. */
export function createEditFile(deps: FileToolDeps): Tool<EditInput> {
  return {
    name: "edit_file",
    description: "Replace a text in a file. old_text must stand at one place only, unless you say which or all.",
    input,
    isReadOnly: false,
    async run(call: EditInput) {
      try {
        return await edit(call, deps);
      } catch (error) {
        return fileFailure(error, call.path);
      }
    },
  };
}

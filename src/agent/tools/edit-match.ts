/**
 * Finds the text an edit means, and puts the new text in its place. Pure. It first looks for the exact text, then line by
 * line without regard to outer spaces and to the shape of quotes. Invariant: line ends outside the replaced text are
 * never touched, and those inside follow the file.
 */

/** A place in the text: UTF-16 offsets, and the line it starts on (from 1). */
export interface Match {
  start: number;
  end: number;
  line: number;
  /** Where only the indentation differed: what the new text's lines begin with, and what they must begin with. */
  indent: { from: string; to: string } | null;
}

function withLineEnds(text: string, lineEnd: "\n" | "\r\n"): string {
  return text.replace(/\r?\n/g, lineEnd);
}

function exactMatches(text: string, wanted: string): Match[] {
  const matches: Match[] = [];
  let line = 1;
  let counted = 0;
  for (let start = text.indexOf(wanted); start >= 0; start = text.indexOf(wanted, start + wanted.length)) {
    for (let at = text.indexOf("\n", counted); at >= 0 && at < start; at = text.indexOf("\n", at + 1)) {
      line += 1;
      counted = at + 1;
    }
    matches.push({ start, end: start + wanted.length, line, indent: null });
  }
  return matches;
}

/** A line as it is compared when the exact text is not there. */
function loose(line: string): string {
  return line
    .trim()
    .replace(/[\u2018\u2019\u201a\u2032]/g, "'")
    .replace(/[\u201c\u201d\u201e\u2033]/g, '"');
}

function indentOf(line: string): string {
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}

interface Line {
  text: string;
  start: number;
}

function linesOf(text: string): Line[] {
  let start = 0;
  return text.split("\n").map((raw) => {
    const line = { text: raw.endsWith("\r") ? raw.slice(0, -1) : raw, start };
    start += raw.length + 1;
    return line;
  });
}

function looseMatches(text: string, wanted: string): Match[] {
  const lines = linesOf(text);
  const sought = linesOf(wanted.replace(/\r?\n$/, "")).map((line) => line.text);
  const keys = sought.map(loose);
  if (keys.every((key) => key === "")) return [];
  const compared = lines.map((line) => loose(line.text));
  const matches: Match[] = [];
  for (let first = 0; first + keys.length <= lines.length; first += 1) {
    if (!keys.every((key, offset) => compared[first + offset] === key)) continue;
    const begin = lines[first];
    const last = lines[first + keys.length - 1];
    if (begin === undefined || last === undefined) continue;
    const indent = { from: indentOf(sought[0] ?? ""), to: indentOf(begin.text) };
    matches.push({ start: begin.start, end: last.start + last.text.length, line: first + 1, indent });
    first += keys.length - 1;
  }
  return matches;
}

/** Every place where `wanted` (not empty) stands, in order and without overlap. */
export function findMatches(text: string, wanted: string): Match[] {
  const spellings = new Set([wanted, withLineEnds(wanted, "\r\n"), withLineEnds(wanted, "\n")]);
  for (const spelling of spellings) {
    const matches = exactMatches(text, spelling);
    if (matches.length > 0) return matches;
  }
  return looseMatches(text, wanted);
}

function lineEndAt(text: string, match: Match): "\n" | "\r\n" | null {
  const replaced = text.slice(match.start, match.end);
  const near = replaced.includes("\n") ? replaced : text;
  if (near.includes("\r\n")) return "\r\n";
  return near.includes("\n") ? "\n" : null;
}

function reindent(text: string, indent: Match["indent"]): string {
  if (indent === null || indent.from === indent.to) return text;
  return text
    .split("\n")
    .map((line) =>
      line.trim() !== "" && line.startsWith(indent.from) ? indent.to + line.slice(indent.from.length) : line,
    )
    .join("\n");
}

/** A loose match covers no line end behind its last line, so the new text may not bring one. */
function fitted(text: string, match: Match, replacement: string): string {
  const body = match.indent === null ? replacement : reindent(replacement.replace(/\r?\n$/, ""), match.indent);
  const lineEnd = lineEndAt(text, match);
  return lineEnd === null ? body : withLineEnds(body, lineEnd);
}

/** The text with every match replaced. `matches` in order, without overlap. */
export function replaceMatches(text: string, matches: readonly Match[], replacement: string): string {
  let result = "";
  let position = 0;
  for (const match of matches) {
    result += text.slice(position, match.start) + fitted(text, match, replacement);
    position = match.end;
  }
  return result + text.slice(position);
}

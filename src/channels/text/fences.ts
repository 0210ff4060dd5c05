/**
 * Fences of code in markdown: which one is open after a text, and the markers that close and reopen it. It cuts nothing.
 * Invariant: a text that ends inside a fence and is completed with `closingOf` has balanced fences.
 */

/** A fence that was opened and not closed. */
export interface Fence {
  /** Its backticks or tildes. */
  marker: string;
  /** The quote it stands in: `> ` signs, or nothing. */
  quote: string;
  /** The language, as far as it is worth repeating. */
  language: string;
  /** Where its opening line begins; -1: before this text. */
  at: number;
}

/** Longer names of languages are not repeated. */
const LONGEST_LANGUAGE = 20;

const OPENING = /^([ \t>]*)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})([^\r\n]*)/;
const CLOSING = /^[ \t>]*(`{3,}|~{3,})[ \t]*\r?$/;

/** Markers that would eat most of a part are text like any other. */
export function isRepairable(fence: Pick<Fence, "marker" | "quote">, limit: number): boolean {
  return fence.marker.length <= limit / 8 && fence.quote.length <= limit / 16 && limit >= 24;
}

/** The fence that is open after `text`, which begins at the start of a line or, mid-line, inside `before`. */
export function openFenceAfter(text: string, before: Fence | null, limit: number): Fence | null {
  let open = before;
  let at = 0;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    open = afterLine(line, open, { at, limit });
    at += line.length + 1;
  }
  return open;
}

function afterLine(line: string, open: Fence | null, { at, limit }: { at: number; limit: number }): Fence | null {
  if (open !== null) {
    if (at === 0 || isWithin(line, open)) return closes(line, open) ? null : open;
  }
  const [, lead = "", marker, info = ""] = OPENING.exec(line) ?? [];
  if (marker === undefined || (marker.startsWith("`") && info.includes("`"))) return null;
  const quote = lead.includes(">") ? lead : "";
  const [word = ""] = info.trim().split(/\s/);
  const fence = { marker, quote, language: word.length > LONGEST_LANGUAGE ? "" : word, at };
  return isRepairable(fence, limit) ? fence : null;
}

/** A fence in a quote ends with the quote. */
export function isWithin(line: string, open: Fence): boolean {
  return open.quote === "" || /^[ \t]*>/.test(line);
}

function closes(line: string, open: Fence): boolean {
  const [, marker = ""] = CLOSING.exec(line) ?? [];
  return marker.length >= open.marker.length && marker[0] === open.marker[0];
}

/** Whether a line of a text would be taken for the beginning or the end of a fence. */
export function looksLikeFence(line: string): boolean {
  return OPENING.test(line) || CLOSING.test(line);
}

/** What closes a fence after a text: on a line of its own. */
export function closingOf(fence: Fence, text: string): string {
  return `${text.endsWith("\n") ? "" : "\n"}${fence.quote}${fence.marker}`;
}

/** The line that reopens a fence; `isMidLine`: the text goes on within a line of it. */
export function openingOf(fence: Fence, options: { isMidLine: boolean; limit: number }): string {
  const bare = 2 * (fence.marker.length + fence.quote.length) + 3;
  const language = bare + fence.language.length <= options.limit / 2 ? fence.language : "";
  return `${fence.quote}${fence.marker}${language}\n${options.isMidLine ? fence.quote : ""}`;
}

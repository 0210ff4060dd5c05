/**
 * Cuts markdown source into parts that each stand on their own: a fence of code that is cut is closed and opened again.
 * It renders nothing. Invariant: every part is within the limit, fences are balanced in each, and the bodies joined are
 * the text; a limit too small for markers is kept without them.
 */
import { cutWithin } from "./borders.js";
import { closingOf, type Fence, isWithin, looksLikeFence, openFenceAfter, openingOf } from "./fences.js";

export interface SplitOptions {
  /** Units of UTF-16 that one part may have, its added markers included. At least 1. */
  limit: number;
  /** Lines of the text that one part may have. */
  maxLines?: number;
}

/** A piece of the text, and what makes it whole. */
export interface MarkdownPart {
  /** Reopens the fence that was open before. */
  opening: string;
  /** The text's own words. */
  body: string;
  /** Closes the fence that is open at its end. */
  closing: string;
}

/** Parts ready to be sent; none is blank. A blank text has none. Lone surrogates, which no platform takes, become U+FFFD. */
export function splitMarkdown(text: string, options: SplitOptions): string[] {
  const parts = cutMarkdown(text, options).filter(({ body }) => body.trim() !== "");
  return parts.map(({ opening, body, closing }) => `${opening}${body}${closing}`);
}

/** The pieces of a text with what each needs; blank ones included, so that the bodies joined are the text. */
export function cutMarkdown(text: string, options: SplitOptions): MarkdownPart[] {
  const source = text.toWellFormed();
  const limit = Math.max(1, options.limit);
  const parts: MarkdownPart[] = [];
  let open: Fence | null = null;
  for (let from = 0; from < source.length; ) {
    const isMidLine = from > 0 && source[from - 1] !== "\n";
    const opening: string = open === null ? "" : openingOf(open, { isMidLine, limit });
    const maxTo = endOfLines(source, from, options.maxLines ?? Number.POSITIVE_INFINITY);
    const piece = pieceOf(source, { from, maxTo, open, limit, room: limit - opening.length });
    parts.push({ opening, body: piece.body, closing: piece.closing });
    from += piece.body.length;
    const goesOn = piece.open !== null && (!piece.body.endsWith("\n") || isWithin(lineAt(source, from), piece.open));
    open = goesOn && piece.open !== null ? { ...piece.open, at: -1 } : null;
  }
  return parts;
}

interface Place {
  from: number;
  /** How far the piece may reach at most, by its lines. */
  maxTo: number;
  open: Fence | null;
  limit: number;
  /** Units that body and closing may have. */
  room: number;
}

interface Piece {
  body: string;
  closing: string;
  open: Fence | null;
}

/** The longest piece that is whole within the room. What its closing needs is only known when it is cut: then it is cut again. */
function pieceOf(source: string, place: Place): Piece {
  const { from, maxTo, limit, room } = place;
  const isLast = maxTo >= source.length;
  for (let length = Math.min(room, maxTo - from); length > 0; ) {
    const to = from + length;
    const isWhole = to === maxTo && (isLast || source[to - 1] === "\n");
    const cut = isWhole ? to : cutWithin(source, { from, to, isAllowed: (at) => isClean(source, at) });
    const body = source.slice(from, cut);
    const open = openFenceAfter(body, place.open, limit);
    if (open === null) return { body, closing: "", open };
    const early = isWhole && isLast ? null : beforeFence(source, { ...place, open, before: place.open });
    if (early !== null) return { body: source.slice(from, early), closing: "", open: null };
    const closing = closingOf(open, body);
    if (body.length + closing.length <= room) return withItsOwnEnd(source, place, { body, closing, open });
    length = Math.min(length - 1, Math.max(room - closing.length, body.length - 1));
  }
  const body = source.slice(from, cutWithin(source, { from, to: from + Math.max(1, Math.min(limit, maxTo - from)) }));
  return { body, closing: "", open: null };
}

/** Where a fence begins that is better not cut: it begins late, or fits into a part of its own. Null for others. */
function beforeFence(
  source: string,
  { from, open, limit, before }: Place & { open: Fence; before: Fence | null },
): number | null {
  const start = from + open.at;
  if (open.at < limit / 4 || openFenceAfter(source.slice(from, start), before, limit) !== null) return null;
  if (open.at > limit / 2) return start;
  const rest = source.slice(start, start + limit);
  const opening = rest.indexOf("\n") + 1;
  if (opening === 0) return start;
  let at = opening;
  for (const line of rest.slice(opening).split("\n")) {
    at += line.length + 1;
    if (openFenceAfter(line, open, limit) === null) return at - 1 <= limit ? start : null;
  }
  return start + limit >= source.length ? start : null;
}

/** When all that remains of a fence is its end, the end goes along instead of the marker that was added. */
function withItsOwnEnd(source: string, place: Place, piece: Piece & { open: Fence }): Piece {
  const next = place.from + piece.body.length;
  if (source[next - 1] !== "\n") return piece;
  const lineEnd = source.indexOf("\n", next);
  const line = source.slice(next, lineEnd === -1 ? source.length : lineEnd);
  if (!isWithin(line, piece.open) || openFenceAfter(line, piece.open, place.limit) !== null) return piece;
  const body = piece.body + line;
  if (body.length > place.room) return piece;
  return { body: lineEnd !== -1 && body.length < place.room ? `${body}\n` : body, closing: "", open: null };
}

/** A cut within a line must not make a fence of what was none, nor break the line of one. */
function isClean(source: string, at: number): boolean {
  const lineStart = source.lastIndexOf("\n", at - 1) + 1;
  if (lineStart === at) return true;
  return !looksLikeFence(lineAt(source, lineStart)) && !looksLikeFence(lineAt(source, at));
}

/** The beginning of a line; enough of it to know a fence by. */
function lineAt(source: string, start: number): string {
  const window = source.slice(start, start + 200);
  const end = window.indexOf("\n");
  return end === -1 ? window : window.slice(0, end);
}

function endOfLines(source: string, from: number, lines: number): number {
  if (lines === Number.POSITIVE_INFINITY) return source.length;
  let at = from;
  for (let count = 0; count < Math.max(1, lines); count += 1) {
    const end = source.indexOf("\n", at);
    if (end === -1) return source.length;
    at = end + 1;
  }
  return at;
}

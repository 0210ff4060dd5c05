/**
 * Where a long text may be cut. It knows no markup and no platform; offsets are UTF-16 units. Invariant: a cut always
 * advances, never falls inside a surrogate pair, and falls inside a grapheme only where one alone is longer than the room
 * (a room of one unit still takes a whole pair).
 */

/** What ends a piece well, the best first. */
const BORDERS: readonly RegExp[] = [/\n[^\S\n]*\n+/g, /\n/g, /[.!?…](?=[\s"'”’)])[^\S\n]*|[。！？]/g];
const SPACES = /\s+/g;

/** A cut at a better border, but in this first part of the room, would make more messages than it is worth. */
const EARLIEST = 0.4;

export interface Room {
  /** Where the piece begins; itself a border of graphemes. */
  from: number;
  /** How far it may reach, exclusive. */
  to: number;
  /** Refuses a cut although it stands at a good place. */
  isAllowed?: (at: number) => boolean;
}

/** The best place to cut within the room: paragraph, line, sentence, space, grapheme. More than `from`, at most `to`. */
export function cutWithin(text: string, room: Room): number {
  const { from, isAllowed = () => true } = room;
  const to = Math.max(room.to, from + 1);
  if (to >= text.length) return text.length;
  const window = text.slice(from, to);
  const isBorder = graphemeBorders(text.slice(from, to + 2));
  const isGood = (length: number) => isBorder(length) && isAllowed(from + length);
  const earliest = Math.floor(window.length * EARLIEST);
  for (const border of BORDERS) {
    const length = lastEnd(window, border, (end) => end >= earliest && isGood(end));
    if (length > 0) return from + length;
  }
  const blank = window.length - window.trimStart().length;
  const space = lastEnd(window, SPACES, (end) => end > blank && isGood(end));
  if (space > 0) return from + space;
  for (let length = window.length; length > 0; length -= 1) if (isGood(length)) return from + length;
  return from + hardLength(window, isBorder, text.slice(from, to + 1));
}

/** Nothing in the room is allowed: its last grapheme border, else a border of characters. */
function hardLength(window: string, isBorder: (at: number) => boolean, andNext: string): number {
  for (let length = window.length; length > 0; length -= 1) if (isBorder(length)) return length;
  if (!isInsidePair(andNext, window.length)) return window.length;
  return window.length > 1 ? window.length - 1 : 2;
}

/** Whether an offset lies between the two halves of one character. */
export function isInsidePair(text: string, at: number): boolean {
  return /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(Math.max(0, at - 1), at + 1));
}

/** The first `length` units of a text at most, whole graphemes where one fits. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  return length <= 0 ? "" : text.slice(0, hardLength(text.slice(0, length), graphemeBorders(text), text));
}

function lastEnd(window: string, border: RegExp, isGood: (end: number) => boolean): number {
  const ends = Array.from(window.matchAll(border), (match) => match.index + match[0].length);
  return ends.findLast(isGood) ?? 0;
}

function graphemeBorders(text: string): (at: number) => boolean {
  const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text);
  return (at) => at >= text.length || graphemes.containing(at)?.index === at;
}

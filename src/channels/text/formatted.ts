/**
 * Formatted text: plain text, and entities that say which stretch of it looks how. No platform's own names. Invariant:
 * entities lie within the text, never begin or end inside a surrogate pair, and nest as every platform wants it: nothing
 * inside or around code, no style inside itself, no two that only overlap.
 */
import { cutWithin } from "./borders.js";

/** How a stretch of text looks. */
export type Style =
  | { type: "bold" | "italic" | "strike" | "code" | "quote" }
  | { type: "pre"; language?: string }
  | { type: "link"; url: string };

/** A stretch of text, in UTF-16 units. */
export type Entity = Style & { offset: number; length: number };

export interface Formatted {
  text: string;
  /** By offset; of two that begin together the longer first. */
  entities: Entity[];
}

/** A text without any style. */
export function plain(text: string): Formatted {
  return { text, entities: [] };
}

/** Builds a formatted text piece by piece. */
export class FormattedBuilder {
  #text = "";
  #active: Style[] = [];
  /** Those of the last piece. */
  #last: readonly Style[] = [];
  /** The entity that a style has made last; it grows while pieces follow each other. */
  readonly #newest = new Map<Style, Entity>();
  readonly #entities: Entity[] = [];
  #gap = "";

  append(text: string): void {
    if (text === "") return;
    const styles = visibleOf(this.#active);
    if (this.#text !== "")
      this.#write(
        this.#gap,
        styles.filter((style) => this.#last.includes(style)),
      );
    this.#gap = "";
    this.#write(text, styles);
    this.#last = styles;
  }

  /** What stands between this and the next piece, if there is one; of several gaps the longest counts. */
  gap(text: string): void {
    if (text.length > this.#gap.length) this.#gap = text;
  }

  /** All that `write` appends looks so. */
  styled(style: Style, write: () => void): void {
    this.#active.push(style);
    write();
    this.#active.pop();
  }

  result(): Formatted {
    const text = this.#text;
    const entities = this.#entities.filter(({ offset, length }) => text.slice(offset, offset + length).trim() !== "");
    return { text, entities: entities.sort((a, b) => a.offset - b.offset || b.length - a.length) };
  }

  #write(text: string, styles: readonly Style[]): void {
    const offset = this.#text.length;
    this.#text += text;
    if (text === "") return;
    for (const style of styles) {
      const newest = this.#newest.get(style);
      if (newest !== undefined && newest.offset + newest.length === offset) {
        newest.length += text.length;
        continue;
      }
      const entity = { ...style, offset, length: text.length };
      this.#newest.set(style, entity);
      this.#entities.push(entity);
    }
  }
}

/** Of the styles around a piece, from the outermost, those that may stand together. */
function visibleOf(styles: readonly Style[]): Style[] {
  const has = (type: Style["type"]) => styles.some((style) => style.type === type);
  const isShown = ({ type }: Style) => {
    if (has("pre")) return type === "pre";
    if (has("code") && !has("link")) return type === "code" || type === "quote";
    return type !== "code";
  };
  return styles.filter((style, at) => isShown(style) && styles.findIndex(({ type }) => type === style.type) === at);
}

/** Cuts a text into parts of at most `limit` UTF-16 units; joined they are the text. Blank parts are not among them. */
export function splitFormatted({ text, entities }: Formatted, limit: number): Formatted[] {
  const parts: Formatted[] = [];
  const ahead = entities.values();
  let next = ahead.next();
  let reaching: Entity[] = [];
  for (let from = 0; from < text.length; ) {
    const to = cutWithin(text, { from, to: from + limit });
    for (; !next.done && next.value.offset < to; next = ahead.next()) reaching.push(next.value);
    const part = { text: text.slice(from, to), entities: reaching.map((entity) => clip(entity, from, to)) };
    if (part.text.trim() !== "") parts.push(part);
    reaching = reaching.filter(({ offset, length }) => offset + length > to);
    from = to;
  }
  return parts;
}

/** The stretch of an entity within a part, as the part counts. */
function clip(entity: Entity, from: number, to: number): Entity {
  const start = Math.max(entity.offset, from);
  return { ...entity, offset: start - from, length: Math.min(entity.offset + entity.length, to) - start };
}

/**
 * Formatted text and buttons in Telegram's own words. It cuts nothing and makes no call. Invariant: what it renders needs
 * no parsing by Telegram, so no text of a model can be refused for its markup.
 */
import type { InlineKeyboardButton, MessageEntity } from "grammy/types";
import type { Button } from "../../bus/messages.js";
import { type Entity, type Formatted, plain } from "../text/formatted.js";
import { renderMarkdown } from "../text/markdown.js";

/** Bytes of UTF-8 that come back when a button is pressed. */
const CALLBACK_BYTES = 64;
/** Entities of one message; further ones are left out. */
const MAX_ENTITIES = 100;
/** What a reader misses most, first. */
const WEIGHTS: ReadonlyArray<Entity["type"]> = ["pre", "link", "quote", "code", "bold", "italic", "strike"];
/** Buttons that Telegram takes in one row. */
const ROW_LENGTH = 8;

/** What Telegram takes for nothing: blanks, and characters that nobody sees. */
const INVISIBLE = /[\s\p{Cc}\p{Cf}\u115F\u1160\u2800\u3164\uFFA0]/gu;

/** Whether a person would see anything. */
export function isVisible(text: string): boolean {
  return text.replace(INVISIBLE, "") !== "";
}

/** The words of a message; null where there is nothing to see. */
export function wordsOf(markdown: string): Formatted | null {
  const formatted = renderMarkdown(markdown);
  if (isVisible(formatted.text)) return formatted;
  // Markup around nothing still says something when it is shown as it was written.
  return isVisible(markdown) ? plain(markdown.toWellFormed()) : null;
}

/** Entities as Telegram takes them: what it would leave out without a word is what matters least. */
export function entitiesOf(entities: readonly Entity[]): MessageEntity[] {
  const byWeight = entities.toSorted((a, b) => WEIGHTS.indexOf(a.type) - WEIGHTS.indexOf(b.type));
  const kept = new Set(byWeight.slice(0, MAX_ENTITIES));
  return entities.filter((entity) => kept.has(entity)).map(entityOf);
}

function entityOf(entity: Entity): MessageEntity {
  const { offset, length } = entity;
  switch (entity.type) {
    case "bold":
    case "italic":
    case "code":
      return { type: entity.type, offset, length };
    case "strike":
      return { type: "strikethrough", offset, length };
    case "quote":
      return { type: "blockquote", offset, length };
    case "link":
      return { type: "text_link", offset, length, url: entity.url };
    case "pre":
      return { type: "pre", offset, length, ...(entity.language === undefined ? {} : { language: entity.language }) };
    default:
      return entity satisfies never;
  }
}

/** Rows of buttons; too long rows are broken. */
export function keyboardOf(buttons: readonly Button[][]): InlineKeyboardButton[][] {
  const rows: InlineKeyboardButton[][] = [];
  for (const row of buttons) {
    const drawn = row.map(({ label, value }) => {
      const text = isVisible(label) ? label.toWellFormed() : "…";
      return { text, callback_data: cutBytes((value || label).toWellFormed(), CALLBACK_BYTES) || "…" };
    });
    for (let at = 0; at < drawn.length; at += ROW_LENGTH) rows.push(drawn.slice(at, at + ROW_LENGTH));
  }
  return rows;
}

/** The beginning of a text, in whole characters, of at most so many bytes in UTF-8. */
function cutBytes(text: string, bytes: number): string {
  let kept = "";
  let left = bytes;
  for (const character of text) {
    left -= Buffer.byteLength(character);
    if (left < 0) break;
    kept += character;
  }
  return kept;
}

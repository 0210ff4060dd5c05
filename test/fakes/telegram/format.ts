/**
 * What a text, a caption or a keyboard must be to be taken: limits in units of UTF-16 after entities, entities within the
 * text and never inside a surrogate pair, buttons that can work. It stores nothing. Invariant: what passes is exactly what
 * people then see, blank ends taken off as Telegram does.
 */
import type { InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity } from "grammy/types";
import { parseHtml } from "./html.js";
import type { Params } from "./params.js";
import { badRequest } from "./refusal.js";

export interface Formatted {
  text: string;
  entities: MessageEntity[];
}

export const TEXT_LIMIT = 4096;
export const CAPTION_LIMIT = 1024;
/** Further ones are left out without a word. */
const MAX_ENTITIES = 100;
const ENTITY_TYPES: ReadonlySet<string> = new Set([
  ...["mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold", "italic", "underline"],
  ...["strikethrough", "spoiler", "blockquote", "expandable_blockquote", "code", "pre", "text_link", "text_mention"],
  "custom_emoji",
]);

/** The text of a message. Throws `Refusal`. */
export function readText(params: Params, tooLong = "message is too long"): Formatted {
  const read = readFormatted(params, "text", "entities");
  if (read === null || read.text === "") throw badRequest("message text is empty");
  if (read.text.length > TEXT_LIMIT) throw badRequest(tooLong);
  return read;
}

/** The words under a file; null for none. Throws `Refusal`. */
export function readCaption(params: Params): Formatted | null {
  const read = readFormatted(params, "caption", "caption_entities");
  if (read === null || read.text === "") return null;
  if (read.text.length > CAPTION_LIMIT) throw badRequest("message caption is too long");
  return read;
}

export function readFormatted(params: Params, textName: string, entitiesName: string): Formatted | null {
  const text = params.text(textName);
  if (text === null) return null;
  const mode = params.text("parse_mode");
  if (mode !== null && mode !== "HTML") throw badRequest("unsupported parse_mode");
  if (mode === "HTML") return trimmed(parseHtml(text));
  const entities = (params.list(entitiesName) ?? []).map((entity) => checked(entity, text));
  return trimmed({ text, entities: entities.slice(0, MAX_ENTITIES) });
}

function checked(value: unknown, text: string): MessageEntity {
  const entity = (typeof value === "object" ? value : null) as MessageEntity | null;
  if (entity === null) throw badRequest("can't parse entities: expected an Object");
  const { type, offset, length } = entity;
  if (!ENTITY_TYPES.has(type)) throw badRequest(`can't parse MessageEntity: unsupported entity type ${type}`);
  if (!Number.isSafeInteger(offset) || offset < 0) throw badRequest(`entity has incorrect offset ${offset}`);
  if (!Number.isSafeInteger(length) || length <= 0) throw badRequest(`entity has incorrect length ${length}`);
  const end = offset + length;
  const start = `entity beginning at UTF-16 offset ${offset}`;
  if (end > text.length) throw badRequest(`${start} ends after the end of the text at UTF-16 offset ${end}`);
  if (isInsidePair(text, offset)) throw badRequest(`${start} begins in a middle of a UTF-16 symbol`);
  if (isInsidePair(text, end)) throw badRequest(`${start} ends in a middle of a UTF-16 symbol`);
  if (type === "text_link") checkUrl(entity.url);
  return entity;
}

function isInsidePair(text: string, at: number): boolean {
  const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
  return (before & 0xfc00) === 0xd800 && (after & 0xfc00) === 0xdc00;
}

function checkUrl(url: unknown): void {
  if (typeof url !== "string" || url.trim() === "") throw badRequest("can't parse entities: the URL is empty");
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  if (scheme !== undefined && !["http", "https", "tg", "ton", "tonsite", "mailto", "tel"].includes(scheme))
    throw badRequest("unsupported URL protocol");
}

/** Blanks and line feeds at both ends are taken off; at the front only up to the first entity. */
function trimmed({ text, entities }: Formatted): Formatted {
  const end = text.replace(/[ \n]+$/, "").length;
  const firstEntity = Math.min(...entities.map(({ offset }) => offset), end);
  const start = firstEntity - text.slice(0, firstEntity).replace(/^[ \n]+/, "").length;
  const kept = entities
    .map((entity) => ({
      ...entity,
      offset: entity.offset - start,
      length: Math.min(entity.offset + entity.length, end) - entity.offset,
    }))
    .filter(({ length }) => length > 0);
  return { text: text.slice(start, end), entities: kept };
}

/** The buttons under a message; null for none. Throws `Refusal`. */
export function readKeyboard(params: Params): InlineKeyboardMarkup | null {
  const markup = params.object("reply_markup");
  if (markup === null) return null;
  const rows = markup.inline_keyboard;
  if (!Array.isArray(rows)) throw badRequest("object expected as reply markup");
  if (rows.flat().length > 100) throw badRequest("REPLY_MARKUP_TOO_LONG");
  for (const row of rows) {
    if (!Array.isArray(row)) throw badRequest("can't parse inline keyboard button row: expected an Array");
    if (row.length > 8) throw badRequest("BUTTONS_TOO_MUCH");
    for (const button of row) checkButton(button as InlineKeyboardButton);
  }
  const kept = (rows as InlineKeyboardButton[][]).filter((row) => row.length > 0);
  return kept.length === 0 ? null : { inline_keyboard: kept };
}

function checkButton(button: InlineKeyboardButton): void {
  if (typeof button.text !== "string" || button.text.trim() === "")
    throw badRequest("inline keyboard button text must be non-empty");
  if (!button.text.isWellFormed()) throw badRequest("strings must be encoded in UTF-8");
  const kinds = Object.keys(button).filter((key) => !["text", "style", "icon_custom_emoji_id"].includes(key));
  if (kinds.length !== 1) throw badRequest("text buttons are unallowed in the inline keyboard");
  if (!("callback_data" in button)) return;
  const size = Buffer.byteLength(String(button.callback_data));
  if (size < 1 || size > 64) throw badRequest("BUTTON_DATA_INVALID");
}

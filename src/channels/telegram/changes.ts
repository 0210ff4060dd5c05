/**
 * How a part that Telegram refuses as it is can be said in another way. Pure; what was refused is told by `refusal`.
 * Invariant: each change takes away what was objected to and returns null when there is nothing left to take, so no part
 * is ever sent twice unchanged and every chain of changes ends.
 */
import type { MediaRef } from "../../bus/messages.js";
import { type Formatted, plain, splitFormatted } from "../text/formatted.js";
import {
  type AlbumPart,
  type FilePart,
  NO_WORDS,
  TEXT_LIMIT,
  type TelegramPart,
  type TextPart,
  unsentText,
} from "./part.js";
import { isVisible } from "./render.js";

/** Says the same in another way; null: it cannot. */
export type Change = (part: TelegramPart) => TelegramPart[] | null;

/** Whatever the formatting was, the words stay. */
export const withoutEntities: Change = (part) => {
  const formatted = part.kind === "text" ? part.text : part.caption;
  if (formatted === null || formatted.entities.length === 0) return null;
  return [withWords(part, plain(formatted.text))];
};

export const withoutThread: Change = (part) => {
  const { thread, ...rest } = part;
  return thread === undefined ? null : [rest];
};

export const withoutReply: Change = (part) => {
  const { replyTo, ...rest } = part;
  return replyTo === undefined ? null : [rest];
};

/** What buttons say becomes words, so that the choice is not lost. */
export const withoutButtons: Change = (part) => {
  if (part.kind === "album" || part.buttons.length === 0) return null;
  const labels = part.buttons.flatMap((row) => row.map(({ label }) => `• ${label}`)).join("\n");
  return [{ ...part, buttons: [] }, textAfter(part, plain(labels))];
};

/** Half as long; of a file the words go on their own. */
export const shorter: Change = (part) => {
  if (part.kind !== "text") {
    if (part.caption === null) return null;
    const words = { ...textAfter(part, part.caption), ...(part.kind === "file" ? { buttons: part.buttons } : {}) };
    return [part.kind === "file" ? { ...part, caption: null, buttons: [] } : { ...part, caption: null }, words];
  }
  const length = Math.min(part.text.text.length, TEXT_LIMIT);
  const halves = splitFormatted(part.text, Math.ceil(length / 2));
  if (halves.length < 2) return null;
  return halves.map((text, at) => ({
    ...(at === 0 ? part : textAfter(part, text)),
    text,
    buttons: at === halves.length - 1 ? part.buttons : [],
  }));
};

/** Telegram sees nothing in words that we took for visible. */
export const visible: Change = (part) =>
  part.kind !== "text" || part.text.text === NO_WORDS ? null : [{ ...part, text: plain(NO_WORDS) }];

/** A group that became a supergroup has another id. */
export function inChat(chat: number): Change {
  return (part) => (part.chat === chat ? null : [{ ...part, chat }]);
}

/** An album as single files, a picture as a document, a document as a line that says so; the words always stay. */
export const otherFile: Change = (part) => {
  if (part.kind === "text") return null;
  if (part.kind === "album") return singles(part);
  return part.as === "document" ? unsent(part) : [{ ...part, as: "document" }];
};

/** A file that cannot be read is not there to be sent in any way. */
export const unsent: Change = (part) => {
  if (part.kind === "text") return null;
  if (part.kind === "album") return singles(part);
  return [unsentPart(part, part.file)];
};

function singles({ kind: _, files, caption, ...place }: AlbumPart): TelegramPart[] {
  return files.map(({ as, file }, at) => {
    const where = at === 0 ? place : withoutQuote(place);
    return { kind: "file", as, file, caption: at === 0 ? caption : null, buttons: [], ...where };
  });
}

function unsentPart({ kind: _, as: __, file: ___, caption, ...rest }: FilePart, file: MediaRef): TextPart {
  const note = unsentText(file);
  if (caption === null || !isVisible(caption.text)) return { kind: "text", ...rest, text: plain(note) };
  return { kind: "text", ...rest, text: { ...caption, text: `${caption.text}\n\n${note}` } };
}

function textAfter(part: TelegramPart, text: Formatted): TextPart {
  const { chat, thread } = part;
  return { kind: "text", chat, ...(thread === undefined ? {} : { thread }), text, buttons: [] };
}

function withWords(part: TelegramPart, words: Formatted): TelegramPart {
  return part.kind === "text" ? { ...part, text: words } : { ...part, caption: words };
}

function withoutQuote<P extends { replyTo?: number }>({ replyTo: _, ...place }: P): Omit<P, "replyTo"> {
  return place;
}

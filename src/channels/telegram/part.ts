/**
 * What one call to Telegram shows: a text, a file or an album, and where. Types and the numbers they obey; no call is
 * made here. Invariant: a part is a plain value, so the same message always has the same parts.
 */
import type { Button, MediaRef } from "../../bus/messages.js";
import type { Formatted } from "../text/formatted.js";

/** Units of UTF-16 that a message may have. */
export const TEXT_LIMIT = 4096;
/** Units of UTF-16 that the words under a file may have. */
export const CAPTION_LIMIT = 1024;
/** Files of one album. */
export const ALBUM_LIMIT = 10;

/** What stands for an answer without words. */
export const NO_WORDS = "(no answer)";

/** Where a part goes. */
interface Place {
  /** A number wherever it is one; the name of a public chat else. */
  chat: number | string;
  /** Never that of "General", which Telegram refuses on sends. */
  thread?: number;
  /** The message it quotes. */
  replyTo?: number;
}

export interface TextPart extends Place {
  kind: "text";
  text: Formatted;
  buttons: Button[][];
}

export type FileKind = "photo" | "video" | "audio" | "voice" | "document";

export interface FilePart extends Place {
  kind: "file";
  as: FileKind;
  file: MediaRef;
  caption: Formatted | null;
  buttons: Button[][];
}

/** Photos and videos, or audio, or documents; 2 to 10. It can have no buttons. */
export interface AlbumPart extends Place {
  kind: "album";
  files: Array<{ as: Exclude<FileKind, "voice">; file: MediaRef }>;
  caption: Formatted | null;
}

export type TelegramPart = TextPart | FilePart | AlbumPart;

/** What of the configuration shapes what goes out. */
export interface TelegramOutletConfig {
  readonly replyQuotes: boolean;
  readonly streaming: boolean;
  readonly drafts: boolean;
  readonly reaction: string | null;
  readonly editIntervalMs: number;
}

/** A chat's or message's id as Telegram's API takes it; names stay names. */
export function chatOf(chatId: string): number | string {
  return idOf(chatId) ?? chatId;
}

/** A numeric id, or undefined where the text is none. */
export function idOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^-?\d{1,16}$/.test(text)) return undefined;
  const id = Number(text);
  return Number.isSafeInteger(id) && id !== 0 ? id : undefined;
}

/** Groups, supergroups and channels have negative ids, and public names. */
export function isGroup(chat: number | string): boolean {
  return typeof chat === "string" || chat < 0;
}

/** What stands where a file could not be sent. */
export function unsentText(file: MediaRef, why?: string): string {
  return `[could not send: ${file.name}${why === undefined ? "" : ` (${why})`}]`;
}

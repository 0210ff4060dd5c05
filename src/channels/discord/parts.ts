/**
 * Outbound message → the messages that Discord shows: text in pieces, files, buttons. Pure. Invariant: every part can be
 * sent, and whatever cannot be shown (a file too large, a button too many) is said in words instead of left out.
 */
import type { Button, MediaRef, OutboundMessage } from "../../bus/messages.js";
import type { SendRequest } from "../channel.js";
import { splitMarkdown } from "../text/split.js";
import { DISCORD_LIMITS } from "./wire.js";

/** What one message shows. */
export interface DiscordPart {
  content: string;
  files: readonly MediaRef[];
  /** Rows of buttons. */
  buttons: ReadonlyArray<readonly Button[]>;
  /** Whether it quotes the message that it answers. */
  isReply: boolean;
  /** `parent`: in the channel of a thread that is gone. */
  place: "here" | "parent";
  /** As plain as it gets: no other form of it can be tried. */
  isPlain: boolean;
}

export type DiscordRequest = SendRequest<DiscordPart>;

/** Shown where there is nothing to show. */
const NOTHING = "(no text)";
/** Units of a piece that is cut again after a refusal. */
const CAUTIOUS_LIMIT = 1500;
const { content: LIMIT, lines: MAX_LINES, filesPerMessage, fileBytes } = DISCORD_LIMITS;

/** The messages of an outbound message; at least one. */
export function partsOf(message: OutboundMessage): DiscordPart[] {
  const { rows, left } = rowsOf(message.buttons);
  const small = message.media.filter(({ bytes }) => bytes <= fileBytes);
  const large = message.media.filter(({ bytes }) => bytes > fileBytes);
  const notes = [
    ...large.map((file) => marker(file, "too large for Discord")),
    ...left.map(({ label }) => `• ${label}`),
  ];
  const text = [message.content, ...notes].filter((piece) => piece.trim() !== "").join("\n\n");
  const texts = textParts(notes.length === 0 ? message.content : text, LIMIT);
  const groups = groupsOf(small);
  // Files cannot be put into a message that shows a stream already.
  const isStreamed = message.event.type === "final" && message.event.streamId !== null;
  const last = texts.at(-1);
  const [first = [], ...others] = groups;
  if (last !== undefined && !isStreamed) last.files = first;
  const apart = last !== undefined && !isStreamed ? others : groups;
  const parts = [...texts, ...apart.map((files) => blank({ files }))];
  if (parts.length === 0) parts.push(blank({ content: NOTHING }));
  const at = Math.max(0, texts.length - 1);
  return parts.map((part, index) => ({
    ...part,
    buttons: index === at ? rows : [],
    isReply: index === 0 && message.replyTo !== undefined,
  }));
}

type Draft = { -readonly [Key in keyof DiscordPart]: DiscordPart[Key] };

function blank(given: Partial<DiscordPart>): Draft {
  return { content: "", files: [], buttons: [], isReply: false, place: "here", isPlain: false, ...given };
}

function textParts(text: string, limit: number): Draft[] {
  return splitMarkdown(text, { limit, maxLines: MAX_LINES }).map((content) => blank({ content }));
}

/** As many files as a message takes, by number and by weight. */
function groupsOf(files: readonly MediaRef[]): MediaRef[][] {
  const groups: MediaRef[][] = [];
  let bytes = 0;
  for (const file of files) {
    const group = groups.at(-1);
    if (group === undefined || group.length >= filesPerMessage || bytes + file.bytes > fileBytes) {
      groups.push([file]);
      bytes = file.bytes;
    } else {
      group.push(file);
      bytes += file.bytes;
    }
  }
  return groups;
}

/** Rows that Discord takes, and the buttons for which there is no room. */
function rowsOf(buttons: ReadonlyArray<readonly Button[]>): { rows: Button[][]; left: Button[] } {
  const { buttonRows, buttonsPerRow } = DISCORD_LIMITS;
  const rows = buttons.flatMap((row) =>
    Array.from({ length: Math.ceil(row.length / buttonsPerRow) }, (_, at) =>
      row.slice(at * buttonsPerRow, (at + 1) * buttonsPerRow),
    ),
  );
  return { rows: rows.slice(0, buttonRows), left: rows.slice(buttonRows).flat() };
}

/** What stands for a file that is not shown. */
export function marker({ name, bytes }: Pick<MediaRef, "name" | "bytes">, why: string): string {
  const size = bytes >= 1_000_000 ? `${(bytes / 1_000_000).toFixed(1)} MB` : `${Math.ceil(bytes / 1000)} kB`;
  return `[file ${name} (${size}): ${why}]`;
}

/** The same with words instead of its files. */
export function withoutFiles(part: DiscordPart, why: string): DiscordPart[] {
  const notes = part.files.map((file) => marker(file, why));
  const text = [part.content, ...notes].filter((piece) => piece !== "").join("\n");
  return spread(part, textParts(text, LIMIT), { isPlain: part.isPlain });
}

/** The same in the simplest form there is: shorter pieces, no quote, buttons as text. Files stay with the last piece. */
export function plainer(part: DiscordPart): DiscordPart[] {
  const labels = part.buttons.flat().map(({ label }) => `• ${label}`);
  const text = [part.content, ...labels].filter((piece) => piece.trim() !== "").join("\n");
  const texts = textParts(text, CAUTIOUS_LIMIT);
  const last = texts.at(-1);
  if (last !== undefined) last.files = part.files;
  const pieces = last === undefined && part.files.length > 0 ? [blank({ files: part.files })] : texts;
  return spread({ ...part, isReply: false, buttons: [] }, pieces, { isPlain: true });
}

function spread(part: DiscordPart, pieces: Draft[], { isPlain }: { isPlain: boolean }): DiscordPart[] {
  const { place, isReply, buttons } = part;
  const all = pieces.length === 0 ? [blank({ content: NOTHING })] : pieces;
  return all.map((piece, index) => ({
    ...piece,
    place,
    isPlain,
    isReply: isReply && index === 0,
    buttons: index === all.length - 1 ? buttons : [],
  }));
}

/**
 * An outbound message → the calls that show it; pure. Invariant: at least one part, each within Telegram's limits, the
 * texts joined are the rendered answer, and the same message always has the same parts.
 *
 * Files stand first, with the words under them where they fit. After a stream the words stand first: they are on the
 * screen already, and the last edit must find its message again.
 */
import type { Button, OutboundMessage } from "../../bus/messages.js";
import { plain, splitFormatted } from "../text/formatted.js";
import { groupFiles } from "./files.js";
import {
  CAPTION_LIMIT,
  chatOf,
  type FilePart,
  idOf,
  NO_WORDS,
  TEXT_LIMIT,
  type TelegramOutletConfig,
  type TelegramPart,
  type TextPart,
  unsentText,
} from "./part.js";
import { isVisible, wordsOf } from "./render.js";

/** The thread "General" of a forum: sends must not name it, typing must. */
const GENERAL = 1;

/** What stands for a stream that has no words yet. */
const NO_WORDS_YET = "…";
/** What carries buttons that have nothing else to stand on. */
const ONLY_BUTTONS = "👇";

type Bare<P extends TelegramPart> = Omit<P, "chat" | "thread" | "replyTo">;
type BarePart = Bare<TextPart> | Bare<FilePart> | Bare<Extract<TelegramPart, { kind: "album" }>>;

export function partsOf(message: OutboundMessage, config: Pick<TelegramOutletConfig, "replyQuotes">): TelegramPart[] {
  const { event, buttons } = message;
  const hasButtons = buttons.some((row) => row.length > 0);
  const words = wordsOf(message.content);
  const { groups, refused } = groupFiles(message.media);
  const isWhole = event.type === "notice" || (event.type === "final" && event.streamId === null);
  const files = groups.map(filePartOf);
  const first = files[0];
  const fits = words !== null && words.text.length <= CAPTION_LIMIT && !(hasButtons && files.every(isAlbum));
  const isCaption = isWhole && fits && first !== undefined;
  if (isCaption) first.caption = words;
  const texts = isCaption || words === null ? [] : splitFormatted(words, TEXT_LIMIT).map(textPartOf);
  const notes = refused.map(({ file, why }) => textPartOf(plain(unsentText(file, why))));
  const parts: BarePart[] = isWhole ? [...files, ...texts, ...notes] : [...texts, ...files, ...notes];
  if (parts.length === 0) parts.push(textPartOf(plain(isWhole || event.type === "final" ? NO_WORDS : NO_WORDS_YET)));
  return placed(hasButtons ? withButtons(parts, buttons) : parts, message, config);
}

function textPartOf(text: TextPart["text"]): Bare<TextPart> {
  return { kind: "text", text, buttons: [] };
}

function filePartOf(group: ReturnType<typeof groupFiles>["groups"][number]): Exclude<BarePart, Bare<TextPart>> {
  const [only, another] = group;
  if (only !== undefined && another === undefined) return { kind: "file", ...only, caption: null, buttons: [] };
  const files = group.flatMap(({ as, file }) => (as === "voice" ? [] : [{ as, file }]));
  return { kind: "album", files, caption: null };
}

function isAlbum({ kind }: BarePart): boolean {
  return kind === "album";
}

/** Buttons stand under the last part that can have some. */
function withButtons(parts: readonly BarePart[], buttons: Button[][]): BarePart[] {
  const last = parts.findLastIndex((part) => !isAlbum(part));
  if (last === -1) return [...parts, { ...textPartOf(plain(ONLY_BUTTONS)), buttons }];
  return parts.map((part, at) => (at === last && part.kind !== "album" ? { ...part, buttons } : part));
}

function placed(
  parts: readonly BarePart[],
  message: OutboundMessage,
  config: Pick<TelegramOutletConfig, "replyQuotes">,
): TelegramPart[] {
  const thread = idOf(message.threadId);
  const replyTo = config.replyQuotes ? idOf(message.replyTo) : undefined;
  const place = { chat: chatOf(message.chatId), ...(thread === undefined || thread === GENERAL ? {} : { thread }) };
  const seen = parts.filter((part) => part.kind !== "text" || isVisible(part.text.text));
  return seen.map((part, at) => ({ ...part, ...place, ...(at > 0 || replyTo === undefined ? {} : { replyTo }) }));
}

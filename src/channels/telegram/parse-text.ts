/**
 * A message in words: its text, where it was forwarded from, and what else it carries that can be said. Pure; files are not
 * its matter. Invariant: nothing that a person can see in the message is left out in silence.
 */
import { filesOf } from "./parse-files.js";
import type { Cargo, Chat, Message, Origin, PlainMessage, User } from "./wire.js";

/** Longest quoted text, UTF-16 units. */
const MAX_QUOTE = 4_000;

/** Text and caption with what else can be said; empty for files alone and for events that nobody said. */
export function textOf(message: PlainMessage): string {
  const origin = message.forward_origin === undefined ? [] : [`[forwarded from ${originName(message.forward_origin)}]`];
  const own = [message.text, message.caption].filter((part) => part !== undefined);
  const said = [...own, ...cargoLines(message)];
  return said.length === 0 && filesOf(message).length === 0 ? "" : [...origin, ...said].join("\n");
}

function cargoLines(cargo: Cargo): string[] {
  const { sticker, location, venue, contact, poll, dice, checklist, game } = cargo;
  return [
    ...(sticker === undefined ? [] : [`[sticker: ${sticker.emoji ?? sticker.set_name ?? "without a name"}]`]),
    ...(venue === undefined
      ? []
      : [`[venue: ${venue.title}, ${venue.address}, ${venue.location.latitude}, ${venue.location.longitude}]`]),
    ...(location === undefined || venue !== undefined
      ? []
      : [`[location: ${location.latitude}, ${location.longitude}]`]),
    ...(contact === undefined ? [] : [`[contact: ${contactText(contact)}]`]),
    ...(poll === undefined ? [] : [`[poll: ${poll.question}]`, ...poll.options.map(({ text }) => `- ${text}`)]),
    ...(dice === undefined ? [] : [`[dice: ${dice.emoji} ${dice.value}]`]),
    ...(checklist === undefined
      ? []
      : [`[checklist: ${checklist.title}]`, ...checklist.tasks.map(({ text }) => `- ${text}`)]),
    ...(game === undefined ? [] : [`[game: ${game.title}]`]),
    ...(["story", "invoice", "paid_media", "giveaway"] as const)
      .filter((kind) => cargo[kind] !== undefined)
      .map((kind) => `[${kind.replace("_", " ")}: its content cannot be read here]`),
  ];
}

function contactText({ first_name, last_name, phone_number }: NonNullable<Cargo["contact"]>): string {
  const name = [first_name, last_name].filter((part) => part !== undefined && part !== "").join(" ");
  return `${name}, ${phone_number}`;
}

function userName({ username, first_name }: User): string {
  return username === undefined ? first_name : `@${username}`;
}

function chatName({ username, title }: Chat): string {
  return username === undefined ? (title ?? "a chat") : `@${username}`;
}

function originName({ sender_user, sender_user_name, sender_chat, chat }: Origin): string {
  if (sender_user !== undefined) return userName(sender_user);
  const from = sender_chat ?? chat;
  if (from !== undefined) return chatName(from);
  return sender_user_name ?? "somebody";
}

/** The message of the same chat that was answered; null for none, and for the message that merely began a topic. */
export function answeredOf(message: Message): PlainMessage | null {
  const answered = message.reply_to_message;
  if (answered === undefined || answered.forum_topic_created !== undefined) return null;
  const isTopicRoot = message.is_topic_message === true && answered.message_id === message.message_thread_id;
  return isTopicRoot ? null : answered;
}

/** The quoted words with who said them, and what carries the quoted files; null when nothing was quoted. */
export function quoteOf(message: Message, botId: number): { text: string; cargo: Cargo } | null {
  const answered = answeredOf(message);
  const foreign = message.external_reply;
  const chosen = message.quote?.text;
  if (answered !== null) {
    const words =
      chosen ?? ([textOf(answered), ...fileWords(answered)].filter((part) => part !== "").join("\n") || "…");
    return { text: cut(`${authorOf(answered, botId)}: ${words}`), cargo: answered };
  }
  if (foreign === undefined) return chosen === undefined ? null : { text: cut(chosen), cargo: {} };
  const who = foreign.origin === undefined ? "somebody" : originName(foreign.origin);
  const said = [...(chosen === undefined ? [] : [chosen]), ...cargoLines(foreign), ...fileWords(foreign)];
  return { text: cut(`${who}, in another chat: ${said.join("\n") || "…"}`), cargo: foreign };
}

function fileWords(cargo: Cargo): string[] {
  return filesOf(cargo).map(({ what }) => `[${what}]`);
}

function authorOf({ from, sender_chat }: PlainMessage, botId: number): string {
  if (from?.id === botId) return "you";
  if (sender_chat !== undefined) return chatName(sender_chat);
  return from === undefined ? "somebody" : userName(from);
}

function cut(text: string): string {
  // A pair that was cut through is no text any more.
  return text.length <= MAX_QUOTE ? text : `${text.slice(0, MAX_QUOTE).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

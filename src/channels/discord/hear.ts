/**
 * Discord message → who knocks, and what they say; pure, and nothing where nobody speaks to anybody (system messages, the
 * bot itself, previews of links). Invariant: the place of the answer is fixed here, from the message alone.
 */
import type { InboundMessage, Route, SessionKey } from "../../bus/messages.js";
import { asSessionKey } from "../../bus/messages.js";
import type { Knock } from "../channel.js";
import { contentOf, forwardedText, nameOf } from "./content.js";
import { DISCORD } from "./name.js";
import { isWritten, VOICE_FLAG, type WireAttachment, type WireMessage, type WireUser } from "./wire.js";

/** Where something was said. */
export type Place =
  | { kind: "direct" }
  | { kind: "channel"; guildId: string }
  | { kind: "thread"; guildId: string; parentId: string };

/** The bot, as far as reading needs it. */
export interface Self {
  id: string;
  account: string;
  isStreaming: boolean;
  lateEdits: "ignore" | "answer";
  /** The role that Discord made for the bot in this guild. */
  roleIn(guildId: string): string | undefined;
}

/** An inbound message before anybody was admitted: without files and without what admission says. */
export type Spoken = Omit<InboundMessage, "media" | "isOwner" | "replyTo">;

export interface WireFile extends WireAttachment {
  isVoice: boolean;
}

export interface Heard {
  knock: Knock;
  spoken: Spoken;
  files: readonly WireFile[];
  quote: { text: string; files: readonly WireFile[] } | null;
  /** Whether it came without any content although it should have some: the message content intent is missing. */
  isBlank: boolean;
}

const EMPTY = "[empty message]";
const MOST_QUOTED = 4000;

/** What was said, or null where nothing was. */
export function hear(message: WireMessage, place: Place, self: Self): Heard | null {
  const { author, type } = message;
  if (author.id === self.id || !isWritten(type)) return null;
  const forwards = (message.message_snapshots ?? []).map(({ message: body }) => body);
  const text = [contentOf(message, self.id), ...forwards.map((body) => forwardedText(body, self.id))];
  const files = [message, ...forwards].flatMap((body) => filesOf(body, message.flags));
  const content = text.filter((piece) => piece !== "").join("\n\n");
  const route = routeOf(message.channel_id, place, { self, messageId: message.id });
  return {
    knock: knockOf(message, place, { self, route }),
    spoken: {
      ...spokenOf(message, self),
      ...whereOf(message.channel_id, place),
      route,
      content: content || (files.length > 0 ? "" : EMPTY),
    },
    files,
    quote: quoteOf(message, self),
    isBlank: content === "" && files.length === 0 && isBare(message),
  };
}

function spokenOf(message: WireMessage, { lateEdits }: Self): Omit<Spoken, "route" | "content" | "chatId"> {
  const { id, author, edited_timestamp: edited } = message;
  const common = {
    id: idOf(message),
    channel: DISCORD,
    senderId: author.id,
    role: "user",
    metadata: { senderName: nameOf(author) },
  } as const;
  if (edited === null || edited === undefined)
    return { ...common, kind: "message", timestamp: instantOf(message.timestamp) };
  const edits = { id, ifAnswered: lateEdits };
  return { ...common, kind: "edit", timestamp: instantOf(edited), edits };
}

function instantOf(text: string): string {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? new Date(0).toISOString() : at.toISOString();
}

/** The place in the words of the bus: a thread is a part of its channel, with a session of its own. */
export function whereOf(
  channelId: string,
  place: Place,
): { chatId: string; threadId?: string; sessionKeyOverride?: SessionKey } {
  if (place.kind !== "thread") return { chatId: channelId };
  const sessionKeyOverride = asSessionKey(`${DISCORD}:${place.parentId}:thread:${channelId}`);
  return { chatId: place.parentId, threadId: channelId, sessionKeyOverride };
}

export function routeOf(
  channelId: string,
  place: Place,
  { self, messageId }: { self: Pick<Self, "account" | "isStreaming">; messageId: string },
): Route {
  const { sessionKeyOverride: _, ...where } = whereOf(channelId, place);
  return { via: "outbox", account: self.account, channel: DISCORD, ...where, messageId, isStreaming: self.isStreaming };
}

/** Names under which a list of chats may know a place. */
export function chatIdsOf(channelId: string, place: Place): string[] {
  if (place.kind === "direct") return [channelId];
  const parent = place.kind === "thread" ? [place.parentId] : [];
  return [channelId, ...parent, place.guildId, `guild:${place.guildId}`];
}

export function aliasesOf({ username }: WireUser): string[] {
  return username === "" ? [] : [username];
}

function knockOf(message: WireMessage, place: Place, { self, route }: { self: Self; route: Route }): Knock {
  const { author, webhook_id: hook, channel_id: channelId, referenced_message: quoted } = message;
  const scene: Knock["scene"] =
    place.kind === "direct"
      ? { kind: "direct" }
      : {
          kind: "group",
          chatIds: chatIdsOf(channelId, place),
          isMentioned: isMentioned(message, place.guildId, self),
          isReplyToBot: quoted?.author.id === self.id,
          isCommand: false,
        };
  const isBot = author.bot === true || typeof hook === "string";
  return {
    senderId: author.id,
    aliases: aliasesOf(author),
    author: isBot ? "bot" : "person",
    scene,
    // An edit that is answered is as good as another message; one that changes a question is not.
    messageId: self.lateEdits === "answer" ? idOf(message) : message.id,
    route,
  };
}

/** Each edit of a message is something said anew. */
function idOf({ id, edited_timestamp: edited }: WireMessage): string {
  return typeof edited === "string" ? `${id}:${edited}` : id;
}

function isMentioned({ mentions, mention_roles: roles }: WireMessage, guildId: string, self: Self): boolean {
  const role = self.roleIn(guildId);
  return mentions.some(({ id }) => id === self.id) || (role !== undefined && roles.includes(role));
}

function filesOf({ attachments }: { attachments: readonly WireAttachment[] }, flags: number): WireFile[] {
  const isVoice = (flags & VOICE_FLAG) !== 0;
  return attachments.map((attachment) => ({ ...attachment, isVoice }));
}

function quoteOf(
  { referenced_message: quoted, message_reference: reference }: WireMessage,
  self: Self,
): Heard["quote"] {
  if (quoted === null || quoted === undefined || reference?.type === 1) return null;
  const text = contentOf(quoted, self.id);
  const cut = text.length > MOST_QUOTED ? `${text.slice(0, MOST_QUOTED).toWellFormed()}…` : text;
  return { text: `${nameOf(quoted.author)}: ${cut}`, files: filesOf(quoted, quoted.flags) };
}

/** A message that shows nothing at all cannot be sent by a person. */
function isBare(message: WireMessage): boolean {
  const { content, embeds, poll, author, sticker_items: stickers } = message;
  const isEmpty = content === "" && embeds.length === 0 && (stickers ?? []).length === 0;
  return isEmpty && (poll === undefined || poll === null) && author.bot !== true;
}

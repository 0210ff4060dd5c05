/**
 * From an update of the platform to what somebody wants to say, or to why nobody does. Pure: it fetches, answers and stores
 * nothing. Invariants: any JSON gives an answer; the place of the answer (chat, topic, message) is fixed here; whatever is
 * repeated gets the id it had before.
 */
import { asSessionKey, type InboundMessage, type Route, type SessionKey } from "../../bus/messages.js";
import type { Knock } from "../channel.js";
import { isMentioned, isReplyTo, type Me, readCommand } from "./parse-address.js";
import { type FileRequest, filesOf } from "./parse-files.js";
import { quoteOf, textOf } from "./parse-text.js";
import { TELEGRAM } from "./settings.js";
import { type Chat, type Message, type Press, type User, update as updateSchema } from "./wire.js";

/** What somebody wants to say. */
export interface Saying {
  kind: "saying";
  knock: Knock;
  /** Without what only the door or the network can add. */
  message: Omit<InboundMessage, "media" | "replyTo" | "isOwner">;
  files: FileRequest[];
  quote: { text: string; files: FileRequest[] } | null;
  /** Names the album that it is a part of. */
  album: string | null;
  /** A button that was pressed, to be acknowledged. */
  press: { queryId: string; chatId: number; messageId: number } | null;
}

export type Parsed =
  | Saying
  /** `channelId`: of a channel whose posts are not read. */
  | { kind: "ignored"; why: string; channelId: string | null }
  /** A group got another id. */
  | { kind: "moved"; fromChatId: string; toChatId: string }
  | { kind: "malformed"; why: string };

export interface ParseContext {
  account: string;
  me: Me;
  isStreaming: boolean;
  lateEdits: "ignore" | "answer";
  /** ISO 8601, for what carries no time. */
  now: string;
}

/** Parts of an album come one by one; the platform takes less than this between two of them. */
const ALBUM_GATHER_MS = 1_500;
/** The topic that every forum has, whose messages name no topic. */
const GENERAL_TOPIC = "1";

const ignored = (why: string): Parsed => ({ kind: "ignored", why, channelId: null });

/** Reads one update. Never throws. */
export function parseUpdate(json: unknown, context: ParseContext): Parsed {
  const read = updateSchema.safeParse(json);
  if (!read.success) return { kind: "malformed", why: whereOf(read.error.issues) };
  const { message, edited_message: edited, callback_query: press, channel_post: post } = read.data;
  if (message !== undefined) return parseMessage(message, null, context);
  if (edited !== undefined) return parseEdit(edited, read.data.update_id, context);
  if (press !== undefined) return parsePress(press, context);
  if (post !== undefined) return { kind: "ignored", why: "posts of channels", channelId: String(post.chat.id) };
  return ignored("a kind of update that is not read");
}

/** Paths only: values are what people wrote. */
function whereOf(issues: ReadonlyArray<{ path: readonly PropertyKey[] }>): string {
  return issues
    .slice(0, 3)
    .map(({ path }) => path.map(String).join(".") || "the update")
    .join(", ");
}

function parseEdit(message: Message, updateId: number, context: ParseContext): Parsed {
  // A live location is "edited" each time that somebody moves.
  if (message.location !== undefined) return ignored("a location that moves");
  // Two edits may fall into one second.
  return parseMessage(message, `${message.message_id}:${message.edit_date ?? message.date}:${updateId}`, context);
}

function parseMessage(message: Message, editId: string | null, context: ParseContext): Parsed {
  const { chat } = message;
  if (message.migrate_to_chat_id !== undefined)
    return { kind: "moved", fromChatId: String(chat.id), toChatId: String(message.migrate_to_chat_id) };
  if (chat.type === "channel") return ignored("posts of channels");
  if (message.is_automatic_forward === true) return ignored("a post of the group's channel");
  const speaker = speakerOf(message);
  if (speaker === null) return ignored("nobody said it");
  if (message.from?.id === context.me.id) return ignored("the bot's own message");
  const text = textOf(message);
  if (text === "" && filesOf(message).length === 0) return ignored("an event of the chat");
  const command = readCommand(text, context.me);
  if (command.kind === "foreign" && chat.type !== "private") return ignored("a command of another bot");
  return sayingOf(
    { message, editId, speaker, text, command: command.kind === "own" ? command.content : null },
    context,
  );
}

interface Said {
  message: Message;
  /** Null for what is no edit. */
  editId: string | null;
  speaker: Speaker;
  text: string;
  /** The text as a command of ours; null when it is none. */
  command: string | null;
}

function sayingOf({ message, editId, speaker, text, command }: Said, context: ParseContext): Saying {
  const { me, lateEdits } = context;
  const id = String(message.message_id);
  const place = placeOf(message, context, id);
  const quote = command === null ? quoteOf(message, me.id) : null;
  const addressed = {
    isMentioned: isMentioned(message, me),
    isReplyToBot: isReplyTo(message, me),
    isCommand: command !== null,
  };
  const seconds = editId === null ? message.date : (message.edit_date ?? message.date);
  const album = message.media_group_id ?? null;
  return {
    kind: "saying",
    knock: { ...speaker, scene: sceneOf(message.chat, addressed), messageId: id, route: place.route },
    message: {
      ...place,
      ...(editId === null
        ? { id, kind: "message" }
        : { id: editId, kind: "edit", edits: { id, ifAnswered: lateEdits } }),
      senderId: speaker.senderId,
      content: command ?? text,
      timestamp: new Date(seconds * 1000).toISOString(),
      ...(album === null || editId !== null ? {} : { gatherMs: ALBUM_GATHER_MS }),
      role: "user",
      metadata: {},
    },
    files: filesOf(message),
    quote: quote === null ? null : { text: quote.text, files: filesOf(quote.cargo) },
    album: album === null ? null : `${message.chat.id}:${album}`,
    press: null,
  };
}

function parsePress({ id, from, message, data }: Press, context: ParseContext): Parsed {
  if (message === undefined || data === undefined) return ignored("a press of a button that is not ours");
  const { chat, message_id: messageId } = message;
  const speaker = personOf(from);
  const place = placeOf(message, context, String(messageId));
  const scene = sceneOf(chat, { isMentioned: true, isReplyToBot: true, isCommand: false });
  return {
    kind: "saying",
    knock: { ...speaker, scene, messageId: id, route: place.route },
    message: {
      ...place,
      // Two quick presses of one button are two queries, and mean one thing.
      id: `${messageId}:${data}`,
      kind: "callback",
      senderId: speaker.senderId,
      content: data,
      timestamp: context.now,
      role: "user",
      metadata: {},
    },
    files: [],
    quote: null,
    album: null,
    press: { queryId: id, chatId: chat.id, messageId },
  };
}

function sceneOf(
  chat: Chat,
  addressed: { isMentioned: boolean; isReplyToBot: boolean; isCommand: boolean },
): Knock["scene"] {
  return chat.type === "private" ? { kind: "direct" } : { kind: "group", chatIds: [String(chat.id)], ...addressed };
}

type Speaker = Pick<Knock, "senderId" | "aliases" | "author">;

function personOf({ id, username, is_bot: isBot }: User): Speaker {
  return { senderId: String(id), aliases: username === undefined ? [] : [username], author: isBot ? "bot" : "person" };
}

/** Who speaks: a person, a bot, or a chat in whose name somebody does. */
function speakerOf({ from, sender_chat: as }: Message): Speaker | null {
  if (as === undefined) return from === undefined ? null : personOf(from);
  return { senderId: String(as.id), aliases: as.username === undefined ? [] : [as.username], author: "person" };
}

interface Place {
  channel: string;
  chatId: string;
  threadId?: string;
  sessionKeyOverride?: SessionKey;
  route: Route;
}

interface Placed {
  chat: Chat;
  message_thread_id?: number | undefined;
  is_topic_message?: boolean | undefined;
}

/** Only what says so is in a topic: chains of answers carry a thread id, too. */
function placeOf(message: Placed, { account, isStreaming }: ParseContext, messageId: string): Place {
  const { chat, message_thread_id: thread, is_topic_message: isInTopic } = message;
  const chatId = String(chat.id);
  const topic = isInTopic === true && thread !== undefined ? String(thread) : null;
  const threadId = topic ?? (chat.is_forum === true && chat.type !== "private" ? GENERAL_TOPIC : null);
  const where = { channel: TELEGRAM, chatId, ...(threadId === null ? {} : { threadId }) };
  return {
    ...where,
    ...(topic === null || topic === GENERAL_TOPIC
      ? {}
      : { sessionKeyOverride: asSessionKey(`${TELEGRAM}:${chatId}:topic:${topic}`) }),
    route: { via: "outbox", account, ...where, messageId, isStreaming },
  };
}

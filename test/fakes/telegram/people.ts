/**
 * What people and other bots do on the fake Telegram: say, answer, edit, send files, press, block. They may do everything
 * that Telegram's own apps would let them do, and an impossible act throws. Invariant: mentions and commands become entities
 * by themselves, as they do in the apps.
 */
import { randomInt } from "node:crypto";
import type { ChatMember, Message, MessageEntity, User } from "grammy/types";
import { withoutReply } from "./call.js";
import { carried, type MediaKind } from "./methods-media.js";
import type { Place, Post, Standing, Topic } from "./place.js";
import type { Updates } from "./updates.js";
import type { PressState, World } from "./world.js";

/** What goes along with a message. */
export interface Extras {
  topic?: Topic;
  replyTo?: { message_id: number };
  /** The chosen words of what is answered. */
  quote?: string;
  /** Besides mentions and commands. */
  entities?: MessageEntity[];
  /** Anything else that the message has. */
  fields?: Partial<Message>;
}

/** A file that somebody sends. */
export interface Gift {
  kind: MediaKind;
  bytes: Buffer;
  name?: string;
  /** What its sender's app says it is. */
  mime?: string;
  /** What Telegram says its size is. */
  announced?: number;
  caption?: string;
}

/** An update and the message in it. */
export interface Said {
  message_id: number;
  updateId: number;
  chat: Place;
}

export interface PeopleDeps {
  world: World;
  updates: Updates;
}

export class Person {
  constructor(
    readonly user: User,
    private readonly deps: PeopleDeps,
  ) {}

  get id(): number {
    return this.user.id;
  }

  /** The private chat with the bot. */
  get chat(): Place {
    return this.deps.world.direct(this.user);
  }

  /** Says something to the bot alone. */
  dm(text: string, extras: Extras = {}): Said {
    return this.says(this.chat, text, extras);
  }

  says(chat: Place, text: string, extras: Extras = {}): Said {
    const entities = [...entitiesIn(text), ...(extras.entities ?? [])];
    return this.#post(chat, { text, ...(entities.length === 0 ? {} : { entities }) }, extras);
  }

  /** Changes a text, or the words under a file, of their own. */
  edits({ message_id, chat }: Pick<Said, "message_id" | "chat">, text: string): Said {
    const post = this.#own(chat, message_id);
    const isText = post.wire.text !== undefined;
    const entities = entitiesIn(text);
    const words = isText ? { text, entities } : { caption: text, caption_entities: entities };
    Object.assign(post.wire, words, { edit_date: Math.floor(Date.now() / 1000) });
    post.shown.push({ text, atMs: performance.now() });
    return { message_id, chat, updateId: this.deps.updates.push("edited_message", post.wire) };
  }

  sends(chat: Place, gift: Gift, extras: Extras = {}): Said {
    return this.#post(chat, this.#carried(gift), extras);
  }

  /** Sends several files as one album, which Telegram delivers as so many messages. */
  album(chat: Place, gifts: readonly Gift[], extras: Extras = {}): Said[] {
    const media_group_id = String(randomInt(10 ** 12));
    return gifts.map((gift) => this.#post(chat, { ...this.#carried(gift), media_group_id }, extras));
  }

  sticker(chat: Place, emoji: string, extras: Extras = {}): Said {
    const file = this.deps.world.keep(Buffer.from("RIFFxxxxWEBP"), { folder: "stickers", name: "a.webp" });
    const common = { file_id: file.id, file_unique_id: file.uniqueId, file_size: file.announced };
    const look = { type: "regular" as const, width: 512, height: 512, is_animated: false, is_video: false, emoji };
    return this.#post(chat, { sticker: { ...common, ...look, set_name: "a_set" } } as Partial<Message>, extras);
  }

  location(chat: Place, latitude: number, longitude: number, extras: Extras = {}): Said {
    return this.#post(chat, { location: { latitude, longitude } }, extras);
  }

  contact(chat: Place, first_name: string, phone_number: string, extras: Extras = {}): Said {
    return this.#post(chat, { contact: { first_name, phone_number } }, extras);
  }

  /** Presses the button with this label under a message that still shows it. */
  presses(chat: Place, messageId: number, label: string): PressState {
    const post = chat.find(messageId);
    const buttons = post?.wire.reply_markup?.inline_keyboard.flat() ?? [];
    const button = buttons.find(({ text }) => text === label);
    if (post === null || button === undefined || !("callback_data" in button))
      throw new Error(`there is no button "${label}" to press`);
    const press = this.deps.world.press();
    const about = { message: post.wire, chat_instance: String(chat.id), data: button.callback_data };
    this.deps.updates.push("callback_query", { id: press.id, from: this.user, ...about });
    return press;
  }

  /** Blocks the bot; it is told so. */
  blocks(): void {
    this.#changeStanding(this.chat, "blocked");
  }

  unblocks(): void {
    this.#changeStanding(this.chat, "member");
  }

  /** Throws the bot out of a group; it is told so. */
  kicksBotFrom(chat: Place): void {
    this.#changeStanding(chat, "kicked");
  }

  #changeStanding(chat: Place, standing: Standing): void {
    const user = this.deps.world.bot;
    const member = (each: Standing) =>
      ({ user, ...(each === "member" ? { status: "member" } : { status: "kicked", until_date: 0 }) }) as ChatMember;
    const change = { old_chat_member: member(chat.standing), new_chat_member: member(standing) };
    chat.standing = standing;
    const date = Math.floor(Date.now() / 1000);
    this.deps.updates.push("my_chat_member", { chat: chat.wire, from: this.user, date, ...change });
  }

  #carried({ kind, bytes, name, mime, announced, caption }: Gift): Partial<Message> {
    const size = announced === undefined ? {} : { announced };
    const file = this.deps.world.keep(bytes, { folder: `${kind}s`, name: name ?? "", ...size });
    const entities = caption === undefined ? [] : entitiesIn(caption);
    const words = caption === undefined ? {} : { caption };
    const marked = entities.length === 0 ? {} : { caption_entities: entities };
    return { ...words, ...marked, ...carried(kind, file, name ?? null, mime) };
  }

  #post(chat: Place, content: Partial<Message>, extras: Extras): Said {
    if (chat.wire.type === "private" && chat.standing === "stranger") chat.standing = "member";
    const fields = { ...content, ...placement(chat, extras), ...extras.fields };
    const post = chat.post({ from: this.user, ...fields });
    return { message_id: post.wire.message_id, updateId: this.deps.updates.push("message", post.wire), chat };
  }

  #own(chat: Place, messageId: number): Post {
    const post = chat.find(messageId);
    if (post === null || post.wire.from?.id !== this.user.id) throw new Error("only one's own messages can be edited");
    return post;
  }
}

/** Where in a chat something is said, and what it answers. */
function placement(chat: Place, { topic, replyTo, quote }: Extras): Partial<Message> {
  const answered = replyTo === undefined ? null : chat.find(replyTo.message_id);
  if (replyTo !== undefined && answered === null) throw new Error("there is no such message to answer");
  const root = topic === undefined ? null : chat.find(topic.id);
  if (topic !== undefined && (root === null || topic.isClosed)) throw new Error("there is no such open topic");
  const shown = answered ?? root;
  return {
    ...(topic === undefined ? chainOf(chat, answered) : { message_thread_id: topic.id, is_topic_message: true }),
    ...(shown === null ? {} : { reply_to_message: withoutReply(shown.wire) }),
    ...(quote === undefined ? {} : { quote: { text: quote, position: 0 } }),
  };
}

/** Outside forums, chains of answers in supergroups carry a thread id, too, that of their first message. */
function chainOf(chat: Place, answered: Post | null): Partial<Message> {
  if (chat.wire.type !== "supergroup" || chat.isForum || answered === null) return {};
  return { message_thread_id: answered.wire.message_thread_id ?? answered.wire.message_id };
}

/** Mentions and commands in a text, as the apps mark them. */
function entitiesIn(text: string): MessageEntity[] {
  const found = [...text.matchAll(/(?<![\w@/])(@\w{3,32}|\/\w{1,32}(?:@\w{3,32})?)/g)];
  return found.map(({ index, 0: word }) => ({
    type: word.startsWith("/") ? "bot_command" : "mention",
    offset: index,
    length: word.length,
  }));
}

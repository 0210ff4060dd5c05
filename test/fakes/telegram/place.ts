/**
 * A chat of the fake Telegram: who may write there, its topics, its messages, and what people see of it. It sends no
 * updates. Invariant: a message that is deleted stays known as deleted, and what was shown before an edit is kept.
 */
import type { Chat, Message, MessageEntity, User } from "grammy/types";
import { badRequest, forbidden } from "./refusal.js";

export interface Topic {
  id: number;
  name: string;
  isClosed: boolean;
}

/** What the bot may do there. `stranger`: that person never wrote to it. */
export type Standing = "member" | "admin" | "restricted" | "kicked" | "blocked" | "stranger" | "deactivated";

/** What a message has shown at one time. */
export interface Shown {
  text: string;
  /** `performance.now()`. */
  atMs: number;
}

export interface Post {
  wire: Message;
  isDeleted: boolean;
  /** Every text it has had, the present one last. */
  shown: Shown[];
  /** Emoji of the bot. */
  reactions: string[];
}

/** A message as people see it. */
export interface SeenMessage {
  id: number;
  from: string;
  isBot: boolean;
  /** The text, or the words under a file. */
  text: string;
  entities: MessageEntity[];
  /** The topic; null in "General" and where there are none. */
  thread: number | null;
  replyTo: number | null;
  buttons: Array<Array<{ label: string; data: string | null }>>;
  media: { kind: string; name: string | null; bytes: number } | null;
  /** The same for all parts of an album. */
  album: string | null;
  isEdited: boolean;
  reactions: string[];
}

/** "General", which every forum has: typing may name it, sends must not. */
export const GENERAL = 1;
const MEDIA = ["photo", "video", "audio", "voice", "document", "video_note", "animation", "sticker"] as const;
const EVENTS = ["forum_topic_created", "migrate_to_chat_id", "migrate_from_chat_id"] as const;

export class Place {
  standing: Standing = "member";
  /** The supergroup that this group has become. */
  movedTo: number | null = null;
  /** The draft that its one person sees; null for none. */
  draft: { id: number; text: string } | null = null;
  /** Every draft there was. */
  readonly drafts: Shown[] = [];
  /** When the bot was seen typing, and where. */
  readonly typing: Array<{ thread: number | null; atMs: number }> = [];
  readonly topics = new Map<number, Topic>();
  readonly posts = new Map<number, Post>();

  constructor(
    readonly wire: Chat,
    private readonly nextId: () => number,
  ) {}

  get id(): number {
    return this.wire.id;
  }

  get isForum(): boolean {
    return this.wire.is_forum === true;
  }

  get isGroup(): boolean {
    return this.wire.type !== "private";
  }

  /** A message begins to be; `fields` are what makes it. */
  post(fields: Partial<Message> & Pick<Message, "from">): Post {
    const message_id = this.nextId();
    const wire = { message_id, date: Math.floor(Date.now() / 1000), chat: this.wire, ...fields } as Message;
    const post = { wire, isDeleted: false, shown: [{ text: textOf(wire), atMs: performance.now() }], reactions: [] };
    this.posts.set(message_id, post);
    return post;
  }

  /** A message that is still there; null for none. */
  find(id: number | null): Post | null {
    const post = id === null ? undefined : this.posts.get(id);
    return post === undefined || post.isDeleted ? null : post;
  }

  /** Starts a topic, as its administrator does. */
  topic(name: string, by: User): Topic {
    if (!this.isForum) throw new Error("only forums have topics");
    const post = this.post({ from: by });
    const { message_id: id } = post.wire;
    const topic = { id, name, isClosed: false };
    const made = { name, icon_color: 7_322_096 as const };
    Object.assign(post.wire, { message_thread_id: id, is_topic_message: true, forum_topic_created: made });
    this.topics.set(id, topic);
    return topic;
  }

  /** Refuses the bot where it may not write. */
  checkWritable(): void {
    if (this.movedTo !== null)
      throw badRequest("group chat was upgraded to a supergroup chat", { migrate_to_chat_id: this.movedTo });
    switch (this.standing) {
      case "member":
      case "admin":
        return;
      case "restricted":
        throw badRequest("not enough rights to send text messages to the chat");
      case "kicked":
        throw forbidden(`bot was kicked from the ${this.wire.type === "group" ? "group" : this.wire.type} chat`);
      case "blocked":
        throw forbidden("bot was blocked by the user");
      case "stranger":
        throw forbidden("bot can't initiate conversation with a user");
      case "deactivated":
        throw forbidden("user is deactivated");
      default:
        this.standing satisfies never;
    }
  }

  /** Refuses a thread that is not there. */
  checkThread(thread: number | null): void {
    if (thread === null) return;
    const topic = this.topics.get(thread);
    if (topic === undefined) throw badRequest("message thread not found");
    if (topic.isClosed && this.standing !== "admin") throw badRequest("TOPIC_CLOSED");
  }

  /** What people see, oldest first; events of the chat left out. */
  visible(): SeenMessage[] {
    return [...this.posts.values()]
      .filter(({ isDeleted, wire }) => !isDeleted && EVENTS.every((event) => wire[event] === undefined))
      .map(seen);
  }

  /** Texts of the bot's messages, oldest first; of one topic where it says so (null: "General"). */
  answers(thread?: number | null): string[] {
    return this.visible()
      .filter((each) => each.isBot && (thread === undefined || each.thread === thread))
      .map(({ text }) => text);
  }
}

export function textOf(wire: Message): string {
  return wire.text ?? wire.caption ?? "";
}

function seen({ wire, reactions }: Post): SeenMessage {
  const rows = wire.reply_markup?.inline_keyboard ?? [];
  return {
    id: wire.message_id,
    from: wire.from?.username ?? wire.from?.first_name ?? "",
    isBot: wire.from?.is_bot === true,
    text: textOf(wire),
    entities: wire.entities ?? wire.caption_entities ?? [],
    thread: wire.is_topic_message === true ? (wire.message_thread_id ?? null) : null,
    replyTo: replyOf(wire),
    buttons: rows.map((row) =>
      row.map((button) => ({
        label: button.text,
        data: "callback_data" in button ? String(button.callback_data) : null,
      })),
    ),
    media: mediaOf(wire),
    album: wire.media_group_id ?? null,
    isEdited: wire.edit_date !== undefined,
    reactions,
  };
}

/** A message in a topic "answers" the one that began the topic: nobody sees that. */
function replyOf({ reply_to_message: answered }: Message): number | null {
  return answered === undefined || answered.forum_topic_created !== undefined ? null : answered.message_id;
}

function mediaOf(wire: Message): SeenMessage["media"] {
  const kind = MEDIA.find((each) => wire[each] !== undefined);
  if (kind === undefined) return null;
  const carried: unknown = wire[kind];
  const file = (Array.isArray(carried) ? carried.at(-1) : carried) as { file_name?: string; file_size?: number };
  return { kind, name: file.file_name ?? null, bytes: file.file_size ?? 0 };
}

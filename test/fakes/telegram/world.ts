/**
 * Everything the fake Telegram knows: the bot, people, chats, files, presses. It speaks no protocol. Invariant: ids are as
 * Telegram gives them: per bot in private chats and groups, per chat in supergroups and channels.
 */
import { randomBytes, randomInt } from "node:crypto";
import type { BotCommand, Chat, User, UserFromGetMe } from "grammy/types";
import { Place } from "./place.js";
import { badRequest } from "./refusal.js";

export interface StoredFile {
  id: string;
  uniqueId: string;
  path: string;
  bytes: Buffer;
  /** What Telegram says its size is. */
  announced: number;
}

/** A button that was pressed. */
export interface PressState {
  id: string;
  /** Null until the bot has acknowledged it. */
  answer: { text: string; isAlert: boolean } | null;
}

export class World {
  readonly bot: UserFromGetMe;
  readonly users = new Map<number, User>();
  readonly places = new Map<number, Place>();
  readonly files = new Map<string, StoredFile>();
  readonly presses = new Map<string, PressState>();
  /** What the bot has registered, by scope and language as JSON. */
  readonly commands = new Map<string, BotCommand[]>();
  #messageId = randomInt(10, 500);
  #userId = randomInt(100_000_000, 900_000_000);
  #chatId = randomInt(1_000_000, 9_000_000);

  constructor(botName: string) {
    this.bot = {
      id: randomInt(1_000_000_000, 7_000_000_000),
      is_bot: true,
      first_name: botName,
      username: botName,
      can_join_groups: true,
      can_read_all_group_messages: true,
      supports_inline_queries: false,
      can_connect_to_business: false,
      has_main_web_app: false,
    } as UserFromGetMe;
    this.users.set(this.bot.id, this.bot);
  }

  user(name: string, isBot = false): User {
    this.#userId += randomInt(1, 1000);
    const user: User = { id: this.#userId, is_bot: isBot, first_name: name, username: name };
    this.users.set(user.id, user);
    return user;
  }

  /** The private chat of a person with the bot. */
  direct(user: User): Place {
    const known = this.places.get(user.id);
    if (known !== undefined) return known;
    const { id, first_name } = user;
    const username = user.username === undefined ? {} : { username: user.username };
    const place = this.#add({ id, type: "private", first_name, ...username });
    place.standing = "stranger";
    return place;
  }

  group(title: string): Place {
    this.#chatId += 1;
    return this.#add({ id: -this.#chatId, type: "group", title });
  }

  supergroup(title: string, isForum = false): Place {
    this.#chatId += 1;
    const id = -1_000_000_000_000 - this.#chatId;
    return this.#add({ id, type: "supergroup", title, ...(isForum ? { is_forum: true as const } : {}) });
  }

  channel(title: string): Place {
    this.#chatId += 1;
    return this.#add({ id: -1_000_000_000_000 - this.#chatId, type: "channel", title });
  }

  #add(wire: Chat): Place {
    const own = { id: 0 };
    const isOwnCount = wire.type === "supergroup" || wire.type === "channel";
    const nextId = () => (isOwnCount ? ++own.id : ++this.#messageId);
    // A forum's "General" begins with the event that made it one.
    if (wire.is_forum === true) own.id = 1;
    const place = new Place(wire, nextId);
    this.places.set(place.id, place);
    return place;
  }

  /** A chat by the id that a call names. Throws a refusal. */
  placeOf(chat: number | string | null): Place {
    if (chat === null) throw badRequest("chat_id is empty");
    const place =
      typeof chat === "number"
        ? this.places.get(chat)
        : [...this.places.values()].find(
            ({ wire }) => wire.type !== "private" && wire.username !== undefined && `@${wire.username}` === chat,
          );
    if (place === undefined) throw badRequest("chat not found");
    return place;
  }

  /** Keeps a file; `announced`: what Telegram says its size is. */
  keep(bytes: Buffer, { folder, name, announced }: { folder: string; name: string; announced?: number }): StoredFile {
    const extension = /\.[A-Za-z0-9]{1,8}$/.exec(name)?.[0] ?? "";
    const file = {
      id: `AgAC${randomBytes(36).toString("base64url")}`,
      uniqueId: randomBytes(11).toString("base64url"),
      path: `${folder}/file_${this.files.size}${extension}`,
      bytes,
      announced: announced ?? bytes.length,
    };
    this.files.set(file.id, file);
    return file;
  }

  /** Notes a press, to be acknowledged. */
  press(): PressState {
    const press = { id: String(randomInt(2 ** 47)) + String(randomInt(10 ** 6)), answer: null };
    this.presses.set(press.id, press);
    return press;
  }
}

/**
 * The followed chats of this process: makes a feed when the first connection comes, ends it when the last has left. It
 * delivers nothing itself. Invariant: at most one live feed a chat, and none without a follower.
 */
import type { Logger } from "../../logger.js";
import { ChatFeed } from "./chat-feed.js";
import type { Follower, Position } from "./follower.js";
import type { ChatEvent, ChatLog } from "./ports.js";
import { renderEvent } from "./render.js";

export interface FeedsDeps {
  log: ChatLog;
  account: string;
  logger: Logger;
  retryMs: number;
}

/** What ends something for a reader; pieces would flood the log. */
const ENDS: ReadonlySet<string> = new Set([
  "final",
  "notice",
  "turn_end",
] satisfies ChatEvent["message"]["event"]["type"][]);

interface Entry {
  feed: ChatFeed;
  followers: Set<Follower>;
}

export class Feeds {
  readonly #deps: FeedsDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #endReconnects: () => void;

  constructor(deps: FeedsDeps) {
    this.#deps = deps;
    this.#endReconnects = deps.log.onReconnect(() => {
      for (const { feed } of this.#entries.values()) feed.catchUp();
    });
  }

  /** How many chats are followed. */
  get size(): number {
    return this.#entries.size;
  }

  /** Lets a follower in and brings it up to date. Throws `BUS_UNAVAILABLE`, and then it is not following. */
  async join(chatId: string, follower: Follower, from: Position | null): Promise<void> {
    const entry = this.#entries.get(chatId) ?? this.#open(chatId);
    entry.followers.add(follower);
    try {
      await entry.feed.join(follower, from);
    } catch (error) {
      await this.leave(chatId, follower);
      throw error;
    }
  }

  /** Answers a follower that attached again without a position; false when it does not follow this chat. */
  announce(chatId: string, follower: Follower): boolean {
    return this.#entries.get(chatId)?.feed.announce(follower) ?? false;
  }

  async leave(chatId: string, follower: Follower): Promise<void> {
    const entry = this.#entries.get(chatId);
    if (entry === undefined || !entry.followers.delete(follower)) return;
    entry.feed.leave(follower);
    if (entry.followers.size > 0) return;
    this.#entries.delete(chatId);
    await this.#end(chatId, entry.feed);
  }

  async close(): Promise<void> {
    this.#endReconnects();
    const open = [...this.#entries];
    this.#entries.clear();
    await Promise.all(open.map(([chatId, { feed }]) => this.#end(chatId, feed)));
  }

  #open(chatId: string): Entry {
    const render = (event: Parameters<typeof renderEvent>[1]) => {
      const frame = renderEvent(chatId, event);
      if (ENDS.has(event.message.event.type)) this.#trace(event);
      return frame === null ? null : JSON.stringify(frame);
    };
    const entry = { feed: new ChatFeed({ ...this.#deps, chatId, render }), followers: new Set<Follower>() };
    this.#entries.set(chatId, entry);
    return entry;
  }

  /** The last line of a message's way; its ids are those of the lines before. */
  #trace({ seq, message }: ChatEvent): void {
    const { turnId: turn, id: outbound, chatId } = message;
    this.#deps.logger.debug({ turn, outbound, account: this.#deps.account, chatId, seq }, "sent to those who follow");
  }

  /** Nobody waits for the end of a subscription; that it failed is worth a line. */
  async #end(chatId: string, feed: ChatFeed): Promise<void> {
    try {
      await feed.close();
    } catch (error) {
      this.#deps.logger.warn({ err: error, chatId }, "following a chat could not be ended");
    }
  }
}

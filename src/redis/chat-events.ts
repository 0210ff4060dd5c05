/**
 * Chat event logs over Redis streams. The numbers are given by the scripts that append; this file only reads and
 * listens. Invariant: a page of events is contiguous and starts right after what the reader has.
 */

import type { ChatEvent, ChatEvents, ChatHead } from "../bus/delivery-ports.js";
import type { OutboundMessage } from "../bus/messages.js";
import type { RedisClient } from "./client.js";
import type { Feed } from "./feed.js";
import type { Keys } from "./keys.js";
import { integer, list, text } from "./reply.js";
import type { Scripts } from "./scripts.js";

/** Events a read gives at most; a longer backlog is read in pages. */
const PAGE = 500;
/** A chat's owner is forgotten this long after the chat's last use, s. */
const OWNER_TTL_SECONDS = 400 * 86_400;

export interface ChatEventsDeps {
  client: RedisClient;
  scripts: Scripts;
  feed: Feed;
  keys: Keys;
  deadlineMs: number;
}

type Page = { kind: "events"; head: ChatHead; events: ChatEvent[] } | { kind: "resync"; head: ChatHead };

export class RedisChatEvents implements ChatEvents {
  readonly #deps: ChatEventsDeps;

  constructor(deps: ChatEventsDeps) {
    this.#deps = deps;
  }

  async head(account: string, chatId: string): Promise<ChatHead> {
    const page = await this.#page({ account, chat: chatId, after: -1, epoch: 0 });
    return page.head;
  }

  async read(account: string, chatId: string, after: number, epoch: number | null): Promise<Page> {
    const events: ChatEvent[] = [];
    for (;;) {
      const page = await this.#page({ account, chat: chatId, after: after + events.length, epoch: epoch ?? 0 });
      if (page.kind === "resync") return page;
      events.push(...page.events);
      if (page.events.length < PAGE) return { kind: "events", head: page.head, events };
    }
  }

  async #page(args: { account: string; chat: string; after: number; epoch: number }): Promise<Page> {
    const [kind, epoch, seq, rows] = list(await this.#deps.scripts.run("chat-read", { ...args, limit: PAGE }));
    const head = { epoch: integer(epoch), seq: integer(seq) };
    if (kind === "resync") return { kind: "resync", head };
    const events = list(rows).map((row) => {
      const [number, body] = list(row);
      return { seq: integer(number), message: JSON.parse(text(body)) as OutboundMessage };
    });
    return { kind: "events", head, events };
  }

  follow(account: string, chatId: string, onEvent: (event: ChatEvent) => void): Promise<() => Promise<void>> {
    const channel = this.#deps.keys.of("eventFeed", `${account}:${chatId}`);
    return this.#deps.feed.listen(channel, (line) => {
      const space = line.indexOf(" ");
      onEvent({ seq: Number(line.slice(0, space)), message: JSON.parse(line.slice(space + 1)) as OutboundMessage });
    });
  }

  onReconnect(listener: () => void): () => void {
    return this.#deps.feed.onReconnect(listener);
  }

  claim(account: string, chatId: string, identity: string): Promise<string> {
    const { client, keys, deadlineMs } = this.#deps;
    const key = keys.of("chatOwner", `${account}:${chatId}`);
    return client.attempt(async (redis) => {
      const isNew = await redis.set(key, identity, "EX", OWNER_TTL_SECONDS, "NX");
      if (isNew !== null) return identity;
      return (await redis.getex(key, "EX", OWNER_TTL_SECONDS)) ?? identity;
    }, deadlineMs);
  }
}

/**
 * A strict fake of Telegram for tests: the Bot API on a port of this machine, people who use it, a journal of all calls,
 * and faults on order. It takes what Telegram takes and refuses what Telegram refuses; it is no Telegram for people.
 * Invariant: nothing that a test has not ordered goes wrong.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Faults } from "./faults.js";
import { Journal, type Violation } from "./journal.js";
import { Limits } from "./limits.js";
import { Person } from "./people.js";
import type { Place } from "./place.js";
import { BotApiServer } from "./server.js";
import { Updates } from "./updates.js";
import { World } from "./world.js";

export interface FakeTelegramOptions {
  botName?: string;
  /** Where a webhook's public address leads to, as the proxy in front of the gateway would know. */
  webhookRoute?: (url: string) => string;
  /** Any free one when left out. */
  port?: number;
  /** The clock of the limits, ms. */
  nowMs?: () => number;
}

export class FakeTelegram {
  readonly journal = new Journal();
  readonly faults = new Faults();
  readonly limits: Limits;
  readonly world: World;
  readonly updates: Updates;
  readonly #server: Server;
  readonly #persons = new Map<string, Person>();
  readonly #errors: unknown[] = [];
  readonly #wantedPort: number;
  #token: string;
  #port = 0;

  constructor(options: FakeTelegramOptions = {}) {
    const { botName = "nano_bot", webhookRoute = (url: string) => url, port = 0 } = options;
    this.limits = new Limits(this.journal, options.nowMs ?? (() => performance.now()));
    this.world = new World(botName);
    this.updates = new Updates(this.journal, webhookRoute);
    this.#token = newToken(this.world.bot.id);
    this.#wantedPort = port;
    const { world, updates, journal, faults, limits } = this;
    const api = new BotApiServer({ world, updates, journal, faults, limits, token: () => this.#token });
    this.#server = createServer((request, response) => {
      api.handle(request, response).catch((error: unknown) => {
        // Who cuts the connection in the middle of a request gets no answer.
        if (request.complete) this.#errors.push(error);
        response.socket?.destroy();
      });
    });
  }

  static async start(options: FakeTelegramOptions = {}): Promise<FakeTelegram> {
    const fake = new FakeTelegram(options);
    await fake.start();
    return fake;
  }

  async start(): Promise<void> {
    this.#server.listen(this.#wantedPort, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Ends everything. Throws when the fake itself had an error. */
  async close(): Promise<void> {
    this.updates.close();
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    if (this.#errors.length > 0) throw new AggregateError(this.#errors, "the fake had errors");
  }

  /** What goes into `client.apiRoot` of grammY. */
  get apiRoot(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** A token of the right shape, made for this run. */
  get token(): string {
    return this.#token;
  }

  /** The part of the token that must stand nowhere. */
  get secret(): string {
    return this.#token.slice(this.#token.indexOf(":") + 1);
  }

  /** The bot gets another token: the former is unauthorized from now on. */
  revokeToken(): void {
    this.#token = newToken(this.world.bot.id);
  }

  /** What no well-behaved client does. */
  get violations(): readonly Violation[] {
    return this.journal.violations;
  }

  person(name: string): Person {
    return this.#personOf(name, false);
  }

  otherBot(name: string): Person {
    return this.#personOf(name, true);
  }

  #personOf(name: string, isBot: boolean): Person {
    const known = this.#persons.get(name);
    if (known !== undefined) return known;
    const person = new Person(this.world.user(name, isBot), { world: this.world, updates: this.updates });
    this.#persons.set(name, person);
    return person;
  }

  group(title = "family"): Place {
    return this.world.group(title);
  }

  supergroup(title = "team"): Place {
    return this.world.supergroup(title);
  }

  /** A supergroup with topics. */
  forum(title = "lab"): Place {
    return this.world.supergroup(title, true);
  }

  channel(title = "news"): Place {
    return this.world.channel(title);
  }

  /** A chat by its id. Throws for one that is not there. */
  chat(id: number): Place {
    return this.world.placeOf(id);
  }

  /** How people mention the bot. */
  get mention(): string {
    return `@${this.world.bot.username}`;
  }

  /** A channel posts something. */
  channelPost(channel: Place, text: string): number {
    const post = channel.post({ sender_chat: channel.wire, text } as Parameters<Place["post"]>[0]);
    return this.updates.push("channel_post", post.wire);
  }

  /** Somebody makes a supergroup of a group; both say so. */
  upgrade(group: Place, by = this.person("admin")): Place {
    const { user: from } = by;
    const place = this.world.supergroup(group.wire.title ?? "");
    group.movedTo = place.id;
    const away = group.post({ from, migrate_to_chat_id: place.id });
    this.updates.push("message", away.wire);
    const here = place.post({ from, migrate_from_chat_id: group.id });
    this.updates.push("message", here.wire);
    return place;
  }

  /** The next call into this chat is told to wait so long; calls before that is over are violations. */
  flood(chat: Place, seconds: number): void {
    this.limits.flood(chat.id, seconds);
  }

  /** Waits until `probe` gives something; fails after `withinMs`. It looks after each change and every 25 ms. */
  until<T>(probe: () => T | undefined | null | false, withinMs = 20_000): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const value = probe();
        if (value === undefined || value === null || value === false) return;
        end();
        resolve(value);
      };
      const stop = this.journal.watch(look);
      const timer = setTimeout(() => {
        end();
        reject(new Error(`it did not happen within ${withinMs} ms; last calls:\n${this.#tail()}`));
      }, withinMs);
      const again = setInterval(look, 25);
      const end = () => {
        clearTimeout(timer);
        clearInterval(again);
        stop();
      };
      look();
    });
  }

  #tail(): string {
    return this.journal.entries
      .slice(-15)
      .map(
        ({ method, chatId, outcome, code, description }) =>
          `${method} ${chatId ?? ""} → ${outcome} ${code ?? ""} ${description ?? ""}`,
      )
      .join("\n");
  }
}

function newToken(botId: number): string {
  return `${botId}:AA${randomBytes(25).toString("base64url").slice(0, 33)}`;
}

/**
 * The real channel with the real SDK against the small Bot API or the strict fake, in front of a gateway that a test plays:
 * who is let in, what the bus takes, what the account remembers. Files lie in a real store. Ended by `close`.
 */
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Writable } from "node:stream";
import type { InboundMessage } from "../../../src/bus/messages.js";
import { asSessionKey } from "../../../src/bus/messages.js";
import type { Admission, ChannelContext, Knock } from "../../../src/channels/channel.js";
import { type Clock, createSystemClock } from "../../../src/channels/clock.js";
import {
  createTelegramChannel,
  type TelegramChannel,
  type TelegramSettings,
} from "../../../src/channels/telegram/channel.js";
import { NanogateError } from "../../../src/errors.js";
import { createLogger } from "../../../src/logger.js";
import { createMediaStore } from "../../../src/media/store.js";
import { noMetrics } from "../../../src/metrics.js";
import { MemoryAccount, testContext } from "../../fakes/channel-context.js";
import type { FakeTelegram } from "../../fakes/telegram/fake-telegram.js";
import { SmallBotApi } from "./small-bot-api.js";

export class Inbound {
  readonly api = new SmallBotApi();
  readonly accepted: InboundMessage[] = [];
  readonly knocks: Knock[] = [];
  /** What becomes of each knock. */
  admit: (knock: Knock) => Promise<Admission> = async () => ({ kind: "admitted", isOwner: false });
  /** What the bus does before it stores a message; may throw. */
  storing: (message: InboundMessage) => Promise<void> = async () => {};
  readonly memory = new MemoryAccount();
  readonly lines: string[] = [];
  #folder = "";
  #channel: TelegramChannel | null = null;
  #context: ChannelContext | null = null;

  static async create(
    settings: Partial<TelegramSettings> = {},
    more: { clock?: Clock; maxBytes?: number } = {},
  ): Promise<Inbound> {
    const inbound = new Inbound();
    await inbound.#open(settings, more);
    return inbound;
  }

  /** The bot of a strict fake. */
  static on(fake: FakeTelegram, settings: Partial<TelegramSettings> = {}): Promise<Inbound> {
    return Inbound.create({ token: fake.token, apiRoot: fake.apiRoot, ...settings });
  }

  get channel(): TelegramChannel {
    if (this.#channel === null) throw new Error("not made");
    return this.#channel;
  }

  get context(): ChannelContext {
    if (this.#context === null) throw new Error("not made");
    return this.#context;
  }

  get log(): string {
    return this.lines.join("");
  }

  start(): Promise<void> {
    return this.channel.start(this.context);
  }

  texts(): string[] {
    return this.accepted.map(({ content }) => content);
  }

  async close(): Promise<void> {
    await this.channel.stop();
    await this.api.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #open(settings: Partial<TelegramSettings>, more: { clock?: Clock; maxBytes?: number }): Promise<void> {
    await this.api.listen();
    this.#folder = await mkdtemp(path.join(os.tmpdir(), "nanogate-telegram-"));
    const destination = new Writable({
      write: (chunk, _, done) => {
        this.lines.push(String(chunk));
        done();
      },
    });
    const logger = createLogger({ level: "debug", secrets: [], destination });
    const { maxBytes = 1_000_000, clock = createSystemClock() } = more;
    const keep = { keepMs: 1e9, nowMs: Date.now, logger, metrics: noMetrics };
    const media = createMediaStore({ folder: path.join(this.#folder, "media"), maxBytes, ...keep });
    this.#context = testContext({
      admit: async (knock) => {
        this.knocks.push(knock);
        return this.admit(knock);
      },
      accept: async (message) => {
        await this.storing(message);
        this.accepted.push(message);
        return { status: "stored", sessionKey: asSessionKey(`telegram:${message.chatId}`), turnId: `t${message.id}` };
      },
      media,
      memory: this.memory,
      logger,
    });
    const config: TelegramSettings = {
      token: this.api.token,
      apiRoot: this.api.apiRoot,
      streaming: true,
      lateEdits: "ignore",
      webhook: null,
      replyQuotes: false,
      drafts: false,
      reaction: null,
      editIntervalMs: 1000,
      ...settings,
    };
    this.#channel = createTelegramChannel({ config, clock, wallMs: Date.now, media, logger });
  }
}

/** The bus takes nothing, for so many messages. */
export function pushBack(times: number, code: "BUS_OVERLOADED" | "BUS_UNAVAILABLE"): () => Promise<void> {
  let left = times;
  return async () => {
    left -= 1;
    if (left >= 0) throw new NanogateError(code, "nothing is stored now");
  };
}

/**
 * The Telegram channel: its two halves put together. What is read and what is sent is said elsewhere. Invariants: a token
 * that cannot be one is never used and never repeated; each start is a new life of the incoming half, while what must be
 * remembered between lives (waits, who the bot is, order within chats) stays.
 */
import { NanogateError } from "../../errors.js";
import type { Logger } from "../../logger.js";
import type { ChannelContext, ChannelHealth, OutboxChannel } from "../channel.js";
import type { Clock } from "../clock.js";
import type { MediaShelf } from "../ports.js";
import { type Connection, createConnection } from "./connection.js";
import { InboundHealth } from "./health.js";
import { Intake } from "./intake.js";
import { InboundLife } from "./life.js";
import { FileFetcher } from "./media-in.js";
import { createTelegramOutlet, type TelegramOutlet } from "./outlet.js";
import type { Me } from "./parse-address.js";
import type { TelegramOutletConfig, TelegramPart } from "./part.js";
import { LONG_POLL_S } from "./poll.js";
import { sdkSignal } from "./sdk-signal.js";
import { accountOf, type InboundSettings, isTokenShaped, TELEGRAM } from "./settings.js";
import { Trouble } from "./trouble.js";
import { createWebhook, type Webhook } from "./webhook.js";

export type TelegramSettings = InboundSettings & TelegramOutletConfig;

export interface TelegramDeps {
  config: TelegramSettings;
  clock: Clock;
  /** ms since the epoch. */
  wallMs: () => number;
  media: Pick<MediaShelf, "pathOf">;
  logger: Logger;
}

/** The channel, and the door by which the platform brings updates; null where they are asked for. */
export interface TelegramChannel extends OutboxChannel<TelegramPart> {
  readonly webhook: Webhook | null;
}

/** Without a round trip for so long, long polls apart, the channel has failed. */
const PATIENCE_MS = 120_000;
/** The last resort: whoever calls has a shorter limit of its own, and an upload may take long. */
const CALL_LIMIT_S = 500;
/** Stands where there is no token; no call is made with it. */
const NO_TOKEN = "none";

/** Makes the channel; it connects to nothing before `start`. */
export function createTelegramChannel(deps: TelegramDeps): TelegramChannel {
  return new TelegramBot(deps);
}

class TelegramBot implements TelegramChannel {
  readonly name = TELEGRAM;
  /** A message that is sent again is shown again. */
  readonly repeatableMs = 0;
  readonly account: string;
  readonly parts: TelegramOutlet["parts"];
  readonly send: TelegramOutlet["send"];
  readonly limits: TelegramOutlet["limits"];
  readonly live: TelegramOutlet["live"];
  readonly webhook: Webhook | null;
  readonly #deps: TelegramDeps;
  readonly #calls: Connection;
  readonly #polls: Connection;
  readonly #intake: Intake;
  readonly #health: InboundHealth;
  readonly #trouble: Trouble;
  /** Of a process that takes updates in without owning the account. */
  readonly #never = new AbortController().signal;
  #me: Me | null = null;
  #life: InboundLife | null = null;

  constructor(deps: TelegramDeps) {
    const { config, clock, wallMs } = deps;
    this.#deps = deps;
    this.account = accountOf(config.token);
    const token = isTokenShaped(config.token) ? config.token : NO_TOKEN;
    const reach = { token, apiRoot: config.apiRoot };
    this.#calls = createConnection({ ...reach, timeoutSeconds: CALL_LIMIT_S });
    this.#polls = createConnection({ ...reach, timeoutSeconds: CALL_LIMIT_S });
    const api = () => this.#calls.api;
    const files = new FileFetcher({ api, ...reach, clock });
    this.#intake = new Intake({ account: this.account, settings: config, files, api, clock, wallMs });
    this.#health = new InboundHealth(clock, PATIENCE_MS + LONG_POLL_S * 1000);
    this.#trouble = new Trouble(clock, this.#health);
    this.webhook = this.#door();
    const outlet = outletOf(deps, this.#calls);
    this.parts = outlet.parts;
    this.send = outlet.send;
    this.limits = outlet.limits;
    this.live = outlet.live;
  }

  health(): ChannelHealth {
    return this.#health.health();
  }

  /** Returns soon, whether the platform can be reached or not. Throws `TELEGRAM_TOKEN_INVALID`. */
  async start(context: ChannelContext): Promise<void> {
    if (this.#life !== null) return;
    const { config, clock, wallMs } = this.#deps;
    this.#health.started();
    if (!isTokenShaped(config.token)) throw this.#refuseToken(config.token);
    const { webhook } = config;
    const inner = { intake: this.#intake, health: this.#health, trouble: this.#trouble };
    const reach = { calls: this.#calls, polls: this.#polls, whoAmI: (signal: AbortSignal) => this.#whoAmI(signal) };
    const life = new InboundLife({ ...reach, ...inner, clock, wallMs, webhook });
    this.#life = life;
    try {
      await life.start(context);
    } catch (error) {
      this.#life = null;
      await life.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    const life = this.#life;
    this.#life = null;
    await life?.stop();
    this.#health.stopped();
    this.#calls.renew();
    this.#polls.renew();
  }

  #door(): Webhook | null {
    const { webhook, token } = this.#deps.config;
    if (webhook === null || !isTokenShaped(token)) return null;
    const signal = this.#never;
    return createWebhook({ secret: webhook.secret, intake: this.#intake, whoAmI: () => this.#whoAmI(signal), signal });
  }

  async #whoAmI(signal: AbortSignal): Promise<Me> {
    if (this.#me !== null) return this.#me;
    const { id, username } = await this.#calls.api.getMe(sdkSignal(signal));
    this.#me = { id, username };
    return this.#me;
  }

  #refuseToken(token: string | null): NanogateError {
    const problem = token === null ? "Telegram is on and has no token." : "Telegram's token has not the shape of one.";
    this.#health.failed({ code: "TELEGRAM_TOKEN_INVALID", problem, kind: "permanent" });
    return new NanogateError("TELEGRAM_TOKEN_INVALID", problem);
  }
}

function outletOf({ media, config, logger }: TelegramDeps, calls: Connection): TelegramOutlet {
  return createTelegramOutlet({
    get api() {
      return calls.api;
    },
    pathOf: (ref) => media.pathOf(ref),
    config,
    logger,
  });
}

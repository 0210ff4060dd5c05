/**
 * The life of the incoming half: who am I, how do updates come, ask or watch, try again. It reads no update. Invariants: no
 * update is asked for while a webhook is set; after `stop` nothing is asked for and nothing is being stored; it ends by
 * itself only where no repetition can help.
 */
import { NanogateError } from "../../errors.js";
import type { Logger } from "../../logger.js";
import type { ChannelContext } from "../channel.js";
import type { Clock } from "../clock.js";
import { refusalCode } from "./api-error.js";
import { showMenu } from "./commands-menu.js";
import type { Connection } from "./connection.js";
import { withDeadline } from "./deadline.js";
import type { InboundHealth } from "./health.js";
import type { Intake } from "./intake.js";
import type { Me } from "./parse-address.js";
import { Poller } from "./poll.js";
import { sdkSignal } from "./sdk-signal.js";
import type { Trouble } from "./trouble.js";
import { setWebhook, watchWebhook } from "./webhook-watch.js";

export interface LifeDeps {
  /** Calls that answer at once. */
  calls: Connection;
  /** Long polls alone. */
  polls: Connection;
  whoAmI: (signal: AbortSignal) => Promise<Me>;
  intake: Intake;
  clock: Clock;
  wallMs: () => number;
  health: InboundHealth;
  trouble: Trouble;
  webhook: { url: string; secret: string } | null;
}

/** A start must not keep others waiting. */
const FIRST_TRY_MS = 5_000;
/** Getting ready is a handful of calls that answer at once. */
const READY_LIMIT_MS = 60_000;

interface Run {
  context: ChannelContext;
  signal: AbortSignal;
}

export class InboundLife {
  readonly #deps: LifeDeps;
  readonly #ending = new AbortController();
  #over: Promise<void> = Promise.resolve();
  #poller: Poller | null = null;
  #isReady = false;

  /** A life is of one start of the channel. */
  constructor(deps: LifeDeps) {
    this.#deps = deps;
  }

  /** Returns when it is known whether the token is taken, or after a while. Throws `TELEGRAM_TOKEN_INVALID`. */
  async start(context: ChannelContext): Promise<void> {
    const { clock, health } = this.#deps;
    const tried = new AbortController();
    const run = { context, signal: this.#ending.signal };
    this.#over = this.#live(run, () => tried.abort()).finally(() => tried.abort());
    await clock.sleep(FIRST_TRY_MS, tried.signal);
    const state = health.health();
    if (state.state === "failed" && state.isPermanent) throw new NanogateError("TELEGRAM_TOKEN_INVALID", state.problem);
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#over;
    await this.#poller?.end();
  }

  async #live(run: Run, onTried: () => void): Promise<void> {
    const { trouble, polls, clock } = this.#deps;
    const { signal, context } = run;
    while (!signal.aborted) {
      if (trouble.quietMs() > 0) onTried();
      await trouble.quiet(signal);
      if (signal.aborted) return;
      try {
        if (!this.#isReady)
          await withDeadline({ clock, ms: READY_LIMIT_MS, signal }, (limit) => this.#getReady(run, limit));
        this.#isReady = true;
        onTried();
        await this.#serve(run);
      } catch (error) {
        if (signal.aborted) return;
        // The connection may be half open, and whether a webhook is set is to be asked again.
        polls.renew();
        if (refusalCode(error) === 409) this.#isReady = false;
        const isOver = trouble.note(error, context.logger);
        onTried();
        if (isOver) return;
      }
    }
  }

  async #getReady(run: Run, signal: AbortSignal): Promise<void> {
    const { webhook, whoAmI, calls } = this.#deps;
    const me = await whoAmI(signal);
    const { logger } = run.context;
    if (webhook !== null) await setWebhook({ api: () => calls.api, webhook }, signal);
    else {
      await this.#endWebhook(logger, signal);
      this.#poller ??= await this.#createPoller(me, run);
    }
    await showMenu(calls.api, { logger, signal });
  }

  async #createPoller(me: Me, run: Run): Promise<Poller> {
    const { intake, clock, health, wallMs, polls } = this.#deps;
    const onProgress = () => this.#progress();
    const poller = new Poller({ api: () => polls.api, intake, clock, health, wallMs, onProgress }, { me, ...run });
    await poller.restore();
    return poller;
  }

  /** Waiting updates stay. */
  async #endWebhook(logger: Logger, signal: AbortSignal): Promise<void> {
    const { api } = this.#deps.calls;
    const { url } = await api.getWebhookInfo(sdkSignal(signal)).catch(unlessUnknown);
    if (url === undefined || url === "") return;
    logger.warn({}, "a webhook was set for this bot, which is to be polled; it is deleted");
    await api.deleteWebhook({ drop_pending_updates: false }, sdkSignal(signal));
  }

  async #serve({ context, signal }: Run): Promise<void> {
    const { webhook, calls, health, clock, wallMs } = this.#deps;
    if (webhook === null) return this.#poller?.poll();
    const onProgress = () => this.#progress();
    const deps = { api: () => calls.api, webhook, health, clock, wallMs, onProgress };
    return watchWebhook(deps, { logger: context.logger, signal });
  }

  #progress(): void {
    this.#deps.health.progressed();
    this.#deps.trouble.over();
  }
}

/** Servers of the Bot API that know no webhooks refuse the question; then there is none to end. */
function unlessUnknown(error: unknown): { url?: string } {
  const code = refusalCode(error);
  if (code === null || code === 401 || code === 403 || code === 429 || code >= 500) throw error;
  return {};
}

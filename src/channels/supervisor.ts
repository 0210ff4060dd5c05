/**
 * The life of one channel: started, watched, started again with back-off, stopped in order. A channel with an outbox
 * first gets the ownership of its account and stands by until then. It knows no platform. Invariant: whatever a channel
 * does, its supervisor neither throws nor touches another channel, and it never starts it so often that a platform's daily
 * budget of connections would be used up.
 */
import { NanogateError } from "../errors.js";
import { redactText } from "../logger.js";
import { type AccountServiceDeps, serveAccount } from "./account-service.js";
import type { Channel, ChannelContext, ChannelHealth, OutboxChannel } from "./channel.js";
import { backOffMs } from "./clock.js";
import { type Ownership, takeOwnership } from "./ownership.js";
import { Receipts } from "./receipts.js";

export interface SupervisorSettings {
  /** Length of an account's ownership. */
  leaseMs: number;
  /** How long lanes may finish what is in flight when the channel or the gateway stops. */
  drainMs: number;
  /** A send that takes longer has an unknown outcome. */
  sendTimeoutMs: number;
  /** How often a running channel is asked how it is. */
  watchMs: number;
}

export interface SupervisorDeps extends Omit<AccountServiceDeps, "channel" | "receipts" | "logger" | "sendTimeoutMs"> {
  channel: Channel;
  context: ChannelContext;
  settings: SupervisorSettings;
}

/** A channel that ran this long is no longer counted as failing. */
const STEADY_MS = 600_000;
/** Longest wait before a channel is started again. */
const MAX_BACK_OFF_MS = 300_000;
/** Wait before something is tried again that only a person can mend. */
const PERMANENT_MS = 600_000;
/** Longest wait for a channel's own `stop`. */
const STOP_LIMIT_MS = 5_000;

type Failed = Extract<ChannelHealth, { state: "failed" }>;

/** True for a channel whose answers go through an outbox. */
export function isOutboxChannel(channel: Channel): channel is OutboxChannel {
  return "account" in channel && "parts" in channel && "send" in channel;
}

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #receipts: Receipts | null;
  readonly #stopReading = new AbortController();
  readonly #stopSending = new AbortController();
  /** What the channel cannot say itself; null while it speaks for itself. */
  #state: ChannelHealth | null = { state: "starting" };
  #life: Promise<void> | null = null;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    const { channel, outbox, clock } = deps;
    this.#receipts = isOutboxChannel(channel) ? new Receipts({ account: channel.account, outbox, clock }) : null;
  }

  /** Returns when the channel runs, stands by or has failed for the first time. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#life ??= this.#live(resolve).catch((error: unknown) => {
        this.#state = this.#couldNotStart(error);
        resolve();
      });
    });
  }

  health(): ChannelHealth {
    return this.#state ?? this.#deps.channel.health();
  }

  /** Nothing new is read, what is in flight ends within `drainMs`, the ownership goes back, the channel stops. */
  async stop(): Promise<void> {
    this.#stopReading.abort();
    const over = new AbortController();
    const { clock, settings } = this.#deps;
    const drain = clock.sleep(settings.drainMs, over.signal).then(() => this.#stopSending.abort());
    // A channel whose start never returns must not keep the process.
    await Promise.race([this.#life, clock.sleep(settings.drainMs + STOP_LIMIT_MS, over.signal)]);
    over.abort();
    await drain;
    await this.#stopChannel();
    this.#state = { state: "stopped" };
  }

  async #live(onFirst: () => void): Promise<void> {
    const { clock } = this.#deps;
    const stopped = this.#stopReading.signal;
    for (let tries = 1; !stopped.aborted; tries += 1) {
      const ownership = await this.#own(onFirst);
      if (stopped.aborted && ownership === null) return;
      const startedMs = clock.nowMs();
      let failed = await this.#tryStart();
      onFirst();
      if (failed === null) failed = await this.#serve(ownership);
      if (clock.nowMs() - startedMs > STEADY_MS) tries = 1;
      await this.#step("give the account back", () => ownership?.giveBack());
      if (stopped.aborted) return;
      this.#state = failed ?? { state: "standby" };
      await this.#stopChannel();
      await clock.sleep(waitMsOf(failed, tries), stopped);
    }
  }

  async #own(onFirst: () => void): Promise<Ownership | null> {
    const { channel, outbox, clock, settings, context } = this.#deps;
    if (!isOutboxChannel(channel)) return null;
    const deps = { outbox, account: channel.account, leaseMs: settings.leaseMs, clock, logger: context.logger };
    return takeOwnership(deps, this.#stopReading.signal, () => {
      // A failure stays to be seen until the channel has been started again.
      if (this.#state?.state !== "failed") this.#state = { state: "standby" };
      onFirst();
    });
  }

  /** Null when it has started. */
  async #tryStart(): Promise<Failed | null> {
    try {
      await this.#deps.channel.start(this.#deps.context);
      this.#state = null;
      return null;
    } catch (error) {
      this.#state = this.#couldNotStart(error);
      return this.#state;
    }
  }

  /**
   * Returns when the channel failed (how), its account was lost, or the gateway stops and the lanes are through. What was
   * begun when a channel failed may still end: a channel that hears nothing may well be able to speak.
   */
  async #serve(ownership: Ownership | null): Promise<Failed | null> {
    const { channel, clock, context, settings } = this.#deps;
    const failed = new AbortController();
    const lost = ownership?.signal ?? failed.signal;
    const ended = AbortSignal.any([this.#stopReading.signal, failed.signal, lost]);
    const watching = this.#watch(ended).finally(() => failed.abort());
    if (ownership === null || this.#receipts === null || !isOutboxChannel(channel)) return watching;
    const over = new AbortController();
    const tooLate = new AbortController();
    const limit = watching.then(async (how) => {
      if (how !== null) await clock.sleep(settings.drainMs, over.signal);
      if (how !== null) tooLate.abort();
    });
    const stopSending = AbortSignal.any([this.#stopSending.signal, tooLate.signal]);
    const { logger } = context;
    const deps = { ...this.#deps, channel, logger, receipts: this.#receipts, sendTimeoutMs: settings.sendTimeoutMs };
    await serveAccount(deps, ownership, { stopReading: ended, stopSending });
    over.abort();
    await limit;
    return watching;
  }

  /** How the channel failed; null when something else ended. */
  async #watch(ended: AbortSignal): Promise<Failed | null> {
    const { channel, clock, settings, context } = this.#deps;
    while (!ended.aborted) {
      await clock.sleep(settings.watchMs, ended);
      const health = channel.health();
      // A deaf channel speaks for itself: its health is seen, its answers go out, and it listens again when it can.
      if (ended.aborted || health.state !== "failed" || health.isDeaf === true) continue;
      context.logger.error({ problem: health.problem }, "channel failed; it is started again");
      this.#state = health;
      return health;
    }
    return null;
  }

  /** In the channel's own words where it has some. */
  #couldNotStart(error: unknown): Failed {
    const { channel, context } = this.#deps;
    context.logger.error({ err: error }, "channel could not be started; trying again");
    const own = channel.health();
    if (own.state === "failed") return own;
    const reason = error instanceof Error ? redactText(error.message) : "unknown reason";
    const advice =
      error instanceof NanogateError
        ? error.advice
        : "It is tried again by itself; the log of the gateway has the reason.";
    return { state: "failed", problem: `${channel.name} could not be started: ${reason}`, advice };
  }

  #stopChannel(): Promise<void> {
    return this.#step("stop the channel", async () => {
      const over = new AbortController();
      const limit = this.#deps.clock.sleep(STOP_LIMIT_MS, over.signal).then(() => "late" as const);
      const how = await Promise.race([this.#deps.channel.stop(), limit]);
      over.abort();
      if (how === "late") this.#deps.context.logger.error({}, "channel did not stop in time");
    });
  }

  /** A step that fails is logged, and the next one runs. */
  async #step(what: string, work: () => Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#deps.context.logger.error({ err: error }, `could not ${what}`);
    }
  }
}

/** A lost account may be taken again at once, the first time. */
function waitMsOf(failed: Failed | null, tries: number): number {
  if (failed?.isPermanent === true) return PERMANENT_MS;
  const step = failed === null ? tries - 1 : tries;
  return step === 0 ? 0 : backOffMs(step, MAX_BACK_OFF_MS);
}

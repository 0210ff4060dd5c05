/**
 * The life of one channel: started, watched, started again with back-off, stopped in order. A channel with an outbox
 * first gets the ownership of its account and stands by until then. It knows no platform. Invariant: whatever a channel
 * does, its supervisor neither throws nor touches another channel.
 */
import type { OutboxStore } from "../bus/delivery-ports.js";
import { NanogateError } from "../errors.js";
import type { FaultHook } from "../faults.js";
import { type Logger, redactText } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Channel, ChannelContext, ChannelHealth, OutboxChannel } from "./channel.js";
import { backOffMs, type Clock } from "./clock.js";
import { consumeOutbox } from "./consumer.js";
import { Deliverer } from "./delivery.js";
import { type Ownership, takeOwnership } from "./ownership.js";

export interface SupervisorSettings {
  /** Length of an account's ownership. */
  leaseMs: number;
  /** How long lanes may finish what is in flight when the gateway stops. */
  drainMs: number;
  /** A send that takes longer has an unknown outcome. */
  sendTimeoutMs: number;
  /** How often a running channel is asked how it is. */
  watchMs: number;
}

export interface SupervisorDeps {
  channel: Channel;
  context: ChannelContext;
  outbox: OutboxStore;
  clock: Clock;
  faults: FaultHook;
  metrics: Metrics;
  settings: SupervisorSettings;
}

/** A channel that ran this long is no longer counted as failing. */
const STEADY_MS = 60_000;
/** Longest wait for a channel's own `stop`. */
const STOP_LIMIT_MS = 5_000;

/** True for a channel whose answers go through an outbox. */
export function isOutboxChannel(channel: Channel): channel is OutboxChannel {
  return "account" in channel && "parts" in channel && "send" in channel;
}

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #deliverer: Deliverer | null;
  readonly #stopReading = new AbortController();
  readonly #stopSending = new AbortController();
  readonly #logger: Logger;
  /** What the channel cannot say itself; null while it speaks for itself. */
  #state: ChannelHealth | null = { state: "starting" };
  #life: Promise<void> | null = null;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    this.#logger = deps.context.logger;
    const { channel, outbox, clock, faults, metrics, settings } = deps;
    this.#deliverer = isOutboxChannel(channel)
      ? new Deliverer({
          channel,
          outbox,
          clock,
          faults,
          metrics,
          logger: this.#logger,
          sendTimeoutMs: settings.sendTimeoutMs,
        })
      : null;
  }

  /** Returns when the channel runs, stands by or has failed for the first time. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#life ??= this.#live(resolve).catch((error: unknown) => {
        this.#fail(error);
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
    const stopped = this.#stopReading.signal;
    for (let tries = 1; !stopped.aborted; ) {
      const ownership = await this.#own(onFirst);
      if (stopped.aborted && ownership === null) return;
      const hasStarted = await this.#tryStart();
      onFirst();
      if (hasStarted) {
        const startedMs = this.#deps.clock.nowMs();
        await this.#serve(ownership);
        if (this.#deps.clock.nowMs() - startedMs > STEADY_MS) tries = 1;
      }
      await this.#step("give the account back", () => ownership?.giveBack());
      if (stopped.aborted) return;
      await this.#stopChannel();
      if (ownership?.signal.aborted && hasStarted && this.#state === null) continue;
      await this.#deps.clock.sleep(backOffMs(tries), stopped);
      tries += 1;
    }
  }

  async #own(onFirst: () => void): Promise<Ownership | null> {
    const { channel, outbox, clock, settings } = this.#deps;
    if (!isOutboxChannel(channel)) return null;
    const deps = { outbox, account: channel.account, leaseMs: settings.leaseMs, clock, logger: this.#logger };
    return takeOwnership(deps, this.#stopReading.signal, () => {
      this.#state = { state: "standby" };
      onFirst();
    });
  }

  async #tryStart(): Promise<boolean> {
    try {
      await this.#deps.channel.start(this.#deps.context);
      this.#state = null;
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  /** Returns when the channel failed, its account was lost, or the gateway stops and the lanes are through. */
  async #serve(ownership: Ownership | null): Promise<void> {
    const { channel, outbox, clock } = this.#deps;
    const failed = new AbortController();
    const lost = ownership?.signal ?? failed.signal;
    const ended = AbortSignal.any([this.#stopReading.signal, failed.signal, lost]);
    const watching = this.#watch(ended, () => failed.abort());
    if (ownership !== null && this.#deliverer !== null && isOutboxChannel(channel)) {
      const deps = { account: channel.account, outbox, deliverer: this.#deliverer, clock, logger: this.#logger };
      const stopSending = AbortSignal.any([this.#stopSending.signal, failed.signal]);
      await consumeOutbox(deps, ownership, { stopReading: ended, stopSending });
    }
    await watching;
  }

  async #watch(ended: AbortSignal, onFailed: () => void): Promise<void> {
    const { channel, clock, settings } = this.#deps;
    while (!ended.aborted) {
      await clock.sleep(settings.watchMs, ended);
      const health = channel.health();
      if (ended.aborted || health.state !== "failed") continue;
      this.#logger.error({ problem: health.problem }, "channel failed; it is started again");
      this.#state = health;
      onFailed();
    }
  }

  #fail(error: unknown): void {
    this.#logger.error({ err: error }, "channel could not be started; trying again");
    const reason = error instanceof Error ? redactText(error.message) : "unknown reason";
    const advice =
      error instanceof NanogateError
        ? error.advice
        : "It is tried again by itself; the log of the gateway has the reason.";
    this.#state = { state: "failed", problem: `${this.#deps.channel.name} could not be started: ${reason}`, advice };
  }

  #stopChannel(): Promise<void> {
    return this.#step("stop the channel", async () => {
      const over = new AbortController();
      const limit = this.#deps.clock.sleep(STOP_LIMIT_MS, over.signal).then(() => "late" as const);
      const how = await Promise.race([this.#deps.channel.stop(), limit]);
      over.abort();
      if (how === "late") this.#logger.error({}, "channel did not stop in time");
    });
  }

  /** A step that fails is logged, and the next one runs. */
  async #step(what: string, work: () => Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#logger.error({ err: error }, `could not ${what}`);
    }
  }
}

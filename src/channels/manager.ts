/**
 * The ChannelManager: every channel of this process under its own supervisor, all started and stopped side by side. It
 * names no platform. Invariant: one channel that fails, hangs or is slow changes nothing for another.
 */

import type { OutboxStore } from "../bus/delivery-ports.js";
import type { InboundMessage } from "../bus/messages.js";
import { NanogateError } from "../errors.js";
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Accepted, Channel, ChannelHealth } from "./channel.js";
import type { Clock } from "./clock.js";
import { Supervisor, type SupervisorSettings } from "./supervisor.js";

export interface ManagerDeps {
  channels: readonly Channel[];
  outbox: OutboxStore;
  /** Stores a message durably; see `ChannelContext.accept`. */
  accept: (message: InboundMessage) => Promise<Accepted>;
  logger: Logger;
  faults: FaultHook;
  metrics: Metrics;
  clock: Clock;
  settings: SupervisorSettings;
}

export class ChannelManager {
  readonly #supervisors: ReadonlyMap<string, Supervisor>;
  readonly #accept: ManagerDeps["accept"];
  #isRefusing = false;
  #stopped: Promise<void> | null = null;

  constructor(deps: ManagerDeps) {
    const { outbox, clock, faults, metrics, settings } = deps;
    this.#accept = deps.accept;
    this.#supervisors = new Map(
      deps.channels.map((channel) => {
        const logger = deps.logger.child({ channel: channel.name });
        const context = { accept: (message: InboundMessage) => this.#takeIn(message), logger };
        return [channel.name, new Supervisor({ channel, context, outbox, clock, faults, metrics, settings })];
      }),
    );
  }

  /** Returns when each channel runs, stands by or has failed for the first time; failed ones are tried again. */
  async start(): Promise<void> {
    if (this.#stopped !== null) return;
    await Promise.all([...this.#supervisors.values()].map((supervisor) => supervisor.start()));
  }

  /** Takes nothing new in from now on; answers to what was taken in still go out. */
  refuseNew(): void {
    this.#isRefusing = true;
  }

  /** Takes nothing new in and returns when every channel has stopped. Idempotent. */
  stop(): Promise<void> {
    this.refuseNew();
    this.#stopped ??= Promise.all([...this.#supervisors.values()].map((supervisor) => supervisor.stop())).then(
      () => {},
    );
    return this.#stopped;
  }

  /** How each channel is, by name. */
  health(): ReadonlyMap<string, ChannelHealth> {
    return new Map([...this.#supervisors].map(([name, supervisor]) => [name, supervisor.health()]));
  }

  async #takeIn(message: InboundMessage): Promise<Accepted> {
    if (this.#isRefusing) throw new NanogateError("BUS_UNAVAILABLE", "the gateway is stopping");
    return this.#accept(message);
  }
}

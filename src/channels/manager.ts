/**
 * The ChannelManager: every channel of this process under its own supervisor, all started and stopped side by side. It
 * names no platform. Invariant: one channel that fails, hangs or is slow changes nothing for another.
 */

import type { InboundMessage } from "../bus/messages.js";
import { NanogateError } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Accepted, Admission, Channel, ChannelContext, ChannelHealth, Knock } from "./channel.js";
import type { AccountMemory, MediaShelf } from "./ports.js";
import { isOutboxChannel, Supervisor, type SupervisorDeps } from "./supervisor.js";

export interface ManagerDeps extends Omit<SupervisorDeps, "channel" | "context"> {
  channels: readonly Channel[];
  /** Stores a message durably; see `ChannelContext.accept`. */
  accept: (message: InboundMessage) => Promise<Accepted>;
  /** Whether somebody may speak in a channel; see `ChannelContext.admit`. */
  admit: (channel: string, knock: Knock) => Promise<Admission>;
  media: MediaShelf;
  /** What an account must know again; channels without an account go by their name. */
  memory: (account: string) => AccountMemory;
  logger: Logger;
}

export class ChannelManager {
  readonly #supervisors: ReadonlyMap<string, Supervisor>;
  readonly #contexts: ReadonlyMap<string, ChannelContext>;
  readonly #deps: ManagerDeps;
  #isRefusing = false;
  #stopped: Promise<void> | null = null;

  constructor(deps: ManagerDeps) {
    this.#deps = deps;
    this.#contexts = new Map(deps.channels.map((channel) => [channel.name, this.#makeContext(channel)]));
    this.#supervisors = new Map(
      deps.channels.map((channel) => {
        const context = this.#contexts.get(channel.name) ?? this.#makeContext(channel);
        return [channel.name, new Supervisor({ ...deps, channel, context })];
      }),
    );
  }

  /**
   * What a channel is given, also for what reaches a process that stands by: taking in needs no ownership. Null for a channel
   * that is not here.
   */
  contextOf(name: string): ChannelContext | null {
    return this.#contexts.get(name) ?? null;
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

  #makeContext(channel: Channel): ChannelContext {
    const { accept, admit, media, memory, logger } = this.#deps;
    return {
      accept: (message) => this.#unlessStopping(() => accept(message)),
      admit: (knock) => this.#unlessStopping(() => admit(channel.name, knock)),
      media,
      memory: memory(isOutboxChannel(channel) ? channel.account : channel.name),
      logger: logger.child({ channel: channel.name }),
    };
  }

  async #unlessStopping<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isRefusing) throw new NanogateError("BUS_UNAVAILABLE", "the gateway is stopping");
    return work();
  }
}

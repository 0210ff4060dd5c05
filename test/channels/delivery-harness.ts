/** A manager over one recording channel, an outbox in memory and a clock that the test moves. */
import { asSessionKey } from "../../src/bus/messages.js";
import type { Channel } from "../../src/channels/channel.js";
import { ChannelManager } from "../../src/channels/manager.js";
import type { SupervisorSettings } from "../../src/channels/supervisor.js";
import type { FaultHook } from "../../src/faults.js";
import { createLogger } from "../../src/logger.js";
import { MemoryAccount, noShelf } from "../fakes/channel-context.js";
import { KeptMetrics } from "../fakes/kept-metrics.js";
import { ManualClock, settle } from "../fakes/manual-clock.js";
import { MemoryLimiter } from "../fakes/memory-limiter.js";
import { MemoryLive } from "../fakes/memory-live.js";
import { MemoryOutbox } from "../fakes/memory-outbox.js";
import { outbound, outboxRoute } from "../fakes/outbound.js";
import { RecordingChannel } from "../fakes/recording-channel.js";

export const SETTINGS: SupervisorSettings = { leaseMs: 15_000, drainMs: 25_000, sendTimeoutMs: 60_000, watchMs: 1_000 };

export class Delivering {
  readonly clock = new ManualClock();
  readonly outbox = new MemoryOutbox(() => this.clock.nowMs());
  readonly limiter = new MemoryLimiter(() => this.clock.nowMs());
  readonly live = new MemoryLive();
  readonly memories = new Map<string, MemoryAccount>();
  readonly channel = new RecordingChannel();
  readonly faults: string[] = [];
  readonly metrics = new KeptMetrics();
  /** Lines of the log, from info up. */
  readonly log: string[] = [];
  readonly #managers: ChannelManager[] = [];

  manager(process = "one", channels: readonly Channel[] = [this.channel], settings = SETTINGS): ChannelManager {
    const faults: FaultHook = (point) => this.faults.push(`${point} after ${this.channel.got.at(-1)}`);
    const manager = new ChannelManager({
      channels,
      outbox: this.outbox.process(process),
      accept: async () => ({ status: "stored", sessionKey: asSessionKey("s"), turnId: "t" }),
      admit: async () => ({ kind: "admitted", isOwner: false }),
      media: noShelf(),
      memory: (account) => this.#memory(account),
      limiter: this.limiter,
      live: this.live,
      wallMs: () => this.clock.nowMs(),
      logger: createLogger({ level: "info", secrets: [], destination: { write: (line) => this.log.push(line) } }),
      faults,
      metrics: this.metrics,
      clock: this.clock,
      settings,
    });
    this.#managers.push(manager);
    return manager;
  }

  /** Puts a message for a chat; its text is its id, parts are divided by `|`. */
  put(chatId: string, text: string, threadId?: string): void {
    const thread = threadId === undefined ? {} : { threadId };
    const route = { ...outboxRoute(chatId), ...thread };
    this.outbox.put({ route, message: { ...outbound(text), chatId, ...thread } });
  }

  /** Receipts of a message by part: the platform's id, or `?` where unknown. */
  receipts(id: string): string[] {
    return [...(this.outbox.receipts.get(id) ?? [])].map(([part, receipt]) => {
      if (receipt.state === "sent") return `${part}:${receipt.platformId}`;
      return receipt.state === "unknown" ? `${part}:?` : `${part}:${receipt.state}`;
    });
  }

  #memory(account: string): MemoryAccount {
    const memory = this.memories.get(account) ?? new MemoryAccount();
    this.memories.set(account, memory);
    return memory;
  }

  settle = settle;

  /** Ends whatever still runs. */
  async close(): Promise<void> {
    this.outbox.failure = null;
    const stopping = Promise.all(this.#managers.map((manager) => manager.stop()));
    for (let i = 0; i < 4; i += 1) await this.clock.advance(20_000);
    await stopping;
  }
}

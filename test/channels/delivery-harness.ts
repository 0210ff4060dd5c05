/** A manager over one recording channel, an outbox in memory and a clock that the test moves. */
import { asSessionKey } from "../../src/bus/messages.js";
import type { Channel } from "../../src/channels/channel.js";
import { ChannelManager } from "../../src/channels/manager.js";
import type { SupervisorSettings } from "../../src/channels/supervisor.js";
import type { FaultHook } from "../../src/faults.js";
import { createLogger } from "../../src/logger.js";
import { KeptMetrics } from "../fakes/kept-metrics.js";
import { ManualClock, settle } from "../fakes/manual-clock.js";
import { MemoryOutbox } from "../fakes/memory-outbox.js";
import { outbound, outboxRoute } from "../fakes/outbound.js";
import { RecordingChannel } from "../fakes/recording-channel.js";

export const SETTINGS: SupervisorSettings = { leaseMs: 15_000, drainMs: 25_000, sendTimeoutMs: 60_000, watchMs: 1_000 };

export class Delivering {
  readonly clock = new ManualClock();
  readonly outbox = new MemoryOutbox(() => this.clock.nowMs());
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
  put(chatId: string, text: string): void {
    this.outbox.put({ route: outboxRoute(chatId), message: { ...outbound(text), chatId } });
  }

  /** Receipts of a message by part: the platform's id, or `?` where unknown. */
  receipts(id: string): string[] {
    return [...(this.outbox.receipts.get(id) ?? [])].map(([part, receipt]) =>
      receipt.state === "sent" ? `${part}:${receipt.platformId}` : `${part}:?`,
    );
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

/** The stage of the channel contract: the real manager over one channel, an outbox, live events and limits in memory, real time. */
import pino from "pino";
import { asSessionKey, type InboundMessage, type OutboundEvent, type OutboundMessage } from "../../src/bus/messages.js";
import { createSystemClock } from "../../src/channels/clock.js";
import { ChannelManager } from "../../src/channels/manager.js";
import { noFaults } from "../../src/faults.js";
import { noMetrics } from "../../src/metrics.js";
import { MemoryAccount } from "../fakes/channel-context.js";
import { MemoryLimiter } from "../fakes/memory-limiter.js";
import { MemoryLive } from "../fakes/memory-live.js";
import { MemoryOutbox } from "../fakes/memory-outbox.js";
import type { ChannelHarness, Place } from "./channel.js";

/** Something that somebody said, and the turn it started. */
export interface Question {
  message: InboundMessage;
  turnId: string;
}

const LIMIT_MS = 15_000;
const SETTINGS = { leaseMs: 15_000, drainMs: 5_000, sendTimeoutMs: 10_000, watchMs: 200 };

export class ChannelStage {
  readonly outbox = new MemoryOutbox(() => performance.now());
  readonly live = new MemoryLive();
  readonly #heard: Question[] = [];
  readonly #on: ChannelHarness;
  readonly #manager: ChannelManager;
  #turns = 0;
  #seq = 0;

  private constructor(on: ChannelHarness) {
    this.#on = on;
    const memory = new MemoryAccount();
    this.#manager = new ChannelManager({
      channels: [on.channel],
      outbox: this.outbox.process("contract"),
      accept: async (message) => {
        const turnId = `t${this.#turns++}`;
        this.#heard.push({ message, turnId });
        return { status: "stored", sessionKey: asSessionKey("s"), turnId };
      },
      admit: async () => ({ kind: "admitted", isOwner: false }),
      media: on.media,
      memory: () => memory,
      limiter: new MemoryLimiter(() => performance.now()),
      live: this.live,
      wallMs: Date.now,
      logger: pino({ level: "silent" }),
      faults: noFaults,
      metrics: noMetrics,
      clock: createSystemClock(),
      settings: SETTINGS,
    });
  }

  static async start(on: ChannelHarness): Promise<ChannelStage> {
    const stage = new ChannelStage(on);
    await stage.#manager.start();
    const { name, account } = on.channel;
    await stage.until(() => stage.#manager.health().get(name)?.state === "running");
    await stage.until(() => stage.live.followers(account) === 1);
    return stage;
  }

  async ask(place: Place, text: string): Promise<Question> {
    await this.#on.say(place, text);
    return this.heard();
  }

  /** The next message that the channel handed in. */
  async heard(): Promise<Question> {
    await this.until(() => this.#heard.length > 0);
    const [first] = this.#heard.splice(0, 1);
    if (first === undefined) throw new Error("nothing was heard");
    return first;
  }

  /** Puts an answer into the outbox. */
  answer(question: Question, content: string, more: Partial<OutboundMessage> = {}): void {
    const message = this.#say(question, content, { type: "final", streamId: null });
    this.outbox.put({ route: question.message.route, message: { ...message, ...more } });
  }

  working(question: Question): void {
    this.live.publish(question.message.route.account, { ...this.#say(question, "", { type: "typing" }), seq: 1 });
  }

  stream(question: Question): { add(text: string): void; answer(content: string): void } {
    const { route } = question.message;
    const streamId = `${question.turnId}.0.s`;
    let offset = 0;
    return {
      add: (text) => {
        this.live.publish(route.account, this.#say(question, text, { type: "delta", streamId, offset }));
        offset += text.length;
      },
      answer: (content) => {
        const message = this.#say(question, content, { type: "final", streamId });
        this.outbox.put({ route: { ...route, isStreaming: true }, message });
      },
    };
  }

  #say(question: Question, content: string, event: OutboundEvent): OutboundMessage {
    const { channel, chatId, threadId, messageId } = question.message.route;
    this.#seq += 1;
    return {
      id: `${question.turnId}.${this.#seq}`,
      channel,
      chatId,
      ...(threadId === undefined ? {} : { threadId }),
      ...(messageId === undefined ? {} : { replyTo: messageId }),
      content,
      media: [],
      buttons: [],
      event,
      turnId: question.turnId,
      seq: this.#seq + 1,
      metadata: {},
    };
  }

  /** Everything in the outbox has been delivered or given up. */
  isDone(): Promise<void> {
    return this.until(() => this.outbox.entries.length === 0);
  }

  async until(condition: () => boolean): Promise<void> {
    const deadline = performance.now() + LIMIT_MS;
    while (!condition()) {
      if (performance.now() > deadline) throw new Error(`it did not come true in time: ${this.#picture()}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Long enough for something that must not happen. */
  pause(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, 100));
  }

  #picture(): string {
    const shown = this.#on.places.map((place) => [place, this.#on.shown(place)]);
    const waiting = this.outbox.entries.map(({ outgoing }) => outgoing.message.content.slice(0, 40));
    const health = this.#manager.health().get(this.#on.channel.name);
    return JSON.stringify({ shown, waiting, dead: this.outbox.deadLetters, health }).slice(0, 2_000);
  }

  async close(): Promise<void> {
    await this.#manager.stop();
  }
}

/**
 * The chats' event logs in memory, as the port asks for them: numbers without holes, a bound, epochs, followers that may
 * miss events while their connection is cut. It fakes no delay of its own; `beforeRead` and `afterRead` are a test's to set.
 */

import type { ChatEvent, ChatEvents, ChatHead } from "../../src/bus/delivery-ports.js";
import type { OutboundMessage } from "../../src/bus/messages.js";

interface Log {
  events: ChatEvent[];
  seq: number;
  /** Epoch → the number at which it began. */
  epochs: Map<number, number>;
}

type Listener = (event: ChatEvent) => void;

/** What several processes share. */
export class MemoryChatLogs {
  readonly #logs = new Map<string, Log>();
  readonly #owners = new Map<string, string>();
  readonly #processes = new Set<MemoryChatEvents>();
  epoch = 1;

  constructor(readonly keep = 10_000) {}

  /** The port as one process sees it. */
  process(): MemoryChatEvents {
    const events = new MemoryChatEvents(this);
    this.#processes.add(events);
    return events;
  }

  log(account: string, chatId: string): Log {
    const key = `${account} ${chatId}`;
    const log = this.#logs.get(key) ?? { events: [], seq: 0, epochs: new Map([[this.epoch, 0]]) };
    this.#logs.set(key, log);
    if (!log.epochs.has(this.epoch)) log.epochs.set(this.epoch, log.seq);
    return log;
  }

  append(account: string, chatId: string, message: OutboundMessage): ChatEvent {
    const log = this.log(account, chatId);
    log.seq += 1;
    const event = { seq: log.seq, message };
    log.events.push(event);
    if (log.events.length > this.keep) log.events.shift();
    for (const process of this.#processes) process.signal(account, chatId, event);
    return event;
  }

  /** The store comes back as another server without its last `count` events of a chat. */
  loseTail(account: string, chatId: string, count: number): void {
    const log = this.log(account, chatId);
    log.events.splice(Math.max(0, log.events.length - count));
    log.seq -= count;
    this.epoch += 1;
    log.epochs.set(this.epoch, log.seq);
  }

  claim(account: string, chatId: string, identity: string): string {
    const key = `${account} ${chatId}`;
    const owner = this.#owners.get(key) ?? identity;
    this.#owners.set(key, owner);
    return owner;
  }
}

export class MemoryChatEvents implements ChatEvents {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #reconnects = new Set<() => void>();
  #isCut = false;
  /** Every read waits for this, if set; a test's way to decide what happens meanwhile. */
  beforeRead: (() => Promise<void>) | null = null;
  /** The log has answered, and the answer is on its way while this lasts. */
  afterRead: (() => Promise<void>) | null = null;
  /** Thrown by every method while set. */
  failure: Error | null = null;
  reads = 0;
  /** Events that one read gives at most. */
  portion = Number.POSITIVE_INFINITY;

  constructor(readonly logs: MemoryChatLogs) {}

  get followed(): number {
    return [...this.#listeners.values()].filter((set) => set.size > 0).length;
  }

  async head(account: string, chatId: string): Promise<ChatHead> {
    if (this.failure) throw this.failure;
    return { epoch: this.logs.epoch, seq: this.logs.log(account, chatId).seq };
  }

  async read(account: string, chatId: string, after: number, epoch: number | null) {
    const answer = await this.#answer(account, chatId, { after, epoch });
    await this.afterRead?.();
    return answer;
  }

  async #answer(account: string, chatId: string, { after, epoch }: { after: number; epoch: number | null }) {
    this.reads += 1;
    const log = this.logs.log(account, chatId);
    await this.beforeRead?.();
    if (this.failure) throw this.failure;
    const head = { epoch: this.logs.epoch, seq: log.seq };
    const survived = Math.min(...[...log.epochs].filter(([e]) => e > (epoch ?? head.epoch)).map(([, seq]) => seq));
    const oldest = log.events[0]?.seq ?? log.seq + 1;
    if (after > survived || after > log.seq || after + 1 < oldest) return { kind: "resync" as const, head };
    return {
      kind: "events" as const,
      head,
      events: log.events.filter((event) => event.seq > after && event.seq <= after + this.portion),
    };
  }

  async follow(account: string, chatId: string, onEvent: Listener): Promise<() => Promise<void>> {
    if (this.failure) throw this.failure;
    const key = `${account} ${chatId}`;
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(onEvent));
    return async () => {
      listeners.delete(onEvent);
    };
  }

  onReconnect(listener: () => void): () => void {
    this.#reconnects.add(listener);
    return () => this.#reconnects.delete(listener);
  }

  async claim(account: string, chatId: string, identity: string): Promise<string> {
    if (this.failure) throw this.failure;
    return this.logs.claim(account, chatId, identity);
  }

  signal(account: string, chatId: string, event: ChatEvent): void {
    if (this.#isCut) return;
    for (const listener of this.#listeners.get(`${account} ${chatId}`) ?? []) listener(event);
  }

  /** Live events stop coming. */
  cut(): void {
    this.#isCut = true;
  }

  /** Live events come again and nobody is told. */
  restore(): void {
    this.#isCut = false;
  }

  /** Live events come again; followers are told. */
  reconnect(): void {
    this.restore();
    for (const listener of this.#reconnects) listener();
  }
}

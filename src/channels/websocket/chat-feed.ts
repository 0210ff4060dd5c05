/**
 * One followed chat of this process, shared by all its connections. It reads the log once for all of them, keeps no
 * history and knows no socket. Invariant: a follower gets every event above its place once, in order and without a gap,
 * or is told to `resync`; live signals only hasten this, the log decides.
 */
import type { Logger } from "../../logger.js";
import type { Follower, Position } from "./follower.js";
import type { ChatEvent, ChatHead, ChatLog, ChatRead } from "./ports.js";

export interface FeedDeps {
  log: ChatLog;
  account: string;
  chatId: string;
  render: (event: ChatEvent) => string | null;
  logger: Logger;
  /** Wait before the log is read again after a failure. */
  retryMs: number;
}

/** Live events kept while the log is read; more than these are read from the log again. */
const MAX_HELD = 1024;

export class ChatFeed {
  readonly #deps: FeedDeps;
  readonly #group = new Map<Follower, ChatHead>();
  readonly #held = new Map<number, ChatEvent>();
  #head: ChatHead = { epoch: 0, seq: 0 };
  #started: Promise<void> | null = null;
  #unfollow: (() => Promise<void>) | null = null;
  #isReading = false;
  #mustRead = false;
  #isClosed = false;
  #retry: NodeJS.Timeout | null = null;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
  }

  /** Brings a follower from its position (null: from now on) to the present, then keeps it there. */
  async join(follower: Follower, from: Position | null): Promise<void> {
    await this.#start();
    const place = await this.#enter(follower, from);
    while (!follower.isGone() && this.#isBehind(place)) {
      const { epoch, seq } = place;
      const got = await this.#read(seq, epoch);
      await this.#replay(follower, place, got);
      if (place.epoch === epoch && place.seq === seq) this.#giveUpGap(follower, place);
    }
    if (follower.isGone() || this.#isClosed) return;
    this.#group.set(follower, place);
    if (place.epoch > this.#head.epoch || place.seq > this.#head.seq) this.catchUp();
  }

  /** Tells a follower that is here already where it stands; false when it is not here. */
  announce(follower: Follower): boolean {
    const place = this.#group.get(follower);
    if (place !== undefined) follower.attached({ epoch: place.epoch, seq: place.seq });
    return place !== undefined;
  }

  leave(follower: Follower): void {
    this.#group.delete(follower);
  }

  /** Reads what live signals may have missed; called after each reconnect. */
  catchUp(): void {
    this.#mustRead = true;
    if (this.#isReading || this.#isClosed || this.#unfollow === null) return;
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    this.#readUntilCurrent().catch((error: unknown) => {
      this.#deps.logger.warn({ err: error, chatId: this.#deps.chatId }, "chat log could not be read; trying again");
      if (!this.#isClosed) this.#retry = setTimeout(() => this.catchUp(), this.#deps.retryMs).unref();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#group.clear();
    await this.#endFollowing();
  }

  async #endFollowing(): Promise<void> {
    const unfollow = this.#unfollow;
    this.#unfollow = null;
    await unfollow?.();
  }

  /** Follow first, then ask where the log stands: what comes between is held, so nothing falls in between. */
  #start(): Promise<void> {
    this.#started ??= this.#begin().catch((error: unknown) => {
      this.#started = null;
      throw error;
    });
    return this.#started;
  }

  async #begin(): Promise<void> {
    const { log, account, chatId } = this.#deps;
    this.#isReading = true;
    try {
      this.#unfollow ??= await log.follow(account, chatId, (event) => this.#onEvent(event));
      this.#head = await log.head(account, chatId);
    } finally {
      this.#isReading = false;
      if (this.#isClosed) await this.#endFollowing();
    }
    this.#takeHeld(new Set());
    if (this.#mustRead) this.catchUp();
  }

  #onEvent(event: ChatEvent): void {
    if (this.#isClosed) return;
    if (this.#isReading) this.#hold(event);
    else if (event.seq === this.#head.seq + 1) this.#dispatch(event);
    else if (event.seq > this.#head.seq) {
      this.#hold(event);
      this.catchUp();
    }
  }

  #hold(event: ChatEvent): void {
    this.#held.set(event.seq, event);
    if (this.#held.size <= MAX_HELD) return;
    this.#held.clear();
    this.#mustRead = true;
  }

  async #readUntilCurrent(): Promise<void> {
    this.#isReading = true;
    try {
      while (this.#mustRead && !this.#isClosed) {
        this.#mustRead = false;
        const before = new Set(this.#held.keys());
        this.#take(await this.#read(this.#head.seq, this.#head.epoch));
        this.#takeHeld(before);
      }
    } finally {
      this.#isReading = false;
    }
  }

  /** Events that follow `after` without a hole, or a resync: also for a reader ahead of the log, who saw what was lost. */
  async #read(after: number, epoch: number | null): Promise<ChatRead> {
    const got = await this.#deps.log.read(this.#deps.account, this.#deps.chatId, after, epoch);
    if (got.kind === "resync") return got;
    const events = got.events.filter((event) => event.seq > after);
    const isWhole = events.every((event, i) => event.seq === after + 1 + i);
    const isCurrent = events.length > 0 || got.head.seq === after;
    return isWhole && isCurrent ? { ...got, events } : { kind: "resync", head: got.head };
  }

  #take(got: ChatRead): void {
    if (got.kind === "resync") {
      this.#resync(got.head);
      return;
    }
    for (const event of got.events) this.#dispatch(event);
    this.#head = { epoch: got.head.epoch, seq: this.#head.seq };
    // A log may answer in portions.
    if (this.#head.seq < got.head.seq) this.#mustRead = true;
    for (const place of this.#group.values()) place.epoch = Math.max(place.epoch, got.head.epoch);
  }

  /**
   * Goes on with what was held. `before`: numbers held before the last read began; that read would have covered them,
   * so those still beyond a gap belong to a log that is no more. Later ones ask for another read.
   */
  #takeHeld(before: ReadonlySet<number>): void {
    for (const seq of [...this.#held.keys()].sort((a, b) => a - b)) {
      const event = this.#held.get(seq);
      if (event?.seq === this.#head.seq + 1) this.#dispatch(event);
      if (seq <= this.#head.seq || before.has(seq)) this.#held.delete(seq);
      else this.#mustRead = true;
    }
  }

  #dispatch(event: ChatEvent): void {
    this.#head = { epoch: this.#head.epoch, seq: event.seq };
    const text = this.#deps.render(event);
    for (const [follower, place] of this.#group) {
      if (event.seq <= place.seq) continue;
      place.seq = event.seq;
      if (text !== null) follower.deliver(text);
    }
  }

  #resync(head: ChatHead): void {
    this.#head = head;
    for (const [follower, place] of this.#group) {
      if (place.epoch === head.epoch && place.seq >= head.seq) continue;
      Object.assign(place, head);
      follower.resync(head);
    }
  }

  /** The log no longer has what this feed has already passed on. */
  #giveUpGap(follower: Follower, place: ChatHead): void {
    Object.assign(place, this.#head);
    follower.resync(this.#head);
  }

  #isBehind(place: ChatHead): boolean {
    if (place.epoch !== this.#head.epoch) return place.epoch < this.#head.epoch;
    return place.seq < this.#head.seq;
  }

  async #enter(follower: Follower, from: Position | null): Promise<ChatHead> {
    const { log, account, chatId } = this.#deps;
    if (from === null) {
      const head = await log.head(account, chatId);
      follower.attached(head);
      return { ...head };
    }
    const got = await this.#read(from.after, from.epoch);
    const place = { epoch: got.head.epoch, seq: from.after };
    if (got.kind === "events") follower.attached(got.head);
    await this.#replay(follower, place, got);
    return place;
  }

  async #replay(follower: Follower, place: ChatHead, got: ChatRead): Promise<void> {
    place.epoch = got.head.epoch;
    if (got.kind === "resync") {
      place.seq = got.head.seq;
      follower.resync(got.head);
      return;
    }
    for (const event of got.events) {
      if (follower.isGone()) return;
      const text = this.#deps.render(event);
      place.seq = event.seq;
      if (text !== null) follower.deliver(text);
      await follower.flushed();
    }
  }
}

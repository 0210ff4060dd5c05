/**
 * A WebSocket client as an application would write it: it stays attached to one chat, reconnects to whatever gateway it is
 * given, resumes after the last number it has, and keeps every event once. It fails on a gap or a repeat.
 */
import { WebSocket } from "ws";

export interface WireEvent {
  event: string;
  seq?: number;
  chat_id?: string;
  id?: string;
  text?: string;
  turn_id?: string;
  stream_id?: string;
  message_ids?: string[];
  outcome?: string;
  code?: string;
  name?: string;
  phase?: string;
  epoch?: number;
  [field: string]: unknown;
}

export class Client {
  #socket: WebSocket | null = null;
  #lastSeq = 0;
  #epoch: number | null = null;
  readonly #watchers = new Set<() => void>();
  /** Numbered events, in order. */
  readonly events: WireEvent[] = [];
  /** Answers to this connection: accepted, errors, resync. */
  readonly replies: WireEvent[] = [];
  /** Gaps and repeats that were seen; a test asks for none. */
  readonly faults: string[] = [];

  constructor(
    readonly chatId: string,
    readonly clientId = "alice",
  ) {}

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Connects and attaches; returns when the chat is attached. */
  async connect(url: string): Promise<void> {
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.on("message", (data) => this.#take(JSON.parse(String(data)) as WireEvent));
    socket.on("error", () => this.#notify());
    socket.on("close", () => this.#notify());
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    const before = this.replies.length;
    const place = this.#epoch === null ? {} : { epoch: this.#epoch };
    this.#send({ type: "attach", chat_id: this.chatId, after: this.#lastSeq, ...place });
    await this.until(() =>
      this.replies.slice(before).some((reply) => reply.event === "attached" || reply.event === "resync"),
    );
  }

  get isConnected(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  disconnect(): void {
    this.#socket?.terminate();
  }

  /** Sends without waiting for anything. */
  post(content: string, id: string): void {
    this.#send({ type: "message", chat_id: this.chatId, content, id });
  }

  /** Sends and waits until it is accepted; throws on an error frame or a closed connection. */
  async say(content: string, id: string): Promise<string> {
    const before = this.replies.length;
    this.post(content, id);
    const reply = await this.until(() =>
      this.isConnected
        ? this.replies
            .slice(before)
            .find((each) => each.event === "error" || (each.event === "message_accepted" && each.id === id))
        : { event: "closed" },
    );
    if (reply.event !== "message_accepted") throw new Error(`not accepted: ${JSON.stringify(reply)}`);
    return reply.turn_id ?? "";
  }

  /** Waits until the turn that answers this message id has ended, and gives its end. */
  end(id: string): Promise<WireEvent> {
    return this.until(() => this.events.find((each) => each.event === "turn_end" && each.message_ids?.includes(id)));
  }

  /** Whole answers, in order: streamed ones that were not voided, and others. */
  get answers(): string[] {
    return this.events
      .filter((each) => (each.event === "stream_end" || each.event === "message") && each.turn_id !== undefined)
      .map((each) => each.text ?? "");
  }

  /** Waits until `probe` gives something; fails after 30 s. */
  until<T>(probe: () => T | undefined | false | null): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const value = probe();
        if (value === undefined || value === false || value === null) return;
        clearTimeout(timer);
        this.#watchers.delete(look);
        resolve(value);
      };
      const timer = setTimeout(() => {
        this.#watchers.delete(look);
        const tail = JSON.stringify({ events: this.events.slice(-8), replies: this.replies.slice(-5) });
        reject(new Error(`nothing came within 30 s; last seen: ${tail}`));
      }, 30_000);
      this.#watchers.add(look);
      look();
    });
  }

  #send(frame: object): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  #take(event: WireEvent): void {
    if (
      event.chat_id === this.chatId &&
      event.seq !== undefined &&
      event.event !== "attached" &&
      event.event !== "resync"
    ) {
      if (event.seq !== this.#lastSeq + 1)
        this.faults.push(`after ${this.#lastSeq} came ${event.seq} (${event.event})`);
      this.#lastSeq = event.seq;
      this.events.push(event);
    } else {
      if (event.event === "attached" || event.event === "resync") this.#epoch = event.epoch ?? null;
      if (event.event === "resync") this.#lastSeq = event.seq ?? 0;
      this.replies.push(event);
    }
    this.#notify();
  }

  #notify(): void {
    for (const look of [...this.#watchers]) look();
  }
}

/**
 * A gateway session of the fake Discord: its numbers, what it may see, and what it has to replay. It knows no socket.
 * Invariant: every event has the next number, and each one after the last that a client confirms is still there.
 */
import type { User, WorldEvent } from "./model.js";
import { messageEventWire } from "./wire.js";
import { Intent } from "./world.js";

/** A payload of the gateway. */
export interface Payload {
  op: number;
  d?: unknown;
  s?: number | null;
  t?: string | null;
}

/** Who takes payloads: a connection. */
export interface Outlet {
  send(payload: Payload): void;
}

export class GatewaySession {
  #seq = 0;
  readonly #events: Payload[] = [];
  outlet: Outlet | null = null;
  /** Since when it has no connection; null while it has one. */
  lostMs: number | null = null;
  /** Whether a RESUME is taken. */
  isGood = true;

  constructor(
    readonly id: string,
    readonly intents: number,
    private readonly bot: User,
  ) {}

  get seq(): number {
    return this.#seq;
  }

  /** Tells an event, if the intents cover it. */
  tell({ t, d, intents, message }: WorldEvent): void {
    if (intents !== 0 && (this.intents & intents) === 0) return;
    const readsContent = (this.intents & Intent.messageContent) !== 0;
    this.push(t, message === undefined ? d : messageEventWire(message, { readsContent, bot: this.bot }));
  }

  push(t: string, d: unknown): void {
    this.#seq += 1;
    const payload = { op: 0, t, s: this.#seq, d };
    this.#events.push(payload);
    this.outlet?.send(payload);
  }

  /** What came after this number. */
  since(seq: number): Payload[] {
    return this.#events.filter((payload) => Number(payload.s) > seq);
  }
}

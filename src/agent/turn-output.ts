/**
 * What a turn shows while it runs: deltas and tool events, put together for at most 50 ms and sent in order under the
 * lease. It decides nothing about answers; those leave with a settlement. Invariant: emissions keep the order of the
 * calls, each is numbered (higher than all of a former holder), and a stream that was begun is known to Redis until it is ended or voided.
 */
import type { Bus } from "../bus/bus.js";
import type { Outgoing, Route } from "../bus/messages.js";
import { hasCode } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Lease, OpenStream } from "../session/ports.js";
import { outgoingOf, type Utterance } from "./outgoing.js";

/** Deltas wait this long for company, ms. */
const GATHER_MS = 50;

export interface TurnOutputDeps {
  bus: Bus;
  lease: Lease;
  logger: Logger;
}

/** One output a lease: emissions are numbered through all its turns. */
export class TurnOutput {
  readonly #deps: TurnOutputDeps;
  #batch = 0;
  #seq: number;
  #waiting: Outgoing[] = [];
  #stream: OpenStream | null;
  #timer: NodeJS.Timeout | null = null;
  #lastSentMs = 0;
  #tail: Promise<void> = Promise.resolve();
  #failure: unknown = null;

  /** `open`: the stream a former holder left open. */
  constructor(deps: TurnOutputDeps, open: OpenStream | null) {
    this.#deps = deps;
    this.#stream = open;
    // A fence comes from a clock in microseconds: what a later holder says has a higher number.
    this.#seq = deps.lease.fence;
  }

  /** The stream that is shown and not yet ended. */
  get openStream(): OpenStream | null {
    return this.#stream;
  }

  /** An outgoing message of a turn, numbered. */
  outgoing(route: Route, turnId: string, said: Utterance): Outgoing {
    this.#seq += 1;
    return outgoingOf(route, { turnId, seq: this.#seq }, said);
  }

  /** Shows something soon: text of one stream is merged, anything else keeps its place. */
  show(next: Outgoing): void {
    const event = next.message.event;
    const last = this.#waiting.at(-1);
    if (event.type === "delta") {
      this.#stream = { streamId: event.streamId, turnId: next.message.turnId, route: next.route };
      if (last?.message.event.type === "delta" && last.message.event.streamId === event.streamId) {
        const message = { ...last.message, content: last.message.content + next.message.content };
        this.#waiting[this.#waiting.length - 1] = { ...last, message };
        return;
      }
    }
    if (event.type === "stream_end" || event.type === "stream_reset") this.#stream = null;
    this.#waiting.push(next);
    if (this.#timer !== null) return;
    const sinceMs = performance.now() - this.#lastSentMs;
    this.#timer = setTimeout(() => void this.flush().catch(() => "kept in #failure"), Math.max(0, GATHER_MS - sinceMs));
  }

  /** The open stream ends with the settlement that is being made. */
  endsWithSettlement(): void {
    this.#stream = null;
  }

  /** Sends what waits; returns when everything shown so far is out. Throws `LEASE_LOST`. */
  flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const outgoing = this.#waiting;
    const openStream = this.#stream;
    this.#waiting = [];
    if (outgoing.length > 0) {
      this.#lastSentMs = performance.now();
      this.#batch += 1;
      const batch = this.#batch;
      this.#tail = this.#tail.then(() => this.#emit({ batch, outgoing, openStream }));
    }
    return this.#tail.then(() => {
      if (this.#failure !== null) throw this.#failure;
    });
  }

  async #emit(what: { batch: number; outgoing: Outgoing[]; openStream: OpenStream | null }): Promise<void> {
    const { bus, lease, logger } = this.#deps;
    if (this.#failure !== null) return;
    try {
      await bus.emit({ key: lease.key, fence: lease.fence, ...what });
    } catch (error) {
      // Pieces of a stream may be lost: its end carries the whole text. A lost lease ends everything.
      if (hasCode(error, "BUS_UNAVAILABLE"))
        logger.warn(
          { err: error, session: lease.key, turn: what.outgoing[0]?.message.turnId },
          "events of a turn were lost",
        );
      else this.#failure = error;
    }
  }
}

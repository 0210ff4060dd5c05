/**
 * The writing side of one socket: frames out, and an end to those who do not read. It knows no chat. Invariant: a slow
 * reader costs at most `maxBufferedBytes` and the one frame above it; writing never throws.
 */
import type { WebSocket } from "ws";
import { type AnswerFrame, CLOSE } from "./wire.js";

/** Below this many waiting bytes a replay goes on without waiting. */
const LOW_WATER_BYTES = 262_144;

export interface OutletLimits {
  maxBufferedBytes: number;
  /** How long a closing socket may take to say goodbye, ms. */
  closeGraceMs: number;
}

export class Outlet {
  readonly #socket: WebSocket;
  readonly #limits: OutletLimits;
  #isEnding = false;

  constructor(socket: WebSocket, limits: OutletLimits) {
    this.#socket = socket;
    this.#limits = limits;
  }

  /** True from the moment nothing more is written. */
  get isEnding(): boolean {
    return this.#isEnding || this.#socket.readyState !== this.#socket.OPEN;
  }

  answer(frame: AnswerFrame): void {
    this.write(JSON.stringify(frame));
  }

  write(text: string): void {
    if (this.isEnding) return;
    this.#socket.send(text);
    if (this.#socket.bufferedAmount > this.#limits.maxBufferedBytes) this.end(CLOSE.overloaded, "reading too slowly");
  }

  /** Returns when little waits in this process; a ping travels behind all of it. */
  flushed(): Promise<void> {
    if (this.isEnding || this.#socket.bufferedAmount < LOW_WATER_BYTES) return Promise.resolve();
    return new Promise((resolve) => this.#socket.ping(undefined, undefined, () => resolve()));
  }

  /** Closes with a code, and without a goodbye when the other side takes too long. */
  end(code: number, reason: string): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#socket.close(code, reason);
    const grace = setTimeout(() => this.#socket.terminate(), this.#limits.closeGraceMs);
    this.#socket.once("close", () => clearTimeout(grace));
  }
}

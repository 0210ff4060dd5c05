/**
 * What is known of turns that are going on, from lossy events: the text of each stream, what is over. Pure state; it shows
 * nothing and asks nobody. Invariant: late events of what is over change nothing, a text is never shown with a hole in it,
 * and the memory it takes is bounded.
 */
import type { OutboundMessage } from "../bus/messages.js";

/** One stream as it is to be shown. */
export interface Stream {
  readonly id: string;
  readonly turnId: string;
  /** Its newest event: where it is, what it answers. */
  message: OutboundMessage;
  text: string;
  /** Pieces were lost: its end or its answer carries the whole. */
  hasGap: boolean;
  /** The segment is whole; it is not the answer. */
  isEnded: boolean;
  /** It is not shown any further: the platform does not want it. */
  isFrozen: boolean;
  /** What shows it, by the index of the part. `null`: not looked for yet. */
  shown: ShownPart[] | null;
  /** Changes that failed, one after the other. */
  failures: number;
  /** Grows with each change of the text. */
  version: number;
}

export interface ShownPart {
  platformId: string;
  /** What it shows, as JSON; "" when nobody knows. */
  shows: string;
}

interface Turn {
  readonly id: string;
  readonly streams: Map<string, Stream>;
  seq: number;
}

/** What an event means for those who show it. */
export type Change = "late" | "work" | { kind: "stream"; stream: Stream } | "over";

const MAX_TURNS = 2_000;
const MAX_OVER = 10_000;
/** A longer text is shown when it is whole, UTF-16 units. */
const MAX_TEXT = 200_000;

export class LiveTurns {
  readonly #turns = new Map<string, Turn>();
  /** Turn → the number up to which its events are late. */
  readonly #over = new Map<string, number>();

  /** Takes an event in. */
  apply(message: OutboundMessage): Change {
    const { event, turnId, seq } = message;
    if (event.type === "turn_end") {
      this.#close(turnId, Number.POSITIVE_INFINITY);
      return "over";
    }
    const turn = this.#turns.get(turnId);
    if (seq <= Math.max(this.#over.get(turnId) ?? -1, turn?.seq ?? -1)) return "late";
    const current = this.#touch(turn ?? { id: turnId, streams: new Map(), seq });
    current.seq = seq;
    switch (event.type) {
      case "delta":
        return { kind: "stream", stream: this.#grow(current, message, event) };
      case "stream_end":
        return { kind: "stream", stream: this.#end(current, message, event.streamId) };
      case "stream_reset":
        // Whatever shows it is found by the next stream of the turn, or by its answer.
        current.streams.delete(event.streamId);
        return "work";
      case "final":
      case "notice":
      case "typing":
      case "tool":
      case "reasoning_delta":
      case "reasoning_end":
        return "work";
      default:
        event satisfies never;
        return "late";
    }
  }

  /** An answer or a word of the gateway was delivered or given up: what came before it is late. */
  answered({ turnId, seq, event }: OutboundMessage): void {
    if (event.type === "final" && event.streamId !== null) this.forget(turnId, event.streamId);
    this.#close(turnId, seq);
  }

  /** Whether a turn has come to an end or an answer here. */
  knowsEndOf(turnId: string): boolean {
    return this.#over.has(turnId);
  }

  /** Whether there is still something to show of this stream. */
  has(stream: Stream): boolean {
    return this.#turns.get(stream.turnId)?.streams.get(stream.id) === stream;
  }

  /** Whether an answer stands behind this stream: what is there may still be changed, nothing new is sent. */
  isAnswered(stream: Stream): boolean {
    return stream.message.seq <= (this.#over.get(stream.turnId) ?? -1);
  }

  /** What is known of a stream. */
  stateOf(turnId: string, streamId: string): "open" | "ended" | "unknown" {
    const stream = this.#turns.get(turnId)?.streams.get(streamId);
    if (stream === undefined) return "unknown";
    return stream.isEnded ? "ended" : "open";
  }

  /** A stream needs nobody any more. */
  forget(turnId: string, streamId: string): void {
    const turn = this.#turns.get(turnId);
    turn?.streams.delete(streamId);
    if (turn !== undefined && turn.streams.size === 0 && this.knowsEndOf(turnId)) this.#turns.delete(turnId);
  }

  /** How many turns are held in memory. */
  get size(): number {
    return this.#turns.size;
  }

  #touch(turn: Turn): Turn {
    this.#turns.delete(turn.id);
    this.#turns.set(turn.id, turn);
    const [oldest] = this.#turns.keys();
    if (this.#turns.size > MAX_TURNS && oldest !== undefined) this.#turns.delete(oldest);
    return turn;
  }

  #close(turnId: string, seq: number): void {
    const before = this.#over.get(turnId) ?? -1;
    this.#over.delete(turnId);
    this.#over.set(turnId, Math.max(before, seq));
    const [oldest] = this.#over.keys();
    if (this.#over.size > MAX_OVER && oldest !== undefined) this.#over.delete(oldest);
    const turn = this.#turns.get(turnId);
    // A segment that is whole may still have its last change before it.
    for (const stream of [...(turn?.streams.values() ?? [])]) {
      if (!stream.isEnded && seq === Number.POSITIVE_INFINITY) turn?.streams.delete(stream.id);
    }
    if (turn?.streams.size === 0) this.#turns.delete(turnId);
  }

  #grow(turn: Turn, message: OutboundMessage, { streamId, offset }: { streamId: string; offset: number }): Stream {
    const stream = this.#streamOf(turn, message, streamId);
    if (offset > stream.text.length || stream.text.length > MAX_TEXT) stream.hasGap = true;
    else if (!stream.hasGap || offset === 0) {
      stream.hasGap = false;
      stream.text = stream.text.slice(0, offset) + message.content;
    }
    return stream;
  }

  #end(turn: Turn, message: OutboundMessage, streamId: string): Stream {
    const stream = this.#streamOf(turn, message, streamId);
    stream.text = message.content;
    stream.hasGap = false;
    stream.isEnded = true;
    return stream;
  }

  #streamOf(turn: Turn, message: OutboundMessage, id: string): Stream {
    const known = turn.streams.get(id);
    const fresh = { id, turnId: turn.id, message, text: "", hasGap: false, isEnded: false, isFrozen: false };
    const stream: Stream = known ?? { ...fresh, shown: null, failures: 0, version: 0 };
    turn.streams.set(id, stream);
    stream.message = message;
    stream.version += 1;
    return stream;
  }
}

/**
 * An independent reading of what a client was shown: does it tell each turn once? It knows the wire, not the gateway. A
 * turn may answer as often as it has messages (one that was steered), as the model peer speaks with nothing but answers.
 */
import type { WireEvent } from "./client.js";

interface Reading {
  /** Text shown so far, by stream that is open. */
  open: Map<string, string>;
  /** Streams that were ended or voided. */
  closed: Set<string>;
  /** Answers so far, by turn. */
  answers: Map<string, number>;
  ended: Set<string>;
  messages: Set<string>;
  faults: string[];
}

function readStream(event: WireEvent, at: string, reading: Reading): void {
  const { open, closed, faults } = reading;
  const id = event.stream_id ?? "";
  if (closed.has(id)) faults.push(`${at}: stream ${id} is over already`);
  const shown = open.get(id) ?? "";
  if (event.event === "delta") {
    open.set(id, shown + (event.text ?? ""));
    return;
  }
  if (event.event === "stream_end" && event.text?.startsWith(shown) !== true)
    faults.push(`${at}: its text is not what was shown`);
  open.delete(id);
  closed.add(id);
}

function readEnd(event: WireEvent, at: string, { ended, messages, answers, open, faults }: Reading): void {
  const ids = event.message_ids ?? [];
  const turn = event.turn_id ?? "";
  ended.add(turn);
  for (const id of ids) {
    if (messages.has(id)) faults.push(`${at}: message ${id} ended twice`);
    messages.add(id);
  }
  const count = answers.get(turn) ?? 0;
  if (count > ids.length) faults.push(`${at}: ${count} answers to ${ids.length} messages`);
  if (open.size > 0) faults.push(`${at}: streams are open: ${[...open.keys()].join(", ")}`);
}

function readEvent(event: WireEvent, at: string, reading: Reading): void {
  const turn = event.turn_id ?? "";
  if (turn !== "" && reading.ended.has(turn)) reading.faults.push(`${at}: turn ${turn} is over already`);
  if (event.event === "delta" || event.event.startsWith("stream_")) readStream(event, at, reading);
  if (event.event === "message" || event.event === "stream_end")
    reading.answers.set(turn, (reading.answers.get(turn) ?? 0) + 1);
  if (event.event === "turn_end") readEnd(event, at, reading);
}

/** What is wrong with the events of one chat; empty when each turn was told once and to its end. */
export function wireFaults(events: readonly WireEvent[]): string[] {
  const reading: Reading = {
    open: new Map(),
    closed: new Set(),
    answers: new Map(),
    ended: new Set(),
    messages: new Set(),
    faults: [],
  };
  for (const event of events) readEvent(event, `event ${event.seq} (${event.event})`, reading);
  const unfinished = [...reading.answers.keys()].filter((turn) => !reading.ended.has(turn));
  if (unfinished.length > 0) reading.faults.push(`turns without an end: ${unfinished.join(", ")}`);
  return reading.faults;
}

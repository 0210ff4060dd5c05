/** Rows as a turn stores them, for tests that begin where a dead holder stopped. Nothing is asserted here. */
import { type InboundMessage, inboundKeyOf, type TurnOutcome, turnIdOf } from "../../src/bus/messages.js";
import type { Row } from "../../src/session/row.js";

export interface TurnBuilder {
  turnId: string;
  user(...messages: InboundMessage[]): Row;
  calls(step: number, ...ids: string[]): Row;
  result(step: number, id: string): Row;
  wait(step: number, id: string, until: number): Row;
  final(step: number, text: string, outcome?: TurnOutcome): Row;
}

/** Rows of the turn that `first` begins; every call is one of a tool named `note`. */
export function turnOf(first: InboundMessage): TurnBuilder {
  const turnId = turnIdOf(inboundKeyOf(first));
  const usage = { inputTokens: 1, outputTokens: 1, estimated: false };
  return {
    turnId,
    user: (...messages) => ({
      role: "user",
      content: messages.map((message) => message.content).join("\n\n"),
      turn_id: turnId,
      step: 0,
      inbound_ids: messages.map(inboundKeyOf),
      client_ids: messages.map((message) => message.id),
    }),
    calls: (step, ...ids) => ({
      role: "assistant",
      content: null,
      turn_id: turnId,
      step,
      usage,
      tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "note", arguments: `{"id":"${id}"}` } })),
    }),
    result: (step, id) => ({
      role: "tool",
      content: `result of ${id}`,
      turn_id: turnId,
      step,
      tool_call_id: id,
      call_id: id,
      name: "note",
    }),
    wait: (step, id, until) => ({
      role: "wait",
      content: null,
      turn_id: turnId,
      step,
      call_id: id,
      wait_id: `w-${id}`,
      until,
    }),
    final: (step, text, outcome) => ({
      role: "assistant",
      content: text,
      turn_id: turnId,
      step,
      usage,
      final: true,
      outbound_id: `${turnId}.${step}`,
      latency_ms: 5,
      ...(outcome === undefined ? {} : { outcome }),
    }),
  };
}

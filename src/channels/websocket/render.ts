/**
 * Chat event → wire frame; pure. It decides nothing about who gets it. Invariant: every event that a log numbers has one
 * frame, so numbers on the wire have no holes; only `typing`, which no log numbers, has none.
 */
import type { OutboundMessage } from "../../bus/messages.js";
import type { ChatEvent } from "./ports.js";
import type { EventBody, EventFrame, WireMedia } from "./wire.js";

/** The frame of an event, or null where it has none. */
export function renderEvent(chatId: string, { seq, message }: ChatEvent): EventFrame | null {
  const body = bodyOf(message);
  return body === null ? null : { ...body, chat_id: chatId, seq };
}

function bodyOf(message: OutboundMessage): EventBody | null {
  const { event, content, turnId } = message;
  switch (event.type) {
    case "final":
      return event.streamId === null
        ? { event: "message", text: content, turn_id: turnId, ...extrasOf(message) }
        : { event: "stream_end", stream_id: event.streamId, text: content, turn_id: turnId, ...extrasOf(message) };
    case "notice":
      return { event: "message", text: content, turn_id: turnId, ...extrasOf(message) };
    case "delta":
      return { event: "delta", stream_id: event.streamId, text: content };
    case "stream_end":
      return { event: "stream_end", stream_id: event.streamId, text: content, turn_id: turnId };
    case "stream_reset":
      return { event: "stream_reset", stream_id: event.streamId };
    case "reasoning_delta":
      return { event: "reasoning_delta", stream_id: event.streamId, text: content };
    case "reasoning_end":
      return { event: "reasoning_end", stream_id: event.streamId };
    case "tool":
      return { event: "tool", turn_id: turnId, call_id: event.callId, name: event.name, phase: event.phase };
    case "typing":
      return null;
    case "turn_end":
      return {
        event: "turn_end",
        turn_id: turnId,
        message_ids: event.messageIds,
        outcome: event.outcome,
        latency_ms: message.latencyMs ?? null,
        usage: event.usage && {
          input_tokens: event.usage.inputTokens,
          output_tokens: event.usage.outputTokens,
          estimated: event.usage.estimated,
        },
      };
    default:
      return event satisfies never;
  }
}

function extrasOf(message: OutboundMessage) {
  const media: WireMedia[] = message.media.map(({ name, mime, bytes }) => ({ name, mime, bytes }));
  return {
    ...(media.length > 0 ? { media } : {}),
    ...(message.buttons.length > 0 ? { buttons: message.buttons } : {}),
    ...(message.replyTo !== undefined ? { reply_to: message.replyTo } : {}),
  };
}

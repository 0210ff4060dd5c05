/** Builds outbound messages for tests; every field has a plain default. */
import type { OutboundEvent, OutboundMessage, Route } from "../../src/bus/messages.js";

export function outbound(content: string, event: OutboundEvent = { type: "notice" }, id = content): OutboundMessage {
  return {
    id,
    channel: "recording",
    chatId: "chat",
    content,
    media: [],
    buttons: [],
    event,
    turnId: "turn",
    seq: 0,
    metadata: {},
  };
}

/** An outbox route of the account `bot`. */
export function outboxRoute(chatId: string): Route {
  return { via: "outbox", account: "bot", channel: "recording", chatId, isStreaming: false };
}

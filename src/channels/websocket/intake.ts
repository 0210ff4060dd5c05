/**
 * Intent → inbound message, and a refusal of the bus → soft error; pure. It accepts nothing itself. Invariant: a message
 * says who sent it by the connection's identity, never by anything a client wrote.
 */

import type { InboundMessage } from "../../bus/messages.js";
import { hasCode } from "../../errors.js";
import type { Visitor } from "./identity.js";
import { type SoftError, WEBSOCKET } from "./wire.js";

export interface Said {
  /** The client's own id, or one made for it. */
  id: string;
  chatId: string;
  content: string;
  visitor: Visitor;
  /** Whether answers are shown while they are made. */
  isStreaming: boolean;
  /** When it came in, ms since the epoch. */
  atMs: number;
}

/** The message in the common language; its answers go into the chat's event log. */
export function inboundFrom({ id, chatId, content, visitor, isStreaming, atMs }: Said): InboundMessage {
  return {
    id,
    kind: "message",
    channel: WEBSOCKET,
    senderId: visitor.identity,
    chatId,
    content,
    timestamp: new Date(atMs).toISOString(),
    media: [],
    role: "user",
    isOwner: visitor.isOwner,
    route: { via: "events", account: WEBSOCKET, channel: WEBSOCKET, chatId, isStreaming },
    metadata: {},
  };
}

/** What the client is told when nothing was stored; null for an error that is a fault of ours. */
export function refusalOf(error: unknown): Pick<SoftError, "code" | "detail"> | null {
  if (hasCode(error, "BUS_OVERLOADED")) return { code: "overloaded", detail: error.advice };
  if (hasCode(error, "BUS_UNAVAILABLE")) {
    return { code: "unavailable", detail: "Nothing was stored; send it again in a moment." };
  }
  return null;
}

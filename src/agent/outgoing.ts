/**
 * How something said becomes a message on its way: the route's place and the empty fields around it. Pure; it sends
 * nothing and makes no ids. Invariant: where a message goes is read from its route and from nowhere else.
 */
import type { OutboundEvent, Outgoing, Route } from "../bus/messages.js";

/** What is said, under its id. */
export interface Utterance {
  id: string;
  content: string;
  event: OutboundEvent;
  latencyMs?: number;
}

/** `said` as a message of a turn. `seq` gives its order within the turn. */
export function outgoingOf(route: Route, turn: { turnId: string; seq: number }, said: Utterance): Outgoing {
  const { channel, chatId, threadId, messageId } = route;
  const place = {
    ...(threadId === undefined ? {} : { threadId }),
    ...(messageId === undefined ? {} : { replyTo: messageId }),
  };
  return { route, message: { channel, chatId, ...place, media: [], buttons: [], metadata: {}, ...turn, ...said } };
}

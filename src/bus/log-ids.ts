/**
 * The ids that tie log lines together, from a platform's message to what was sent because of it: bound once to a turn or
 * to a delivery, so that no line has to think of them. It logs nothing. Invariant: only ids; never what a person or a model
 * wrote.
 */
import type { Logger } from "../logger.js";
import { type InboundMessage, inboundKeyOf, type MailboxMessage, type Outgoing, type SessionKey } from "./messages.js";

/** `messageId` is the platform's id of the message, or the client's; `inbound` the key under which it makes one turn. */
export interface InboundIds {
  inbound: string;
  messageId: string;
  account: string;
  chatId: string;
}

export function inboundIds(message: InboundMessage): InboundIds {
  const { id, route } = message;
  return { inbound: inboundKeyOf(message), messageId: id, account: route.account, chatId: route.chatId };
}

/** Every line of a turn carries these. */
export function bindTurn(
  logger: Logger,
  { session, turn, message }: { session: SessionKey; turn: string; message: MailboxMessage },
): Logger {
  return logger.child({ session, turn, ...inboundIds(message.message) });
}

/** Every line of a delivery carries these. */
export function bindDelivery(logger: Logger, { route, message }: Outgoing): Logger {
  const answers = route.messageId === undefined ? {} : { messageId: route.messageId };
  return logger.child({
    turn: message.turnId,
    outbound: message.id,
    ...answers,
    account: route.account,
    chatId: route.chatId,
  });
}

/**
 * Outgoing messages as the scripts take them: the carrier's address beside a body that no script reads. It decides which
 * events a carrier keeps, which it may lose and which it does not take. Invariant: what may be sent once only
 * (answers, notices, the end of a turn) carries its id, so a repeated script sends it once.
 */
import type { InboundMessage, MailboxMessage, OutboundEvent, Outgoing, Route } from "../bus/messages.js";
import type { OpenStream, Waiting } from "../session/ports.js";
import { list, text } from "./reply.js";

/** One message as `send` in scripts/_common.lua reads it. */
export interface Envelope {
  via: Route["via"];
  id?: string;
  durable: boolean;
  account: string;
  chat: string;
  address?: string;
  parent?: string;
  wait?: string;
  payload?: string;
  body: string;
}

/** Where lossy events of a route go: to the account's owner, or to the direct caller. */
export function liveAddressOf(route: Route): string {
  return route.via === "result" ? `caller:${route.replyKey}` : `account:${route.account}`;
}

/** Pieces of a stream and what a tool does are numbered by their emission instead. */
function goesOutOnce({ type }: OutboundEvent): boolean {
  return ["final", "notice", "turn_end", "stream_end", "stream_reset"].includes(type);
}

/** Null for what the route's carrier does not take. */
function envelopeOf({ route, message }: Outgoing): Envelope | null {
  const event = message.event;
  const once = goesOutOnce(event) ? { id: message.id } : {};
  const base = { ...once, durable: false, account: route.account, chat: route.chatId };
  switch (route.via) {
    case "events":
      return event.type === "typing" ? null : { ...base, via: "events", body: JSON.stringify(message) };
    case "outbox": {
      const durable = event.type === "final" || event.type === "notice";
      const body = JSON.stringify(durable ? { route, message } : message);
      return { ...base, via: "outbox", durable, address: liveAddressOf(route), body };
    }
    case "result":
      return { ...base, via: "result", address: liveAddressOf(route), body: JSON.stringify(message) };
    case "call":
      if (event.type !== "final" && event.type !== "notice") return null;
      return { ...base, via: "call", parent: route.parent, wait: route.waitId, payload: message.content, body: "" };
    default:
      return route satisfies never;
  }
}

export function envelopesOf(outgoing: readonly Outgoing[]): Envelope[] {
  return outgoing.map(envelopeOf).filter((envelope) => envelope !== null);
}

/** What a script needs to speak to a route by itself (`speak` in scripts/_common.lua). */
function headerOf(route: Route, clientId: string, from = ""): object {
  const parent = route.via === "call" ? { parent: route.parent, wait: route.waitId } : {};
  return {
    via: route.via,
    account: route.account,
    channel: route.channel,
    chat: route.chatId,
    ...(route.threadId === undefined ? {} : { thread: route.threadId }),
    ...(route.messageId === undefined ? {} : { reply: route.messageId }),
    clientId,
    from,
    address: liveAddressOf(route),
    ...(route.via === "outbox" ? { route: JSON.stringify(route) } : {}),
    ...parent,
  };
}

function wellFormedJson(value: object): string {
  return JSON.stringify(value, (_, each: unknown) => (typeof each === "string" ? each.toWellFormed() : each));
}

/** The header stored beside a message in the mailbox. */
export function mailboxHeaderOf(message: InboundMessage): string {
  return wellFormedJson(headerOf(message.route, message.id, message.senderId));
}

/** The open stream as it is kept with the session; its own reader is `openStreamFrom`. */
export function openStreamText(stream: OpenStream | null): string {
  if (stream === null) return "";
  const { streamId, turnId, route } = stream;
  return wellFormedJson({ streamId, turnId, header: headerOf(route, ""), sent: JSON.stringify(route) });
}

export function openStreamFrom(stored: string): OpenStream | null {
  if (stored === "") return null;
  const { streamId, turnId, sent } = JSON.parse(stored) as { streamId: string; turnId: string; sent: string };
  return { streamId, turnId, route: JSON.parse(sent) as Route };
}

/** What `handOver` of the scripts gives: a message and its fragments; null for none. */
export function handedOverFrom(entries: unknown): Waiting | null {
  const [first, ...fragments] = list(entries).map(waitingFrom);
  return first === undefined ? null : { ...first, fragments: fragments.map(({ message }) => message) };
}

/** A mailbox entry of a script's reply: {n, key, payload, '1' when stopped}. */
export function waitingFrom(value: unknown): { message: MailboxMessage; isStopped: boolean } {
  const [n, key, payload, isStopped] = list(value);
  const message = JSON.parse(text(payload)) as InboundMessage;
  return { message: { n: Number(text(n)), key: text(key), message }, isStopped: text(isStopped) === "1" };
}

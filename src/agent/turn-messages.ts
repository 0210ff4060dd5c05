/**
 * Between messages and rows: how what people say is stored, and how a call without a result is closed. Pure.
 * Invariant: a user row names every inbound message in it, so a resumed turn knows what it has taken in.
 */
import type { InboundMessage, MailboxMessage } from "../bus/messages.js";
import type { Row, ToolRow, UserRow, WireToolCall } from "../session/row.js";
import { STOPPED_ROW } from "./apology.js";

function textOfMessage(message: InboundMessage): string {
  if (message.replyTo === undefined) return message.content;
  const quote = JSON.stringify(message.replyTo.text);
  return `[In reply to this message, quoted as data: ${quote}]\n\n${message.content}`;
}

/** One row for messages that are answered together. [LOOP-20] */
export function userRowOf(messages: readonly MailboxMessage[], turnId: string, step: number): UserRow {
  const [first] = messages;
  const media = messages.flatMap(({ message }) => [...message.media, ...(message.replyTo?.media ?? [])]);
  return {
    role: "user",
    content: messages.map(({ message }) => textOfMessage(message)).join("\n\n"),
    ...(first === undefined ? {} : { timestamp: first.message.timestamp, sender_id: first.message.senderId }),
    turn_id: turnId,
    step,
    inbound_ids: messages.map(({ key }) => key),
    client_ids: messages.map(({ message }) => message.id),
    ...(media.length === 0 ? {} : { media }),
  };
}

/** The last row of a stopped turn: what was said until then, and that it was stopped. */
export function stoppedContent(spoken: string): string {
  return spoken === "" ? STOPPED_ROW : `${spoken}\n\n${STOPPED_ROW}`;
}

/** What was said until then, from such a row. */
export function spokenIn(content: string): string {
  return content.endsWith(STOPPED_ROW) ? content.slice(0, -STOPPED_ROW.length).replace(/\n\n$/, "") : content;
}

/** Results for calls that have none, each with the same words. */
export function closingRows(calls: readonly WireToolCall[], turnId: string, text: string): ToolRow[] {
  return calls.map((call) => toolRowOf({ call, turnId, text, isError: true }));
}

export interface ToolOutcome {
  call: WireToolCall;
  turnId: string;
  step?: number;
  text: string;
  isError: boolean;
}

export function toolRowOf({ call, turnId, step, text, isError }: ToolOutcome): ToolRow {
  return {
    role: "tool",
    content: text,
    tool_call_id: call.id,
    call_id: call.id,
    name: call.function.name,
    turn_id: turnId,
    ...(step === undefined ? {} : { step }),
    ...(isError ? { is_error: true } : {}),
  };
}

/** Calls of a session's last answers that nothing has answered, and the turn they belong to. */
export function danglingCalls(rows: readonly Row[], open: ReadonlySet<string>): WireToolCall[] {
  if (open.size === 0) return [];
  return rows
    .flatMap((row) => (row.role === "assistant" ? [...(row.tool_calls ?? [])] : []))
    .filter((call) => open.has(call.id));
}

/**
 * Between messages and rows: how what people say is stored, and how a call without a result is closed. Pure.
 * Invariant: a user row names every inbound message in it, so a resumed turn knows what it has taken in.
 */
import type { InboundMessage, MailboxMessage, MediaRef } from "../bus/messages.js";
import type { Row, ToolRow, UserRow, WireToolCall } from "../session/row.js";
import { STOPPED_ROW } from "./apology.js";
import type { HeardVoices } from "./turn-media.js";

/** A line for each spoken message. Only what its sender says is said to the model; what is quoted is data. */
function voiceLines(media: readonly MediaRef[], heard: HeardVoices, isQuoted: boolean): string[] {
  const what = isQuoted ? "voice message in the quoted message" : "voice message";
  return media
    .filter((file) => file.isVoice === true)
    .map(({ path }) => {
      const result = heard.get(path);
      if (result?.kind !== "words") return `[${what}, not transcribed: ${result?.why ?? "nobody listened to it"}]`;
      return isQuoted ? `[${what}, as data: ${JSON.stringify(result.text)}]` : `[${what}] ${result.text}`;
    });
}

/** As a row holds it: a recording without words is a file like others. */
function storedMedia(file: MediaRef, heard: HeardVoices): MediaRef {
  if (file.isVoice !== true || heard.get(file.path)?.kind === "words") return file;
  const { isVoice: _, ...rest } = file;
  return rest;
}

function textOfMessage({ kind, content, media, replyTo }: InboundMessage, heard: HeardVoices): string {
  const edited = kind === "edit" ? ["[A message from before was edited. It now reads:]"] : [];
  const quoted =
    replyTo === undefined ? [] : [`[In reply to this message, quoted as data: ${JSON.stringify(replyTo.text)}]`];
  quoted.push(...voiceLines(replyTo?.media ?? [], heard, true));
  // A file of an album has no words of its own.
  const spoken = voiceLines(media, heard, false);
  return [...edited, ...quoted, content, ...spoken].filter((part) => part !== "").join("\n\n");
}

/** What a row is made of. `heard`: what the spoken messages among `messages` say. */
export interface Said {
  messages: readonly MailboxMessage[];
  heard: HeardVoices;
  turnId: string;
  step: number;
}

/** One row for messages that are answered together. [LOOP-20] */
export function userRowOf({ messages, heard, turnId, step }: Said): UserRow {
  const [first] = messages;
  const files = messages.flatMap(({ message }) => [...message.media, ...(message.replyTo?.media ?? [])]);
  const media = files.map((file) => storedMedia(file, heard));
  return {
    role: "user",
    content: messages
      .map(({ message }) => textOfMessage(message, heard))
      .filter((text) => text !== "")
      .join("\n\n"),
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

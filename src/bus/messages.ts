/**
 * The common language: what comes in, what goes out, and the names both are known by. Every room may import it;
 * it imports nothing of ours and knows neither Redis nor any platform.
 *
 * Invariant: ids are functions of what they name (never of a clock or of chance), so whatever is repeated after a
 * crash carries the id it carried before.
 */
import { createHash } from "node:crypto";

/** Name of a conversation's memory, `channel:chat` unless overridden. Made only by `sessionKeyOf` and `asSessionKey`. */
export type SessionKey = string & { readonly __brand: "SessionKey" };

/**
 * Accepts a key a person or a program named: any text of 1 to 512 UTF-16 units; lone surrogates, which no store can
 * hold, become U+FFFD. Throws `RangeError`.
 */
export function asSessionKey(text: string): SessionKey {
  if (text.length === 0 || text.length > 512) throw new RangeError("a session key has 1 to 512 characters");
  return text.toWellFormed() as SessionKey;
}

/** A stored file that a message carries. `path` is relative to the media folder of the home. */
export interface MediaRef {
  path: string;
  /** What the bytes say it is, not what its sender said. */
  mime: string;
  /** As people called it, made safe. */
  name: string;
  bytes: number;
  /** A spoken message: its words are what was said, when a transcription is configured. */
  isVoice?: true;
}

/** JSON that a caller attaches: carried and stored, never interpreted by the core. */
export type Metadata = Readonly<Record<string, unknown>>;

/** A place answers go to, fixed when the message came in and never read from shared state later. */
export interface Address {
  /** The connected account that must deliver (a bot, or a channel's only account). */
  account: string;
  channel: string;
  chatId: string;
  threadId?: string;
  /** The platform's id of the message being answered. */
  messageId?: string;
  /** Whether the chat shows an answer while it is made; otherwise it gets whole answers only. */
  isStreaming: boolean;
}

/**
 * Where answers go, and by which carrier:
 * `outbox` a durable stream per account; `events` the chat's numbered event log, read by any process;
 * `result` the direct caller who waits for the result of this message (`replyKey`: where its live events go);
 * `call` a parked tool call of another session, which takes the answer as its result.
 */
export type Route = Address &
  (
    | { via: "outbox" }
    | { via: "events" }
    | { via: "result"; replyKey: string }
    | { via: "call"; parent: SessionKey; waitId: string }
  );

/** Text and files of the message that was answered by quoting it. */
export interface Quote {
  text: string;
  media: MediaRef[];
}

/** What a person, a program or another session says. [BUS-1..6] */
export interface InboundMessage {
  /** The platform's id, or the client's; together with sender, chat and kind it makes one turn for 48 h. */
  id: string;
  kind: "message" | "edit" | "callback";
  channel: string;
  senderId: string;
  chatId: string;
  threadId?: string;
  content: string;
  /** UTC instant, ISO 8601. */
  timestamp: string;
  media: MediaRef[];
  replyTo?: Quote;
  sessionKeyOverride?: SessionKey;
  role: "user" | "system";
  /** Whether its sender may command the gateway itself; decided at the door. */
  isOwner: boolean;
  route: Route;
  /**
   * For `kind: "edit"`: which message reads so now. While that one waits it is replaced, while its turn runs the turn learns
   * of it; afterwards `ifAnswered` counts.
   */
  edits?: { id: string; ifAnswered: "ignore" | "answer" };
  /** A part of something bigger (an album): what its sender adds on the same route within this many ms, sliding, is one message. */
  gatherMs?: number;
  metadata: Metadata;
}

/** Tokens of a turn, summed over its model calls. `estimated` where the provider gave no numbers. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  estimated: boolean;
  /** Those of `inputTokens` that the provider read from its cache; left out where it says nothing of one. */
  cachedTokens?: number;
}

/** How a turn ended for the user. */
export type TurnOutcome = "completed" | "stopped" | "failed";

/** What happens, said by one union and never by flags. [BUS-10..13] */
export type OutboundEvent =
  /** A whole answer. `streamId` names the stream whose deltas showed it already. */
  | { type: "final"; streamId: string | null }
  /** A short word from the gateway itself: a command's answer, an apology. */
  | { type: "notice" }
  /** The next piece of a stream, never cumulative; `offset` counts UTF-16 units from the stream's start. */
  | { type: "delta"; streamId: string; offset: number }
  /** The end of a streamed segment that is not the answer; `content` is the whole segment. */
  | { type: "stream_end"; streamId: string }
  /** The stream's worker died: what was streamed is void, the turn goes on. */
  | { type: "stream_reset"; streamId: string }
  | { type: "reasoning_delta"; streamId: string }
  | { type: "reasoning_end"; streamId: string }
  | { type: "tool"; callId: string; name: string; phase: "start" | "end" | "error" }
  | { type: "typing" }
  /** `messageIds`: the client ids of every message of the user that the turn answered. */
  | { type: "turn_end"; messageIds: string[]; outcome: TurnOutcome; usage: Usage | null };

/** A button a person may press; `value` comes back as the content of a callback. [BUS-9] */
export interface Button {
  label: string;
  value: string;
}

/** A structured payload for rich clients; the others ignore it. */
export interface UiPayload {
  kind: string;
  [field: string]: unknown;
}

/** What the gateway says. [BUS-7..17] */
export interface OutboundMessage {
  /** `<turn id>.<step>[.<part>]`: the same for the same answer, however often it is made. */
  id: string;
  channel: string;
  chatId: string;
  threadId?: string;
  content: string;
  /** The platform's id of the message being answered. */
  replyTo?: string;
  media: MediaRef[];
  buttons: Button[][];
  event: OutboundEvent;
  turnId: string;
  /** Order within the turn, over all its holders; with gaps. 0 where no holder speaks. Lets a channel drop what comes late. */
  seq: number;
  latencyMs?: number;
  ui?: UiPayload;
  metadata: Metadata;
}

/** A message and where it goes. */
export interface Outgoing {
  route: Route;
  message: OutboundMessage;
}

/** An inbound message as the mailbox holds it. */
export interface MailboxMessage {
  /** Growing number within the session; gives the order of turns. */
  n: number;
  /** `inboundKeyOf(message)`. */
  key: string;
  message: InboundMessage;
}

/** How the turn of an inbound message ended, kept for direct callers. */
export interface TurnResult {
  outcome: TurnOutcome;
  /** The answer, or the sentence that says why there is none. */
  text: string;
  turnId: string;
  usage: Usage | null;
}

function digest(parts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part).update("\0");
  return hash.digest("base64url").slice(0, 22);
}

/**
 * The name under which a message is remembered: platform ids repeat across chats, and an edit reuses the id of its
 * original, so account, chat, kind and sender are part of it. 22 characters of `A–Z a–z 0–9 _ -`.
 */
export function inboundKeyOf(message: InboundMessage): string {
  return digest([message.route.account, message.chatId, message.kind, message.senderId, message.id]);
}

/** The key of the message that this one edits; null for one that edits nothing. */
export function editedKeyOf(message: InboundMessage): string | null {
  return message.edits === undefined ? null : inboundKeyOf({ ...message, kind: "message", id: message.edits.id });
}

/** The id of the turn that a message starts. The bus' scripts build the same id from the same key. */
export function turnIdOf(inboundKey: string): string {
  return `t${inboundKey}`;
}

/** Where marks of `/stop` are kept and which messages may join one turn: the same account, chat and thread. */
export function routeKeyOf(route: Route): string {
  return digest([route.account, route.chatId, route.threadId ?? ""]);
}

/** The session a message belongs to; the only place where this is decided. [SES-49..51] */
export function sessionKeyOf(message: InboundMessage, options: { unified: boolean }): SessionKey {
  if (message.sessionKeyOverride !== undefined) return message.sessionKeyOverride;
  return asSessionKey(options.unified ? "unified:default" : `${message.channel}:${message.chatId}`);
}

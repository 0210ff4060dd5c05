/**
 * The frames and close codes of the WebSocket protocol, as clients see them. Types and constants only: reading frames is
 * `parse.ts`, writing events is `render.ts`. Invariant: names here are public; they are added to, never renamed.
 */
import type { Button, TurnOutcome } from "../../bus/messages.js";

/** The channel's name and its only account. */
export const WEBSOCKET = "websocket";

/** Sent after the upgrade, so that a browser can read them. */
export const CLOSE = { unauthorized: 4401, forbidden: 4403, overloaded: 1013, restarting: 1012 } as const;

/** What a soft error is about; the connection stays. */
export type SoftErrorCode =
  | "bad_frame"
  | "unknown_type"
  | "bad_chat_id"
  | "missing_content"
  | "too_long"
  | "media_unsupported"
  | "too_many_chats"
  | "access_denied"
  | "rate_limited"
  | "overloaded"
  | "unavailable"
  | "internal";

/** A refusal of one frame; `chat_id` and `id` name the frame where it named them. */
export interface SoftError {
  code: SoftErrorCode;
  detail: string;
  chat_id?: string;
  id?: string;
  /** When the frame may be sent again. */
  retry_after_ms?: number;
}

/** A file as clients see it. */
export interface WireMedia {
  name: string;
  mime: string;
  bytes: number;
}

/** Answers to one connection; they carry no `seq`. */
export type AnswerFrame =
  | { event: "ready"; chat_id: string; client_id: string }
  | { event: "attached" | "resync"; chat_id: string; epoch: number; seq: number }
  | { event: "message_accepted"; chat_id: string; id: string; turn_id: string }
  | { event: "pong" }
  | ({ event: "error" } & SoftError);

interface Extras {
  media?: WireMedia[];
  buttons?: Button[][];
  reply_to?: string;
}

/** Events of a chat without their place; `render` adds `chat_id` and `seq`. */
export type EventBody =
  | { event: "delta"; stream_id: string; text: string }
  | ({ event: "stream_end"; stream_id: string; text: string; turn_id: string } & Extras)
  | { event: "stream_reset"; stream_id: string }
  | { event: "reasoning_delta"; stream_id: string; text: string }
  | { event: "reasoning_end"; stream_id: string }
  | { event: "tool"; turn_id: string; call_id: string; name: string; phase: "start" | "end" | "error" }
  | ({ event: "message"; text: string; turn_id: string } & Extras)
  | {
      event: "turn_end";
      turn_id: string;
      message_ids: string[];
      outcome: TurnOutcome;
      latency_ms: number | null;
      usage: { input_tokens: number; output_tokens: number; estimated: boolean } | null;
    };

/** A numbered event as it is sent. */
export type EventFrame = EventBody & { chat_id: string; seq: number };

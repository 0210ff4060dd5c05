/**
 * The seam to a language model: one streaming call. A provider translates to and from one wire; it does not retry,
 * choose models, or know sessions. Invariant: a stream either ends with exactly one `finish` event or throws
 * a `ProviderError`; a stream that merely stops is an error (`PROVIDER_INCOMPLETE`).
 */
import type { Usage } from "../../bus/messages.js";
import type { ErrorCode } from "../../errors.js";
import type { Logger } from "../../logger.js";

/** A model's request to run a tool. `arguments` is the JSON text the model wrote, unchecked. */
export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

/** Formats of images that models take. */
export type ImageMime = "image/gif" | "image/jpeg" | "image/png" | "image/webp";

/** An image in a user's row. */
export interface ModelImage {
  mime: ImageMime;
  base64: string;
}

/** One row of a conversation as a model sees it. Images go before the text. */
export type ChatMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: string; images?: readonly ModelImage[] }
  | { role: "assistant"; content: string; toolCalls: ToolCall[]; reasoning?: string }
  | { role: "tool"; toolCallId: string; name: string; content: string };

/** A tool as a model is told of it; `parameters` is JSON Schema. */
export interface ToolDefinition {
  name: string;
  description: string;
  parameters: Readonly<Record<string, unknown>>;
}

export interface ModelRequest {
  /** The model's name without its provider. */
  model: string;
  messages: readonly ChatMessage[];
  tools: readonly ToolDefinition[];
  /** `none`: answer in words, although tools are shown. */
  toolChoice: "auto" | "none";
  maxOutputTokens: number;
}

export type FinishReason = "stop" | "tool_calls" | "length" | "content_filter";

export type ProviderEvent =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  /** A complete call; never a partial one. */
  | { type: "tool_call"; call: ToolCall }
  | { type: "finish"; reason: FinishReason; usage: Usage | null };

/**
 * One model endpoint. Throws `ProviderError`; on abort it throws the signal's reason. `logger` is the caller's, whose lines
 * carry the ids of the turn.
 */
export interface Provider {
  readonly name: string;
  stream(request: ModelRequest, signal: AbortSignal, logger?: Logger): AsyncIterable<ProviderEvent>;
}

/** Codes a provider may fail with. */
export type ProviderErrorCode = Extract<ErrorCode, `PROVIDER_${string}`>;

/** A model call that failed. `detail` is what the provider said: for the log only, never for a chat. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  constructor(
    readonly code: ProviderErrorCode,
    message: string,
    readonly options: {
      cause?: unknown;
      status?: number;
      retryAfterMs?: number;
      detail?: string;
      /** What the provider itself said about trying again; wins over what the code suggests. */
      isTransient?: boolean;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
  }

  /** Whether the same request may succeed later. [RUN-28] */
  get isTransient(): boolean {
    if (this.options.isTransient !== undefined) return this.options.isTransient;
    switch (this.code) {
      case "PROVIDER_INCOMPLETE":
      case "PROVIDER_RATE_LIMITED":
      case "PROVIDER_SERVER":
      case "PROVIDER_TIMEOUT":
      case "PROVIDER_UNREACHABLE":
        return true;
      case "PROVIDER_AUTH":
      case "PROVIDER_INVALID":
      case "PROVIDER_MODEL_UNKNOWN":
      case "PROVIDER_NO_KEY":
      case "PROVIDER_QUOTA":
        return false;
      default:
        return this.code satisfies never;
    }
  }
}

/**
 * Reads the events of one streamed answer of Anthropic's messages wire and says what they mean as provider events. It
 * opens no connection and keeps no time. Invariants: a tool call leaves only when the whole answer is finished and was
 * not cut off; ids are unique in the conversation; a character is never torn in two.
 */
import type {
  MessageDeltaUsage,
  RawContentBlockDeltaEvent,
  RawContentBlockStartEvent,
  RawMessageStreamEvent,
  Usage as WireUsage,
} from "@anthropic-ai/sdk/resources/messages";
import type { Usage } from "../../bus/messages.js";
import { claimCallId } from "./call-ids.js";
import { createPairKeeper } from "./pair-keeper.js";
import { type FinishReason, ProviderError, type ProviderEvent } from "./provider.js";

/** A call as it grows; `index` is the number of its block. */
interface Draft {
  index: number;
  id: string;
  name: string;
  /** What the block began with: an empty object, unless the server does not stream arguments. */
  input: unknown;
  json: string;
}

function finishReasonOf(wire: string): FinishReason {
  switch (wire) {
    case "tool_use":
      return "tool_calls";
    case "max_tokens":
      return "length";
    case "refusal":
      return "content_filter";
    default:
      return "stop";
  }
}

/** Counts are cumulative, and a later event repeats only some of them. */
function createUsageCount(): {
  take(wire: Partial<WireUsage | MessageDeltaUsage> | undefined): void;
  sum(): Usage | null;
} {
  const counts = { input: 0, written: 0, read: 0, output: 0 };
  let isCacheKnown = false;
  return {
    take(wire) {
      counts.input = wire?.input_tokens ?? counts.input;
      counts.written = wire?.cache_creation_input_tokens ?? counts.written;
      counts.read = wire?.cache_read_input_tokens ?? counts.read;
      counts.output = wire?.output_tokens ?? counts.output;
      isCacheKnown ||= typeof wire?.cache_read_input_tokens === "number";
    },
    sum() {
      const inputTokens = counts.input + counts.written + counts.read;
      // Servers that count nothing send zeros.
      if (inputTokens + counts.output === 0) return null;
      const cached = isCacheKnown ? { cachedTokens: counts.read } : {};
      return { inputTokens, outputTokens: counts.output, estimated: false, ...cached };
    },
  };
}

function argumentsOf(draft: Draft): string {
  return draft.json.trim() === "" ? JSON.stringify(draft.input ?? {}) : draft.json;
}

/** One answer being read. */
export class AnthropicAnswer {
  readonly #drafts: Draft[] = [];
  readonly #keepText = createPairKeeper();
  readonly #keepReasoning = createPairKeeper();
  readonly #usage = createUsageCount();
  readonly #usedIds: Set<string>;
  #reason: FinishReason | null = null;
  #isCut = false;

  /** `usedIds`: call ids the conversation has already; those given out are added to it. */
  constructor(usedIds: Set<string>) {
    this.#usedIds = usedIds;
  }

  /** True once a stop reason was seen: nothing of the answer may still come. */
  get isFinished(): boolean {
    return this.#reason !== null;
  }

  /** What this event adds; kinds that are not known add nothing. */
  take(event: RawMessageStreamEvent): ProviderEvent[] {
    switch (event.type) {
      case "message_start":
        this.#usage.take(event.message?.usage);
        return [];
      case "content_block_start":
        return this.#begin(event);
      case "content_block_delta":
        return this.#grow(event);
      case "message_delta":
        this.#usage.take(event.usage);
        this.#stop(event.delta?.stop_reason);
        return [];
      default:
        return [];
    }
  }

  /** The calls and the finish. Throws `PROVIDER_INCOMPLETE` when there was no stop reason. */
  end(): ProviderEvent[] {
    const reason = this.#reason;
    if (reason === null) {
      throw new ProviderError(
        "PROVIDER_INCOMPLETE",
        "The answer stopped in the middle: the stream ended without a stop reason. Usually a proxy or the provider closed it early, and it can be tried again. If it never works, the provider's baseUrl may be wrong.",
      );
    }
    // A call in an answer that was cut off may be cut off itself.
    const isWhole = !this.#isCut && (reason === "stop" || reason === "tool_calls");
    const calls = (isWhole ? this.#drafts : []).map((draft): ProviderEvent => {
      const id = claimCallId(draft.id, this.#usedIds);
      return { type: "tool_call", call: { id, name: draft.name, arguments: argumentsOf(draft) } };
    });
    return [...calls, { type: "finish", reason, usage: this.#usage.sum() }];
  }

  #stop(wire: string | null | undefined): void {
    if (!wire) return;
    this.#reason = finishReasonOf(wire);
    // The window is full: asking for the rest would only be refused, so what there is must do.
    this.#isCut = wire === "model_context_window_exceeded";
  }

  #shown(type: "text" | "reasoning", piece: string | undefined): ProviderEvent[] {
    const keep = type === "text" ? this.#keepText : this.#keepReasoning;
    const text = keep(piece ?? "");
    return text === "" ? [] : [{ type, text }];
  }

  #begin({ index, content_block: block }: RawContentBlockStartEvent): ProviderEvent[] {
    switch (block?.type) {
      case "text":
        return this.#shown("text", block.text);
      case "thinking":
        return this.#shown("reasoning", block.thinking);
      case "tool_use":
        this.#drafts.push({ index, id: block.id ?? "", name: block.name ?? "", input: block.input, json: "" });
        return [];
      default:
        return [];
    }
  }

  #grow({ index, delta }: RawContentBlockDeltaEvent): ProviderEvent[] {
    switch (delta?.type) {
      case "text_delta":
        return this.#shown("text", delta.text);
      case "thinking_delta":
        return this.#shown("reasoning", delta.thinking);
      case "input_json_delta": {
        const draft = this.#drafts.findLast((one) => one.index === index);
        if (draft) draft.json += delta.partial_json ?? "";
        return [];
      }
      default:
        return [];
    }
  }
}

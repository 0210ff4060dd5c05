/**
 * Reads the chunks of one streamed answer and says what they mean as provider events. It opens no connection and keeps
 * no time. Invariants: a tool call leaves only when the whole answer is finished and was not cut off; ids are unique in
 * the conversation; a character is never torn in two.
 */
import type { ChatCompletionChunk } from "openai/resources/chat/completions";
import type { Usage } from "../../bus/messages.js";
import { claimCallId } from "./call-ids.js";
import { createPairKeeper } from "./pair-keeper.js";
import { type FinishReason, ProviderError, type ProviderEvent, type ToolCall } from "./provider.js";

type Delta = ChatCompletionChunk.Choice.Delta;
type CallDelta = ChatCompletionChunk.Choice.Delta.ToolCall;

/** A call as it grows; `slot` is the number the wire gives it. */
interface Draft {
  slot: number | null;
  id: string;
  name: string;
  arguments: string;
}

function finishReasonOf(wire: string): FinishReason {
  switch (wire) {
    case "tool_calls":
    case "function_call":
    case "tool_use":
      return "tool_calls";
    case "length":
    case "max_tokens":
      return "length";
    case "content_filter":
    case "refusal":
      return "content_filter";
    case "error":
      throw new ProviderError("PROVIDER_SERVER", "The provider broke its answer off with an error of its own.");
    default:
      return "stop";
  }
}

function draftFor(drafts: Draft[], delta: CallDelta): Draft {
  // Some servers send no index, some the same one for every call; a new id always begins a new call.
  const slot = typeof delta.index === "number" ? delta.index : null;
  const sameSlot = slot === null ? drafts.at(-1) : drafts.findLast((draft) => draft.slot === slot);
  const known = slot === null && delta.id ? drafts.find((draft) => draft.id === delta.id) : sameSlot;
  if (known && !(delta.id && known.id && delta.id !== known.id)) return known;
  const fresh: Draft = { slot, id: "", name: "", arguments: "" };
  drafts.push(fresh);
  return fresh;
}

function growCall(drafts: Draft[], delta: CallDelta): void {
  const draft = draftFor(drafts, delta);
  if (delta.id) draft.id = delta.id;
  const name = delta.function?.name;
  if (name && draft.arguments === "" && name !== draft.name) draft.name += name;
  draft.arguments += delta.function?.arguments ?? "";
}

/** A server that repeats a block word for word, id included, means one call. */
function isRepeat(draft: Draft, earlier: readonly Draft[]): boolean {
  return earlier.some(
    (other) =>
      draft.id !== "" && other.id === draft.id && other.name === draft.name && other.arguments === draft.arguments,
  );
}

function completeCalls(drafts: readonly Draft[], usedIds: Set<string>): ToolCall[] {
  return drafts
    .filter((draft, position) => !isRepeat(draft, drafts.slice(0, position)))
    .map((draft) => ({ id: claimCallId(draft.id, usedIds), name: draft.name, arguments: draft.arguments }));
}

function textField(delta: Delta, ...names: string[]): string {
  const fields: Record<string, unknown> = { ...delta };
  for (const name of names) {
    const value = fields[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return "";
}

function usageOf(chunk: ChatCompletionChunk): Usage | null {
  const usage = chunk.usage;
  if (!usage || typeof usage.prompt_tokens !== "number") return null;
  const cached = usage.prompt_tokens_details?.cached_tokens;
  return {
    inputTokens: usage.prompt_tokens,
    outputTokens: usage.completion_tokens ?? 0,
    estimated: false,
    ...(typeof cached === "number" ? { cachedTokens: cached } : {}),
  };
}

/** One answer being read. */
export interface AnswerReader {
  /** What this chunk adds. Throws `ProviderError` when the chunk says that the answer failed. */
  take(chunk: ChatCompletionChunk): ProviderEvent[];
  /** True once a finish reason was seen: only numbers may still come. */
  isFinished(): boolean;
  /** The calls and the finish. Throws `PROVIDER_INCOMPLETE` when there was no finish reason. */
  end(): ProviderEvent[];
}

/** `usedIds`: call ids the conversation has already; those given out are added to it. */
export function createAnswerReader(usedIds: Set<string>): AnswerReader {
  const drafts: Draft[] = [];
  const keepText = createPairKeeper();
  const keepReasoning = createPairKeeper();
  let reason: FinishReason | null = null;
  let usage: Usage | null = null;

  function take(chunk: ChatCompletionChunk): ProviderEvent[] {
    usage = usageOf(chunk) ?? usage;
    const choice = chunk.choices?.[0];
    if (!choice) return [];
    const events: ProviderEvent[] = [];
    const delta: Delta = choice.delta ?? {};
    const reasoning = keepReasoning(textField(delta, "reasoning_content", "reasoning"));
    if (reasoning !== "") events.push({ type: "reasoning", text: reasoning });
    const text = keepText(textField(delta, "content", "refusal"));
    if (text !== "") events.push({ type: "text", text });
    for (const call of delta.tool_calls ?? []) growCall(drafts, call);
    if (choice.finish_reason) reason = finishReasonOf(choice.finish_reason);
    return events;
  }

  function end(): ProviderEvent[] {
    if (reason === null) {
      throw new ProviderError(
        "PROVIDER_INCOMPLETE",
        "The answer stopped in the middle: the stream ended without a finish reason. Usually a proxy or the provider closed it early, and it can be tried again. If it never works, the provider's baseUrl may be wrong.",
      );
    }
    // A call in an answer that was cut off may be cut off itself.
    const calls = reason === "stop" || reason === "tool_calls" ? completeCalls(drafts, usedIds) : [];
    return [...calls.map((call): ProviderEvent => ({ type: "tool_call", call })), { type: "finish", reason, usage }];
  }

  return { take, end, isFinished: () => reason !== null };
}

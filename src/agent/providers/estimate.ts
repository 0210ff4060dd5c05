/**
 * A token estimate for answers whose provider gave no numbers. It knows no model's vocabulary: UTF-8 bytes divided by
 * four is near enough for most scripts. Invariant: what it returns is always marked `estimated`.
 */
import type { Usage } from "../../bus/messages.js";
import type { ChatMessage, ToolDefinition } from "./provider.js";

const BYTES_PER_TOKEN = 4;
const TOKENS_PER_ROW = 4;
/** An image scaled down as models get it. */
const TOKENS_PER_IMAGE = 1600;

/** Estimated tokens of a text. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text, "utf8") / BYTES_PER_TOKEN);
}

function rowTokens(row: ChatMessage): number {
  const calls = row.role === "assistant" ? row.toolCalls : [];
  const written = calls.reduce((sum, call) => sum + estimateTokens(call.name + call.arguments), 0);
  const images = row.role === "user" ? (row.images?.length ?? 0) : 0;
  return TOKENS_PER_ROW + estimateTokens(row.content) + written + images * TOKENS_PER_IMAGE;
}

/** Estimated tokens of one model call: everything sent, and the text that came back. */
export function estimateUsage(
  request: { messages: readonly ChatMessage[]; tools: readonly ToolDefinition[] },
  output: string,
): Usage {
  const rows = request.messages.reduce((sum, row) => sum + rowTokens(row), 0);
  const tools = request.tools.length === 0 ? 0 : estimateTokens(JSON.stringify(request.tools));
  return { inputTokens: rows + tools, outputTokens: estimateTokens(output), estimated: true };
}

/** Sum of two usages; estimated when either is. */
export function addUsage(a: Usage | null, b: Usage | null): Usage | null {
  if (a === null || b === null) return a ?? b;
  const isCacheKnown = a.cachedTokens !== undefined || b.cachedTokens !== undefined;
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    estimated: a.estimated || b.estimated,
    ...(isCacheKnown ? { cachedTokens: (a.cachedTokens ?? 0) + (b.cachedTokens ?? 0) } : {}),
  };
}

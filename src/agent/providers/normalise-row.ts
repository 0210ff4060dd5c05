/**
 * Makes one row of a conversation encodable: text without half characters, calls with a name and with arguments that
 * are a JSON object, nothing empty where providers refuse emptiness. It knows nothing of the rows around it.
 * Invariant: cleaning a clean row returns that very row.
 */
import type { ChatMessage, ToolCall } from "./provider.js";

/** Stands in for a result that was never stored. */
export const NO_RESULT = "(no result is known for this call)";
const EMPTY_USER = "(empty message)";
const EMPTY_RESULT = "(completed with no output)";
const MAX_NAME_CHARS = 64;

/** Replaces halves of surrogate pairs, which no encoder takes. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

function wireName(name: string): string {
  return wellFormed(name)
    .replace(/[^A-Za-z0-9_-]/g, "_")
    .slice(0, MAX_NAME_CHARS);
}

/** Arguments a model got wrong were answered with an error; what it wrote would make some servers refuse the rest. */
function wireArguments(text: string): string {
  const clean = wellFormed(text);
  try {
    const value: unknown = JSON.parse(clean);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? clean : "{}";
  } catch (error) {
    if (error instanceof SyntaxError) return "{}";
    throw error;
  }
}

function cleanCall(call: ToolCall): ToolCall | null {
  if (call.name.trim() === "") return null;
  const clean = { id: wellFormed(call.id), name: wireName(call.name), arguments: wireArguments(call.arguments) };
  const isSame = clean.id === call.id && clean.name === call.name && clean.arguments === call.arguments;
  return isSame ? call : clean;
}

function cleanAssistant(row: Extract<ChatMessage, { role: "assistant" }>): ChatMessage | null {
  const toolCalls = row.toolCalls.flatMap((call) => cleanCall(call) ?? []);
  const content = row.content.trim() === "" ? "" : wellFormed(row.content);
  if (toolCalls.length === 0 && content === "") return null;
  const reasoning = row.reasoning === undefined ? undefined : wellFormed(row.reasoning);
  const isSame =
    content === row.content &&
    reasoning === row.reasoning &&
    toolCalls.length === row.toolCalls.length &&
    toolCalls.every((call, index) => call === row.toolCalls[index]);
  return isSame ? row : { role: "assistant", content, toolCalls, ...(reasoning === undefined ? {} : { reasoning }) };
}

/** The row in a form every provider takes, or null when nothing of it is left. */
export function cleanRow(row: ChatMessage): ChatMessage | null {
  switch (row.role) {
    case "system":
    case "user": {
      const isEmpty = row.role === "user" && row.content.trim() === "";
      const content = isEmpty ? EMPTY_USER : wellFormed(row.content);
      return content === row.content ? row : { ...row, content };
    }
    case "assistant":
      return cleanAssistant(row);
    case "tool": {
      const content = row.content.trim() === "" ? EMPTY_RESULT : wellFormed(row.content);
      const toolCallId = wellFormed(row.toolCallId);
      const name = wireName(row.name);
      const isSame = content === row.content && toolCallId === row.toolCallId && name === row.name;
      return isSame ? row : { role: "tool", toolCallId, name, content };
    }
    default:
      return row satisfies never;
  }
}

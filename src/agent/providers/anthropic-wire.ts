/**
 * Our request in the words of Anthropic's messages wire. Pure; it sends nothing. Reasoning is never sent back: rows keep
 * no signature, and an unsigned thinking block is refused. Invariants: whatever rows come in, the conversation is one the
 * wire takes; the same rows give the same bytes, so that the provider's cache holds; at most four cache markers.
 */
import type {
  ImageBlockParam,
  MessageCreateParamsStreaming,
  TextBlockParam,
  Tool,
  ToolResultBlockParam,
  ToolUseBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import { claimCallId } from "./call-ids.js";
import { normaliseMessages } from "./normalise.js";
import { wellFormed } from "./normalise-row.js";
import type { ChatMessage, ModelImage, ModelRequest, ToolDefinition } from "./provider.js";

type Block = ImageBlockParam | TextBlockParam | ToolUseBlockParam | ToolResultBlockParam;

interface Turn {
  role: "user" | "assistant";
  content: Block[];
}

/** System and tools take one marker each; the wire allows four. */
const MARKED_USER_TURNS = 2;

function marked<T extends object>(block: T): T & { cache_control: { type: "ephemeral" } } {
  return { ...block, cache_control: { type: "ephemeral" } };
}

/** The list with its last element marked: the cache keeps everything up to a marker. */
function markedAtEnd<T extends object>(blocks: readonly T[]): T[] {
  return blocks.map((block, index) => (index === blocks.length - 1 ? marked(block) : block));
}

/** The wire takes letters, digits, `_` and `-` in call ids; other providers' ids may hold more. */
function createIdMap(): (id: string) => string {
  const known = new Map<string, string>();
  const used = new Set<string>();
  return (id) => {
    const wireId = known.get(id) ?? claimCallId(id.replace(/[^A-Za-z0-9_-]/g, "_"), used);
    known.set(id, wireId);
    return wireId;
  };
}

function imageBlock({ mime, base64 }: ModelImage): ImageBlockParam {
  return { type: "image", source: { type: "base64", media_type: mime, data: base64 } };
}

function blocksOf(row: ChatMessage, wireId: (id: string) => string): Block[] {
  switch (row.role) {
    case "system":
      return [];
    case "user":
      return [...(row.images ?? []).map(imageBlock), { type: "text", text: row.content }];
    case "tool":
      return [{ type: "tool_result", tool_use_id: wireId(row.toolCallId), content: row.content }];
    case "assistant": {
      const text: Block[] = row.content.trim() === "" ? [] : [{ type: "text", text: row.content }];
      const calls = row.toolCalls.map((call): Block => {
        const input: unknown = JSON.parse(call.arguments);
        return { type: "tool_use", id: wireId(call.id), name: call.name, input };
      });
      return [...text, ...calls];
    }
    default:
      return row satisfies never;
  }
}

/** Results are the user's words on this wire, so a row joins the turn before it when both are of one role. */
function turnsOf(rows: readonly ChatMessage[]): Turn[] {
  const wireId = createIdMap();
  const turns: Turn[] = [];
  for (const row of rows) {
    const role = row.role === "assistant" ? "assistant" : "user";
    const blocks = blocksOf(row, wireId);
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else turns.push({ role, content: blocks });
  }
  if (turns.length === 0) turns.push({ role: "user", content: [{ type: "text", text: "(continue)" }] });
  return turns;
}

/**
 * The last user turn is read again in the next request, the one before it was the last one of the request before: with
 * both marked, each request finds what the one before it stored.
 */
function markUserTurns(turns: readonly Turn[]): Turn[] {
  const users = turns.filter((turn) => turn.role === "user");
  const chosen = new Set(users.slice(-MARKED_USER_TURNS));
  return turns.map((turn) => (chosen.has(turn) ? { ...turn, content: markedAtEnd(turn.content) } : turn));
}

function wireTool({ name, description, parameters }: ToolDefinition): Tool {
  return { name, description, input_schema: { ...parameters, type: "object" } };
}

/** A conversation with calls needs tools on this wire, also when none may be used any more. */
function formerTools(rows: readonly ChatMessage[]): Tool[] {
  const calls = rows.flatMap((row) => (row.role === "assistant" ? row.toolCalls : []));
  const names = [...new Set(calls.map((call) => call.name))];
  return names.map((name) => wireTool({ name, description: "Not available any more.", parameters: {} }));
}

function toolFields(request: ModelRequest, spoken: readonly ChatMessage[]) {
  const current = request.tools.map(wireTool);
  const tools = current.length > 0 ? current : formerTools(spoken);
  if (tools.length === 0) return {};
  const type = current.length > 0 ? request.toolChoice : "none";
  return { tools: markedAtEnd(tools), tool_choice: { type } };
}

/** The body of one streaming request. System rows, wherever they stand, become the system prompt. */
export function wireRequest(request: ModelRequest): MessageCreateParamsStreaming {
  const system = request.messages
    .filter((row) => row.role === "system" && row.content.trim() !== "")
    .map((row): TextBlockParam => ({ type: "text", text: wellFormed(row.content) }));
  const spoken = normaliseMessages(request.messages.filter((row) => row.role !== "system"));
  return {
    model: request.model,
    max_tokens: request.maxOutputTokens,
    ...(system.length === 0 ? {} : { system: markedAtEnd(system) }),
    ...toolFields(request, spoken),
    messages: markUserTurns(turnsOf(spoken)),
    stream: true,
  };
}

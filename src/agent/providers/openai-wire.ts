/**
 * Our request in the words of the chat completions wire. Pure; it sends nothing and repairs nothing
 * (`normalise.ts` has done that before). Invariant: whatever it returns names only fields that every
 * OpenAI-compatible server is known to take.
 */
import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
  ChatCompletionTool,
  ChatCompletionUserMessageParam,
} from "openai/resources/chat/completions";
import type { ChatMessage, ModelImage, ModelRequest, ToolDefinition } from "./provider.js";

/** A list of parts only where there are images: many servers know nothing but text. */
function wireUser(text: string, images: readonly ModelImage[]): ChatCompletionUserMessageParam {
  if (images.length === 0) return { role: "user", content: text };
  const shown = images.map(({ mime, base64 }) => ({
    type: "image_url" as const,
    image_url: { url: `data:${mime};base64,${base64}` },
  }));
  return { role: "user", content: [...shown, { type: "text", text }] };
}

function wireRow(row: ChatMessage): ChatCompletionMessageParam {
  switch (row.role) {
    case "system":
      return { role: "system", content: row.content };
    case "user":
      return wireUser(row.content, row.images ?? []);
    case "tool":
      return { role: "tool", tool_call_id: row.toolCallId, content: row.content };
    case "assistant": {
      if (row.toolCalls.length === 0) return { role: "assistant", content: row.content };
      const calls = row.toolCalls.map((call) => ({
        id: call.id,
        type: "function" as const,
        function: { name: call.name, arguments: call.arguments },
      }));
      return { role: "assistant", content: row.content === "" ? null : row.content, tool_calls: calls };
    }
    default:
      return row satisfies never;
  }
}

function wireTool(tool: ToolDefinition): ChatCompletionTool {
  return {
    type: "function",
    function: { name: tool.name, description: tool.description, parameters: { ...tool.parameters } },
  };
}

/**
 * OpenAI's own newer models refuse `max_tokens`; many other servers know nothing else.
 * So the name of the field follows the host.
 */
function outputLimit(baseUrl: string, tokens: number): { max_tokens: number } | { max_completion_tokens: number } {
  const host = new URL(baseUrl).hostname;
  const isOpenAi = /(^|\.)openai\.(com|azure\.com)$/.test(host);
  return isOpenAi ? { max_completion_tokens: tokens } : { max_tokens: tokens };
}

/** The body of one streaming request. `request.messages` must be legal already. */
export function wireRequest(request: ModelRequest, baseUrl: string): ChatCompletionCreateParamsStreaming {
  const tools =
    request.tools.length === 0 ? {} : { tools: request.tools.map(wireTool), tool_choice: request.toolChoice };
  return {
    model: request.model,
    messages: request.messages.map(wireRow),
    ...tools,
    ...outputLimit(baseUrl, request.maxOutputTokens),
    stream: true,
    stream_options: { include_usage: true },
  };
}

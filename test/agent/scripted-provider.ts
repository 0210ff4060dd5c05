/**
 * A provider that plays answers from a list and keeps what it was asked, for tests of the runner and of retries.
 * It has no opinion of its own: an answer may be legal or not. Invariant: answers are played in order, one a call.
 */
import type { ModelRequest, Provider, ProviderEvent, ToolCall } from "../../src/agent/providers/provider.js";

export type Script = ProviderEvent[] | Error | ((signal: AbortSignal) => AsyncIterable<ProviderEvent>);

export interface ScriptedProvider extends Provider {
  readonly requests: ModelRequest[];
}

export function scripted(...answers: Script[]): ScriptedProvider {
  const requests: ModelRequest[] = [];
  return {
    name: "scripted",
    requests,
    async *stream(request, signal) {
      requests.push(structuredClone(request));
      const answer = answers[requests.length - 1];
      if (answer === undefined) throw new Error("the script has no further answer");
      if (answer instanceof Error) throw answer;
      if (typeof answer === "function") {
        yield* answer(signal);
        return;
      }
      yield* answer;
    },
  };
}

export function text(...parts: string[]): ProviderEvent[] {
  return [
    ...parts.map((part): ProviderEvent => ({ type: "text", text: part })),
    { type: "finish", reason: "stop", usage: { inputTokens: 10, outputTokens: 5, estimated: false } },
  ];
}

export function call(name: string, args: unknown, id = `id-${name}`): ToolCall {
  return { id, name, arguments: typeof args === "string" ? args : JSON.stringify(args) };
}

export function calls(...made: ToolCall[]): ProviderEvent[] {
  return [
    ...made.map((one): ProviderEvent => ({ type: "tool_call", call: one })),
    { type: "finish", reason: "tool_calls", usage: null },
  ];
}

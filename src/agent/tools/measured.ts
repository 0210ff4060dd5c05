/**
 * A tool whose calls are timed by outcome. It changes neither result nor error, and calls that never reach a tool (an
 * unknown name, wrong arguments) are none of its business. Invariant: every run is counted once.
 */
import { type Metrics, timed } from "../../metrics.js";
import type { Tool, ToolContext } from "./tool.js";

/** The same tool, timed: `ok`, `error`, `wait`, or `aborted`. */
export function withToolMetrics<Input>(tool: Tool<Input>, metrics: Metrics): Tool<Input> {
  return {
    name: tool.name,
    description: tool.description,
    input: tool.input,
    isReadOnly: tool.isReadOnly,
    run: (input: Input, context: ToolContext) =>
      timed(() => tool.run(input, context), {
        onEnd: (outcome, ms) => metrics.observe("tool_call_seconds", { tool: tool.name, outcome }, ms),
        outcomeOf: (end) => {
          if (!end.ok) return context.signal.aborted ? "aborted" : "error";
          if (end.value.type === "wait") return "wait";
          return end.value.isError ? "error" : "ok";
        },
      }),
  };
}

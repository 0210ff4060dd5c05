/**
 * The tools of one run by name: what a model is told of them, and the one way to run a call. It knows no tool itself and
 * holds no state. Invariant: every call gets a result; only an abort is thrown.
 */
import type { ToolCall, ToolDefinition } from "../providers/provider.js";
import { inputSchemaOf, parseArguments } from "./arguments.js";
import { nearest } from "./nearest.js";
import type { Tool, ToolContext, ToolResult } from "./tool.js";

/** Said behind a tool's own failure, so that the model does not simply repeat the call. [RUN-8] */
const TRY_DIFFERENTLY = "\n\n(The call failed. Find out why before you go on, and try another way.)";

export interface ToolRegistry {
  /** Sorted by name, so that the prompt's beginning stays the same. */
  definitions(): ToolDefinition[];
  /** Whether calls of this name may run beside each other. Unknown names may not. */
  isReadOnly(name: string): boolean;
  /** Checks the arguments and runs the tool. Throws only the signal's reason. */
  runTool(call: ToolCall, context: ToolContext): Promise<ToolResult>;
}

function failed(text: string): ToolResult {
  return { type: "done", text, isError: true };
}

function unknownTool(name: string, known: readonly string[]): ToolResult {
  const meant = nearest(name, known);
  const hint = meant === null ? "" : ` Did you mean "${meant}"?`;
  return failed(`There is no tool "${name}".${hint} The tools are: ${known.join(", ") || "none"}. Nothing was run.`);
}

/** A registry over these tools. Throws when two share a name. */
export function createToolRegistry(tools: readonly Tool[]): ToolRegistry {
  const sorted = [...tools].sort((a, b) => (a.name < b.name ? -1 : 1));
  const byName = new Map(sorted.map((tool) => [tool.name, tool]));
  if (byName.size !== tools.length) throw new Error("two tools have the same name");
  const definitions = sorted.map((tool) => ({
    name: tool.name,
    description: tool.description,
    parameters: inputSchemaOf(tool.input),
  }));

  return {
    definitions: () => definitions,
    isReadOnly: (name) => byName.get(name)?.isReadOnly ?? false,
    async runTool(call, context) {
      context.signal.throwIfAborted();
      const tool = byName.get(call.name);
      if (tool === undefined) return unknownTool(call.name, [...byName.keys()]);
      const input = parseArguments(call.arguments, tool.input);
      if (!input.ok) return failed(`${input.problem} Nothing was run.`);
      try {
        const result = await tool.run(input.value, context);
        return result.type === "done" && result.isError ? failed(result.text + TRY_DIFFERENTLY) : result;
      } catch (error) {
        if (context.signal.aborted) throw context.signal.reason;
        const message = error instanceof Error ? error.message : String(error);
        return failed(`${call.name} failed: ${message}${TRY_DIFFERENTLY}`);
      }
    },
  };
}

/**
 * The runner: model ⇄ tools, as a pure async generator. It knows neither bus nor Redis nor channel nor file: everything it
 * needs is an argument, everything that happens is an event, and the consumer makes each event durable before it asks
 * for the next one. Invariant: after an `assistant` event with calls, one `tool_result` (or a place in `parked`) follows
 * for each call, in the order of the calls, whatever a tool did.
 */
import type { Usage } from "../bus/messages.js";
import type { Logger } from "../logger.js";
import type { ChatMessage, Provider, ToolCall } from "./providers/provider.js";
import type { Tool } from "./tools/tool.js";

export interface RunInput {
  /** System row, history, and the user's message: legal, ending in a user or tool row. */
  messages: readonly ChatMessage[];
  provider: Provider;
  model: string;
  tools: readonly Tool[];
  /** Number of the first model call of this run; a resumed turn goes on counting. */
  firstStep: number;
  maxIterations: number;
  maxOutputTokens: number;
  toolResultMaxChars: number;
  signal: AbortSignal;
  logger: Logger;
  /**
   * Asked at every safe point (after a batch of tools, after a final answer, at the iteration limit): messages to take in.
   * Rows returned here are already durable. Throws when the turn must end. [LOOP-18]
   */
  takeIn(where: "after_tools" | "after_final" | "at_limit"): Promise<ChatMessage[]>;
}

/** What happens in a run, in order. `step` numbers model calls. */
export type RunEvent =
  | { type: "text"; step: number; text: string }
  | { type: "reasoning"; step: number; text: string }
  /** What was shown of this step is void: the model call is made again. */
  | { type: "void"; step: number }
  /** A complete answer of the model. `isFinal`: no tool calls follow from it. */
  | {
      type: "assistant";
      step: number;
      content: string;
      toolCalls: ToolCall[];
      reasoning: string | null;
      usage: Usage | null;
      isFinal: boolean;
    }
  | { type: "tool_start"; step: number; call: ToolCall }
  | { type: "tool_result"; step: number; call: ToolCall; text: string; isError: boolean }
  /** These calls wait for an answer; the run ends with `parked`. */
  | { type: "parked"; step: number; waits: Array<{ call: ToolCall; waitId: string; untilMs: number }> };

/** How a run ended. [RUN-5] */
export interface RunResult {
  stop: "completed" | "max_iterations" | "empty_final" | "parked";
  /** The last answer's text; empty when parked. */
  text: string;
  usage: Usage | null;
}

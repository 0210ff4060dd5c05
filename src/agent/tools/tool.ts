/**
 * The seam to a tool: a name, a schema, and one function. A tool knows its workspace and nothing of sessions, channels
 * or Redis; what it needs beyond, it is given when it is made. Invariant: a failing tool is a result with `isError`,
 * never an exception that ends a turn; only an abort is thrown.
 */
import type { z } from "zod";

/** What a tool call is run with. */
export interface ToolContext {
  /** Aborts when the turn is stopped, drained or has lost its lease. */
  signal: AbortSignal;
  /** The call's id, unique in the session; a waiting call is answered by it. */
  callId: string;
}

export type ToolResult =
  | { type: "done"; text: string; isError: boolean }
  /** The answer comes later: the turn is parked until `waitId` is answered or `untilMs` (epoch) has passed. */
  | { type: "wait"; waitId: string; untilMs: number };

/** One capability of the agent. */
export interface Tool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  /** An object schema; arguments that do not fit are answered with what is allowed, and the tool is not run. */
  readonly input: z.ZodType<Input>;
  /** True when it changes nothing, so that several may run at once. [RUN-7] */
  readonly isReadOnly: boolean;
  run(input: Input, context: ToolContext): Promise<ToolResult>;
}

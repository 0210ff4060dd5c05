/**
 * Runs the calls of one model answer: neighbours that change nothing beside each other, all others alone. It knows no
 * model. Invariants: results come in the order of the calls, one for each call that does not wait; a tool that ignores an
 * abort holds nobody up; nothing of a batch is started before the consumer has taken its `tool_start`.
 */
import { raceAbort } from "./providers/abort.js";
import type { ChatMessage, ToolCall } from "./providers/provider.js";
import { boundResult, repeatedCall } from "./runner-texts.js";
import type { ToolRegistry } from "./tools/registry.js";
import type { ToolResult } from "./tools/tool.js";

/** How often the same call may be run in a row. */
const MAX_SAME_CALLS = 2;

/** What a batch tells while it is under way. */
export type ToolEvent =
  | { type: "tool_start"; step: number; call: ToolCall }
  | { type: "tool_result"; step: number; call: ToolCall; text: string; isError: boolean };

/** A call whose answer comes later. */
export interface Wait {
  call: ToolCall;
  waitId: string;
  untilMs: number;
}

type Outcome = { ok: true; result: ToolResult } | { ok: false; error: unknown };

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function canonical(call: ToolCall): string {
  try {
    return `${call.name} ${JSON.stringify(JSON.parse(call.arguments), sortedKeys)}`;
  } catch (error) {
    if (error instanceof SyntaxError) return `${call.name} ${call.arguments}`;
    throw error;
  }
}

/** Counts how often the same call came in a row, over the batches of one run. */
export class RepeatGuard {
  #last = "";
  #times = 0;

  /** The number of this call within its row of equal ones. */
  count(call: ToolCall): number {
    const key = canonical(call);
    this.#times = key === this.#last ? this.#times + 1 : 1;
    this.#last = key;
    return this.#times;
  }
}

/** What a batch is run with. */
export interface BatchDeps {
  registry: ToolRegistry;
  repeats: RepeatGuard;
  signal: AbortSignal;
  toolResultMaxChars: number;
}

function groups(calls: readonly ToolCall[], registry: ToolRegistry): ToolCall[][] {
  const grouped: ToolCall[][] = [];
  let isOpen = false;
  for (const call of calls) {
    const isReadOnly = registry.isReadOnly(call.name);
    const last = grouped.at(-1);
    if (isOpen && isReadOnly && last) last.push(call);
    else grouped.push([call]);
    isOpen = isReadOnly;
  }
  return grouped;
}

async function start(call: ToolCall, deps: BatchDeps): Promise<Outcome> {
  const times = deps.repeats.count(call);
  if (times > MAX_SAME_CALLS) {
    return { ok: true, result: { type: "done", text: repeatedCall(call.name, times), isError: true } };
  }
  try {
    const running = deps.registry.runTool(call, { signal: deps.signal, callId: call.id });
    return { ok: true, result: await raceAbort(running, deps.signal) };
  } catch (error) {
    // Thrown where the call's turn comes: one that fails while another is awaited must not fail unheard.
    return { ok: false, error };
  }
}

/** Runs the calls; returns the rows for the model, and the calls whose answer comes later. */
export async function* runCalls(
  step: number,
  calls: readonly ToolCall[],
  deps: BatchDeps,
): AsyncGenerator<ToolEvent, { rows: ChatMessage[]; waits: Wait[] }> {
  const rows: ChatMessage[] = [];
  const waits: Wait[] = [];
  for (const group of groups(calls, deps.registry)) {
    for (const call of group) yield { type: "tool_start", step, call };
    deps.signal.throwIfAborted();
    const running = group.map((call) => ({ call, outcome: start(call, deps) }));
    for (const { call, outcome } of running) {
      const ended = await outcome;
      if (!ended.ok) throw ended.error;
      const { result } = ended;
      if (result.type === "wait") {
        waits.push({ call, waitId: result.waitId, untilMs: result.untilMs });
        continue;
      }
      const text = boundResult(result.text, deps.toolResultMaxChars);
      rows.push({ role: "tool", toolCallId: call.id, name: call.name, content: text });
      yield { type: "tool_result", step, call, text, isError: result.isError };
    }
  }
  return { rows, waits };
}

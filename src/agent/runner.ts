/**
 * The runner: model ⇄ tools, as a pure async generator. It knows neither bus nor Redis nor channel nor file: everything it
 * needs is an argument, everything that happens is an event, and the consumer makes each event durable before it asks
 * for the next one. Invariant: after an `assistant` event with calls, one `tool_result` (or a place in `parked`) follows
 * for each call, in the order of the calls, whatever a tool did.
 */
import type { Usage } from "../bus/messages.js";
import type { Logger } from "../logger.js";
import { linkAbort } from "./providers/abort.js";
import { callIdsOf, claimCallId } from "./providers/call-ids.js";
import { addUsage } from "./providers/estimate.js";
import { type ChatMessage, type Provider, ProviderError, type ToolCall } from "./providers/provider.js";
import { hasImages, mayBeAboutImages, withoutImages } from "./runner-images.js";
import { type Answer, askStep, type StepDeps } from "./runner-step.js";
import { ANSWER_NOW, CLOSING, EMPTY_FINAL, FILTERED, limitReached, NAMELESS_CALLS } from "./runner-texts.js";
import { RepeatGuard, runCalls } from "./runner-tools.js";
import { createToolRegistry, type ToolRegistry } from "./tools/registry.js";
import type { Tool } from "./tools/tool.js";

export interface RunInput {
  /** System row, history, and the user's message: legal, ending in a user or tool row. */
  messages: readonly ChatMessage[];
  provider: Provider;
  model: string;
  tools: readonly Tool[];
  /** Number of the first model call of this run; a resumed turn goes on counting. */
  firstStep: number;
  /** Model calls with tools that a turn may make; those before `firstStep` count. */
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

/** A run under way. */
interface Run {
  input: RunInput;
  /** Follows the input's signal, and aborts when the consumer walks away. */
  signal: AbortSignal;
  registry: ToolRegistry;
  repeats: RepeatGuard;
  messages: ChatMessage[];
  step: number;
  iterations: number;
  usage: Usage | null;
  /** Whether anything of the present model call was shown. */
  isShown: boolean;
  /** Whether images were refused: none is sent any more. */
  isBlind: boolean;
}

type Verdict = "calls" | "final" | "filtered" | "nameless" | "blank" | "too_long";

function judge(answer: Answer): Verdict {
  const mayCall = answer.reason === "stop" || answer.reason === "tool_calls";
  if (mayCall && answer.calls.some((call) => call.name.trim() !== "")) return "calls";
  if (answer.content !== "") return "final";
  if (answer.reason === "content_filter") return "filtered";
  if (answer.reason === "length") return "too_long";
  return mayCall && answer.calls.length > 0 ? "nameless" : "blank";
}

/** One model call of this step; `instruction` is shown to the model and not kept. */
async function* ask(
  run: Run,
  toolChoice: "auto" | "none",
  instruction: string | null,
): AsyncGenerator<RunEvent, Answer> {
  const { provider, model, maxOutputTokens } = run.input;
  const note: ChatMessage[] = instruction === null ? [] : [{ role: "user", content: instruction }];
  const spoken = [...run.messages, ...note];
  const messages = run.isBlind ? withoutImages(spoken) : spoken;
  const { logger } = run.input;
  const request = { model, messages, tools: run.registry.definitions(), toolChoice, maxOutputTokens };
  const { step, signal } = run;
  run.isShown = false;
  run.iterations += 1;
  const onShow = () => {
    run.isShown = true;
  };
  const asked = { provider, request, step, signal, logger, onShow };
  const answer = yield* hasImages(messages) ? askSeeing(run, asked) : askStep(asked);
  if (toolChoice === "none") answer.calls = [];
  return answer;
}

/** Asks with images; where they may be why the request is refused, once more without. [RUN-29] */
async function* askSeeing(run: Run, asked: StepDeps): AsyncGenerator<RunEvent, Answer> {
  try {
    return yield* askStep(asked);
  } catch (error) {
    if (run.isShown || run.signal.aborted || !mayBeAboutImages(error)) throw error;
    asked.logger.warn({ err: error, step: asked.step, model: run.input.model }, "asked again without images");
  }
  run.isBlind = true;
  const messages = withoutImages(asked.request.messages);
  return yield* askStep({ ...asked, request: { ...asked.request, messages } });
}

/** Asks until the answer is of use: once more in silence, then once for words alone. [RUN-4, 14, 19] */
async function* askUntilUseful(run: Run): AsyncGenerator<RunEvent, { answer: Answer; verdict: Verdict }> {
  let answer = yield* ask(run, "auto", null);
  let verdict = judge(answer);
  let usage = answer.usage;
  for (const isLast of verdict === "too_long" ? [true] : [false, true]) {
    if (verdict === "calls" || verdict === "final" || verdict === "filtered") break;
    run.input.logger.warn({ step: run.step, model: run.input.model, verdict }, "the model's answer is of no use");
    if (run.isShown) yield { type: "void", step: run.step };
    const retry = verdict === "nameless" ? NAMELESS_CALLS : null;
    answer = yield* ask(run, isLast ? "none" : "auto", isLast ? ANSWER_NOW : retry);
    verdict = judge(answer);
    usage = addUsage(usage, answer.usage);
  }
  return { answer: { ...answer, usage }, verdict };
}

/** Adds a complete answer to the conversation and tells of it. */
async function* conclude(run: Run, answer: Answer, isFinal: boolean): AsyncGenerator<RunEvent> {
  const { content, calls: toolCalls, usage } = answer;
  const reasoning = answer.reasoning === "" ? null : answer.reasoning;
  run.usage = addUsage(run.usage, usage);
  run.messages.push({ role: "assistant", content, toolCalls, ...(reasoning === null ? {} : { reasoning }) });
  yield { type: "assistant", step: run.step, content, toolCalls, reasoning, usage, isFinal };
  run.step += 1;
}

/** Runs the calls of an answer; true when some of them wait. */
async function* work(run: Run, answer: Answer): AsyncGenerator<RunEvent, boolean> {
  const { step, registry, repeats, signal } = run;
  const used = callIdsOf(run.messages);
  const calls = answer.calls
    .filter((call) => call.name.trim() !== "")
    .map((call) => ({ ...call, id: claimCallId(call.id, used) }));
  yield* conclude(run, { ...answer, calls }, false);
  const { toolResultMaxChars } = run.input;
  const { rows, waits } = yield* runCalls(step, calls, { registry, repeats, signal, toolResultMaxChars });
  run.messages.push(...rows);
  if (waits.length > 0) yield { type: "parked", step, waits };
  return waits.length > 0;
}

/** The closing answer at the iteration limit, or a sentence that names the limit. [RUN-17] */
async function* close(run: Run): AsyncGenerator<RunEvent, RunResult> {
  const { maxIterations, logger, model } = run.input;
  run.messages.push(...(await run.input.takeIn("at_limit")));
  let answer: Answer = { content: "", reasoning: "", calls: [], reason: "stop", usage: null };
  try {
    answer = yield* ask(run, "none", CLOSING);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    logger.warn({ err: error, step: run.step, model }, "the closing answer failed");
    if (run.isShown) yield { type: "void", step: run.step };
  }
  const content = answer.content === "" ? limitReached(maxIterations) : answer.content;
  yield* conclude(run, { ...answer, content, calls: [] }, true);
  return { stop: "max_iterations", text: content, usage: run.usage };
}

/** What is said, and how the run ends, when no calls follow. */
function finalOf(answer: Answer, verdict: Verdict): { stop: RunResult["stop"]; content: string } {
  if (verdict === "final") return { stop: "completed", content: answer.content };
  return { stop: "empty_final", content: verdict === "filtered" ? FILTERED : EMPTY_FINAL };
}

async function* iterate(run: Run): AsyncGenerator<RunEvent, RunResult> {
  while (true) {
    run.signal.throwIfAborted();
    if (run.iterations >= run.input.maxIterations) return yield* close(run);
    const { answer, verdict } = yield* askUntilUseful(run);
    if (verdict === "calls") {
      if (yield* work(run, answer)) return { stop: "parked", text: "", usage: run.usage };
      run.messages.push(...(await run.input.takeIn("after_tools")));
      continue;
    }
    if (answer.calls.length > 0) run.input.logger.warn({ step: run.step, reason: answer.reason }, "calls are ignored");
    const { stop, content } = finalOf(answer, verdict);
    yield* conclude(run, { ...answer, content, calls: [] }, true);
    const rows = await run.input.takeIn("after_final");
    if (rows.length === 0) return { stop, text: content, usage: run.usage };
    run.messages.push(...rows);
  }
}

/**
 * Runs a conversation until the model has answered, something waits, or the limit is reached. Throws `ProviderError` as
 * the provider threw it, the signal's reason on abort, and whatever `takeIn` throws.
 */
export async function* runAgent(input: RunInput): AsyncGenerator<RunEvent, RunResult> {
  const link = linkAbort(input.signal);
  try {
    return yield* iterate({
      input,
      signal: link.controller.signal,
      registry: createToolRegistry(input.tools),
      repeats: new RepeatGuard(),
      messages: [...input.messages],
      step: input.firstStep,
      iterations: input.firstStep - 1,
      usage: null,
      isShown: false,
      isBlind: false,
    });
  } finally {
    link.close();
  }
}

/**
 * One visible step: a model call, its deltas without inline reasoning, and the continuations of an answer that was cut
 * off by its length. It runs no tools and decides nothing about the answer. Invariants: the text events joined are the
 * content; a blank answer shows no text; a provider that ignores an abort holds nobody up.
 */
import type { Usage } from "../bus/messages.js";
import type { Logger } from "../logger.js";
import { raceAbort } from "./providers/abort.js";
import { addUsage, estimateUsage } from "./providers/estimate.js";
import {
  type ChatMessage,
  type FinishReason,
  type ModelRequest,
  type Provider,
  ProviderError,
  type ProviderEvent,
  type ToolCall,
} from "./providers/provider.js";
import { continuation } from "./runner-texts.js";
import { ThinkFilter } from "./runner-think.js";

const MAX_CONTINUATIONS = 3;

/** What a step shows while it is under way. */
export interface ShownEvent {
  type: "text" | "reasoning";
  step: number;
  text: string;
}

/** What a step asks with. */
export interface StepDeps {
  provider: Provider;
  request: ModelRequest;
  step: number;
  signal: AbortSignal;
  logger: Logger;
  /** Told before each event. */
  onShow(): void;
}

/** A complete answer, its continuations joined. */
export interface Answer {
  content: string;
  reasoning: string;
  calls: ToolCall[];
  reason: FinishReason;
  usage: Usage | null;
}

/** The provider's events; each wait ends at once on abort, and the provider is let go whatever happens. */
async function* eventsOf(deps: StepDeps): AsyncGenerator<ProviderEvent> {
  const events = deps.provider.stream(deps.request, deps.signal, deps.logger)[Symbol.asyncIterator]();
  try {
    while (true) {
      const next = await raceAbort(events.next(), deps.signal);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // Not awaited: a provider that hangs would hang this too.
    events.return?.().catch((error: unknown) => {
      deps.logger.debug({ err: error, step: deps.step }, "a provider failed while it was let go");
    });
  }
}

/** Sorts one answer's events into text and reasoning, as they may be shown. */
class AnswerSorter {
  readonly answer: Answer = { content: "", reasoning: "", calls: [], reason: "stop", usage: null };
  readonly #filter: ThinkFilter;
  #hasOwnReasoning = false;
  /** Spaces before the first word: shown with it, or never. */
  #held = "";
  #hasWords: boolean;

  constructor(
    readonly deps: StepDeps,
    isContinuation: boolean,
  ) {
    this.#filter = new ThinkFilter(isContinuation);
    this.#hasWords = isContinuation;
  }

  *reasoning(text: string): Generator<ShownEvent> {
    this.#hasOwnReasoning = true;
    yield* this.#reason(text);
  }

  *text(delta: string): Generator<ShownEvent> {
    yield* this.#show(this.#filter.push(delta));
  }

  *end(): Generator<ShownEvent> {
    yield* this.#show(this.#filter.end());
  }

  /** Inline reasoning is always taken out, and shown only where there is no better. */
  *#show(sorted: { text: string; reasoning: string }): Generator<ShownEvent> {
    if (!this.#hasOwnReasoning) yield* this.#reason(sorted.reasoning);
    const text = this.#held + sorted.text;
    this.#hasWords ||= text.trim() !== "";
    this.#held = this.#hasWords ? "" : text;
    if (!this.#hasWords || text === "") return;
    this.answer.content += text;
    this.deps.onShow();
    yield { type: "text", step: this.deps.step, text };
  }

  *#reason(text: string): Generator<ShownEvent> {
    if (text === "") return;
    this.answer.reasoning += text;
    this.deps.onShow();
    yield { type: "reasoning", step: this.deps.step, text };
  }
}

function written(answer: Answer): string {
  return answer.content + answer.reasoning + answer.calls.map((call) => call.name + call.arguments).join("");
}

async function* askOnce(deps: StepDeps, isContinuation: boolean): AsyncGenerator<ShownEvent, Answer> {
  const sorter = new AnswerSorter(deps, isContinuation);
  const { answer } = sorter;
  let isFinished = false;
  for await (const event of eventsOf(deps)) {
    switch (event.type) {
      case "text":
        yield* sorter.text(event.text);
        break;
      case "reasoning":
        yield* sorter.reasoning(event.text);
        break;
      case "tool_call":
        answer.calls.push(event.call);
        break;
      case "finish":
        isFinished = true;
        answer.reason = event.reason;
        answer.usage = event.usage;
        break;
      default:
        event satisfies never;
    }
  }
  if (!isFinished) throw new ProviderError("PROVIDER_INCOMPLETE", "The model's answer ended without a finish reason.");
  yield* sorter.end();
  answer.usage ??= estimateUsage(deps.request, written(answer));
  return answer;
}

function withRest(request: ModelRequest, soFar: string): ModelRequest {
  const begun: ChatMessage[] = soFar.trim() === "" ? [] : [{ role: "assistant", content: soFar, toolCalls: [] }];
  return { ...request, messages: [...request.messages, ...begun, { role: "user", content: continuation(soFar) }] };
}

function joined(first: Answer, next: Answer): Answer {
  return {
    content: first.content + next.content,
    reasoning: first.reasoning + next.reasoning,
    calls: next.calls,
    reason: next.reason,
    usage: addUsage(first.usage, next.usage),
  };
}

/** Asks the model once, and for the rest where the answer was cut off by its length. [RUN-15] */
export async function* askStep(deps: StepDeps): AsyncGenerator<ShownEvent, Answer> {
  let answer = yield* askOnce(deps, false);
  for (let round = 0; answer.reason === "length" && round < MAX_CONTINUATIONS; round += 1) {
    const request = withRest(deps.request, answer.content);
    const next = yield* askOnce({ ...deps, request }, answer.content !== "");
    answer = joined(answer, next);
  }
  return answer;
}

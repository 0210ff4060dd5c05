/**
 * The model that needs nothing: it repeats what it was told and, at the start of a conversation, says how to connect a real
 * one. It uses no network, no clock and no chance, calls no tools, and never pretends to be a model. Invariant: the same request gives the same
 * answer in the same pieces, bounded however long the request is, and every answer begins with the label.
 */
import { estimateUsage } from "./estimate.js";
import { wellFormed } from "./normalise-row.js";
import type { ModelRequest, Provider, ProviderEvent } from "./provider.js";

const LABEL = "[demo model]";
const ECHO_MAX_CHARS = 500;
const HINT =
  "No real model is connected yet. To connect one, set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY in the environment and restart, or write providers and agent.model into the config.";

function lastUserText(request: ModelRequest): string {
  const row = request.messages.findLast((message) => message.role === "user");
  return wellFormed(row?.content ?? "").trim();
}

function shorten(text: string): string {
  if (text.length <= ECHO_MAX_CHARS) return text;
  const cut = text.slice(0, ECHO_MAX_CHARS).replace(/\p{Surrogate}$/u, "");
  return `${cut}…`;
}

function answerTo(request: ModelRequest): string {
  const said = lastUserText(request);
  if (said === "") return `${LABEL} ${HINT}`;
  const isFirst = !request.messages.some(({ role }) => role === "assistant");
  return `${LABEL} You said: ${shorten(said)}${isFirst ? `\n\n${HINT}` : ""}`;
}

/** Words of any language, each with the spaces and marks behind it; joined they give the text back. */
function wordsOf(text: string, segmenter: Intl.Segmenter): string[] {
  const words: string[] = [];
  for (const { segment, isWordLike } of segmenter.segment(text)) {
    const last = words.length - 1;
    if (isWordLike || last < 0) words.push(segment);
    else words[last] = `${words[last]}${segment}`;
  }
  return words;
}

/** The demo provider; any model name will do. */
export function createDemoProvider(): Provider {
  const segmenter = new Intl.Segmenter("und", { granularity: "word" });
  return {
    name: "demo",
    async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ProviderEvent> {
      const answer = answerTo(request);
      for (const text of wordsOf(answer, segmenter)) {
        signal.throwIfAborted();
        yield { type: "text", text };
      }
      signal.throwIfAborted();
      yield { type: "finish", reason: "stop", usage: estimateUsage(request, answer) };
    },
  };
}

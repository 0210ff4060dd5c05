/**
 * A model inside the process whose answers follow from the conversation, by the rules of the end-to-end model peer: the
 * newest user message `x` is answered with `re: x`; `call <tool> <json>` in it (several, one a line) makes tool calls
 * first, whose results are then answered with `used: <result> | <result>`. Answers can be held back after their first
 * piece. It keeps what it was asked and what was aborted.
 */
import type { ChatMessage, ModelRequest, Provider, ProviderEvent } from "../../src/agent/providers/provider.js";

/** Which messages are meant: those that contain a text, or match. */
type About = string | RegExp;

interface Gate {
  about: About;
  opened: Promise<void>;
  open: () => void;
}

export class Talker implements Provider {
  readonly name = "talker";
  readonly requests: ModelRequest[] = [];
  /** Newest user texts of the calls that were aborted. */
  readonly aborted: string[] = [];
  readonly #gates: Gate[] = [];
  readonly #arrivals: Array<{ about: About; arrived: () => void }> = [];
  #running = 0;
  /** Most calls that ran at once. */
  peak = 0;

  /** Holds answers to such messages until the returned function is called. */
  hold(about: About): () => void {
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const gate = { about, opened, open };
    this.#gates.push(gate);
    return () => {
      this.#gates.splice(this.#gates.indexOf(gate), 1);
      open();
    };
  }

  /** Resolves when a call about such a message has begun to be answered. Ask before the message is sent. */
  arrival(about: About): Promise<void> {
    return new Promise((arrived) => this.#arrivals.push({ about, arrived }));
  }

  /** User texts of the newest row of each request, in order. */
  get asked(): string[] {
    return this.requests.map(({ messages }) => newestUserText(messages));
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ProviderEvent> {
    this.requests.push(structuredClone(request));
    this.#running += 1;
    this.peak = Math.max(this.peak, this.#running);
    try {
      yield* this.#answer(request, signal);
    } finally {
      this.#running -= 1;
      if (signal.aborted) this.aborted.push(newestUserText(request.messages));
    }
  }

  async *#answer({ messages, toolChoice }: ModelRequest, signal: AbortSignal): AsyncGenerator<ProviderEvent> {
    const said = newestUserText(messages);
    const results = trailingResults(messages);
    const calls = results.length > 0 || toolChoice === "none" ? [] : [...said.matchAll(/^call (\w+) (\{.*\})$/gm)];
    if (calls.length === 0) yield { type: "text", text: results.length > 0 ? "used: " : "re: " };
    for (const arrival of this.#arrivals.filter((each) => isAbout(said, each.about))) arrival.arrived();
    for (const gate of this.#gates.filter((each) => isAbout(said, each.about))) await orAborted(gate.opened, signal);
    signal.throwIfAborted();
    for (const [index, [, name = "", args = ""]] of calls.entries()) {
      const id = `c${this.requests.length}_${index}`;
      yield { type: "tool_call", call: { id, name, arguments: args } };
    }
    if (calls.length === 0) yield { type: "text", text: results.length > 0 ? results.join(" | ") : said };
    yield { type: "finish", reason: calls.length > 0 ? "tool_calls" : "stop", usage: null };
  }
}

function isAbout(said: string, about: About): boolean {
  return typeof about === "string" ? said.includes(about) : about.test(said);
}

function newestUserText(messages: readonly ChatMessage[]): string {
  const row = messages.findLast((message) => message.role === "user");
  return row?.content ?? "";
}

/** Results behind the last row that is none. */
function trailingResults(messages: readonly ChatMessage[]): string[] {
  const last = messages.findLastIndex((message) => message.role !== "tool");
  return messages.slice(last + 1).map((message) => message.content);
}

async function orAborted(opened: Promise<void>, signal: AbortSignal): Promise<void> {
  let stop = () => {};
  const aborted = new Promise<void>((resolve) => {
    stop = resolve;
    signal.addEventListener("abort", stop);
  });
  await Promise.race([opened, aborted]);
  signal.removeEventListener("abort", stop);
}

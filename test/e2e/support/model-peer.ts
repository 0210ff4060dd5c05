/**
 * The model of the end-to-end tests: a real HTTP endpoint with OpenAI's wire, whose answers follow from the conversation:
 * the newest user message `x` is answered with `re: x`; `call <tool> <json>` in it makes a tool call first, whose result is
 * then answered with `used: <result>`. Answers to messages with `slowly` in them come 8 characters every 10 ms. Answers can
 * be held back. It keeps every request.
 */
import { type ChatCompletionRequest, LLMock } from "@copilotkit/aimock";

interface Gate {
  text: string;
  opened: Promise<void>;
  open: () => void;
}

export class ModelPeer {
  readonly #mock = new LLMock({ port: 0, chunkSize: 8 });
  readonly #gates: Gate[] = [];
  readonly #arrivals: Array<{ text: string; arrived: () => void }> = [];
  readonly requests: ChatCompletionRequest[] = [];
  #answering = 0;
  /** Most requests that were being answered at once. */
  peak = 0;

  async start(): Promise<void> {
    const response = (request: ChatCompletionRequest) => this.#answer(request);
    const isSlow = (request: ChatCompletionRequest) => newestUserText(request).includes("slowly");
    this.#mock.addFixture({ match: { predicate: isSlow }, response, latency: 10 });
    this.#mock.addFixture({ match: { predicate: () => true }, response });
    await this.#mock.start();
  }

  /** What goes into a provider's `baseUrl`. */
  get baseUrl(): string {
    return `${this.#mock.url}/v1`;
  }

  async stop(): Promise<void> {
    for (const gate of this.#gates) gate.open();
    await this.#mock.stop();
  }

  /** Holds answers to conversations whose newest user message contains `text`, until the returned function is called. */
  hold(text: string): () => void {
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const gate = { text, opened, open };
    this.#gates.push(gate);
    return () => {
      this.#gates.splice(this.#gates.indexOf(gate), 1);
      open();
    };
  }

  /** Resolves when a request arrives whose newest user message contains `text`. Call it before the message is sent. */
  arrival(text: string): Promise<void> {
    return new Promise((arrived) => this.#arrivals.push({ text, arrived }));
  }

  /** How often the model was asked about this user message, tool rounds included. */
  asked(text: string): number {
    return this.requests.filter((request) => newestUserText(request).includes(text)).length;
  }

  async #answer(request: ChatCompletionRequest) {
    this.requests.push(request);
    this.#answering += 1;
    this.peak = Math.max(this.peak, this.#answering);
    try {
      return await this.#answerTo(request);
    } finally {
      this.#answering -= 1;
    }
  }

  async #answerTo(request: ChatCompletionRequest) {
    const said = newestUserText(request);
    for (const arrival of this.#arrivals.filter(({ text }) => said.includes(text))) arrival.arrived();
    for (const gate of this.#gates.filter(({ text }) => said.includes(text))) await gate.opened;
    const last = request.messages.at(-1);
    if (last?.role === "tool") return { content: `used: ${String(last.content)}` };
    const call = /call (\w+) (\{.*\})/s.exec(said);
    if (call?.[1] !== undefined && call[2] !== undefined) {
      return { toolCalls: [{ name: call[1], arguments: call[2], id: `call_${this.requests.length}` }] };
    }
    return { content: `re: ${said}` };
  }
}

/** The text of the last user row of a request. */
export function newestUserText(request: ChatCompletionRequest): string {
  const row = request.messages.findLast((message) => message.role === "user");
  return typeof row?.content === "string" ? row.content : JSON.stringify(row?.content ?? "");
}

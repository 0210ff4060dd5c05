/**
 * A Bot API that answers as it is told: for refusals that no honest platform would give on demand. It checks nothing; the
 * strict fake does. Every call is kept.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What to do with the next call. */
export type Answer =
  | { error_code: number; description: string; parameters?: Record<string, number> }
  | { result: unknown }
  /** The connection is cut when the request has arrived. */
  | "reset"
  /** No answer ever. */
  | "silence"
  | { html: number };

export interface Call {
  method: string;
  /** Of a JSON body; of a form only its raw text under `form`. */
  params: Record<string, unknown>;
}

export class ScriptedApi {
  readonly calls: Call[] = [];
  readonly #answers: Answer[] = [];
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  #nextId = 100;
  #onCall: () => void = () => {};

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Answers to the next calls; then everything succeeds. */
  will(...answers: Answer[]): void {
    this.#answers.push(...answers);
  }

  /** The next call that arrives from now on. */
  called(): Promise<void> {
    return new Promise((resolve) => {
      this.#onCall = resolve;
    });
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    if (body === null) return;
    const isJson = request.headers["content-type"]?.includes("json") === true;
    const params = isJson ? JSON.parse(Buffer.from(body, "latin1").toString()) : { form: body };
    this.calls.push({ method: request.url?.split("/").at(-1) ?? "", params });
    this.#onCall();
    const answer = this.#answers.shift() ?? { result: { message_id: this.#nextId++ } };
    if (answer === "silence") return;
    if (answer === "reset") {
      request.socket.destroy();
      return;
    }
    if ("html" in answer) response.writeHead(answer.html).end("<html>Bad gateway</html>");
    else if ("result" in answer) response.writeHead(200).end(JSON.stringify({ ok: true, result: answer.result }));
    else response.writeHead(answer.error_code).end(JSON.stringify({ ok: false, ...answer }));
  }
}

/** Null when the caller went away before all of it had come. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  const isWhole = await new Promise<boolean>((resolve) => {
    request.once("end", () => resolve(true)).once("error", () => resolve(false));
  });
  return isWhole ? Buffer.concat(chunks).toString("latin1") : null;
}

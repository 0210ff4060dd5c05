/**
 * The side of the Bot API that brings updates, as small as it can be: a queue with offsets, long polls, files, and answers
 * that a test scripts. Every call is kept. The strict fake checks what is sent; this one is for what comes in.
 */
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ME } from "./said.js";

/** What a test has the next call of a method do. `hold`: nothing comes back; `reset`: the connection is cut. */
export type Script = "hold" | "reset" | { error: number; description: string; retryAfter?: number } | { raw: unknown };

export interface Call {
  method: string;
  params: Record<string, unknown>;
  atMs: number;
}

type Numbered = { update_id: number };

export class SmallBotApi {
  readonly token = `${ME.id}:${randomBytes(26).toString("base64url").slice(0, 35)}`;
  readonly calls: Call[] = [];
  /** A promise is a file that takes its time. */
  readonly files = new Map<string, Buffer | Promise<Buffer> | "hold" | "reset">();
  webhookUrl = "";
  webhookInfo: Record<string, unknown> = { pending_update_count: 0 };
  readonly #scripts = new Map<string, Script[]>();
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  #updates: Numbered[] = [];
  #wake = new Set<() => void>();

  get apiRoot(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  push(...updates: Numbered[]): void {
    this.#updates.push(...updates);
    this.#updates.sort((a, b) => a.update_id - b.update_id);
    for (const wake of this.#wake) wake();
  }

  /** What the next calls of a method do, one each. */
  will(method: string, ...scripts: Script[]): void {
    this.#scripts.set(method, [...(this.#scripts.get(method) ?? []), ...scripts]);
  }

  of(method: string): Call[] {
    return this.calls.filter((call) => call.method === method);
  }

  /** Updates that nobody has acknowledged. */
  waiting(): number[] {
    return this.#updates.map((update) => update.update_id);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const [, bot = "", ...rest] = (request.url ?? "").split("/");
    if (bot === "file") return await this.#file(rest.slice(1).join("/"), response);
    const method = rest.join("/");
    const params = body === "" ? {} : JSON.parse(body);
    this.calls.push({ method, params, atMs: performance.now() });
    const script = this.#scripts.get(method)?.shift();
    if (script === "hold") return;
    if (script === "reset") return void request.socket.destroy();
    if (bot !== `bot${this.token}`) return send(response, { error: 401, description: "Unauthorized" });
    if (script !== undefined && "error" in script) return send(response, script);
    if (script !== undefined) return send(response, script.raw);
    send(response, method === "getUpdates" ? await this.#poll(params, response) : this.#answer(method, params));
  }

  #answer(method: string, params: Record<string, unknown>): unknown {
    if (method === "getMe") return { id: ME.id, is_bot: true, first_name: "Nano", username: ME.username };
    if (method === "getWebhookInfo") return { url: this.webhookUrl, ...this.webhookInfo };
    if (method === "deleteWebhook") this.webhookUrl = "";
    if (method === "setWebhook") this.webhookUrl = String(params.url);
    if (method === "getFile")
      return { file_id: params.file_id, file_unique_id: "u", file_path: `files/${params.file_id}` };
    return true;
  }

  async #poll(params: Record<string, unknown>, response: ServerResponse): Promise<Numbered[]> {
    const { offset, timeout = 0, limit = 100 } = params as { offset?: number; timeout?: number; limit?: number };
    if (offset !== undefined) this.#updates = this.#updates.filter((update) => update.update_id >= offset);
    if (this.#updates.length === 0 && timeout > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeout * 1000);
        const wake = () => {
          clearTimeout(timer);
          this.#wake.delete(wake);
          resolve();
        };
        this.#wake.add(wake);
        response.once("close", wake);
      });
    }
    return this.#updates.slice(0, limit);
  }

  async #file(name: string, response: ServerResponse): Promise<void> {
    const bytes = await this.files.get(name);
    if (bytes === "hold") return;
    if (bytes === "reset") return void response.socket?.destroy();
    response.writeHead(bytes === undefined ? 404 : 200).end(bytes);
  }
}

function send(response: ServerResponse, answer: unknown): void {
  const script = answer as { error?: number; description?: string; retryAfter?: number };
  const { error, description, retryAfter } = script ?? {};
  if (error === undefined) return void response.end(JSON.stringify({ ok: true, result: answer }));
  const parameters = retryAfter === undefined ? {} : { parameters: { retry_after: retryAfter } };
  response.writeHead(error).end(JSON.stringify({ ok: false, error_code: error, description, ...parameters }));
}

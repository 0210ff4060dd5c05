/**
 * The fake Bot API on node:http: token, parameters, scripted faults, limits, methods, files, journal. What a method does
 * stands in the tables. Invariant: faults and limits come before any effect, and every call is in the journal.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Update } from "grammy/types";
import { chatIdOf, type Method } from "./call.js";
import type { Fault, Faults } from "./faults.js";
import type { Journal, JournalEntry } from "./journal.js";
import type { Limits } from "./limits.js";
import { BOT_METHODS } from "./methods-bot.js";
import { MEDIA_METHODS } from "./methods-media.js";
import { isCounted, TEXT_METHODS } from "./methods-text.js";
import { Params, readParams } from "./params.js";
import { Refusal } from "./refusal.js";
import type { Updates } from "./updates.js";
import type { World } from "./world.js";

export interface ServerDeps {
  world: World;
  updates: Updates;
  journal: Journal;
  faults: Faults;
  limits: Limits;
  /** The token that is good at this moment. */
  token: () => string;
}

interface Answer {
  status: number;
  body: unknown;
}

const METHODS: Readonly<Record<string, Method>> = { ...BOT_METHODS, ...TEXT_METHODS, ...MEDIA_METHODS };

export class BotApiServer {
  constructor(private readonly deps: ServerDeps) {}

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bytesOf(request);
    const url = new URL(request.url ?? "/", "http://fake");
    const [, download, token, rest = ""] = /^\/(file\/)?bot([^/]*)\/(.*)$/.exec(url.pathname) ?? [];
    const method = download === undefined ? rest : "file";
    const read = paramsOf(url, request, body);
    const params = read instanceof Params ? read : new Params({});
    const shown = download === undefined ? params.all : { path: decodeURIComponent(rest) };
    const entry = this.#noted(method, shown, params);
    const gone = new AbortController();
    response.once("close", () => this.#closed(entry, response, gone));
    const strike = this.deps.faults.take(method, entry.chatId);
    if (strike !== null && (await beforeEffect(strike, response))) return;
    const run = { entry, params, response, signal: gone.signal };
    if (token !== this.deps.token()) return this.#refuse(run, unknownToken(token));
    if (!(read instanceof Params)) return this.#refuse(run, read);
    if (download !== undefined) return this.#download(run, decodeURIComponent(rest));
    const answer = await this.#answer(run, strike);
    if (strike !== null && afterEffect(strike, response)) return;
    this.#end(run, answer);
  }

  #noted(method: string, shown: JournalEntry["params"], params: Params): JournalEntry {
    const chat = params.all.chat_id;
    return this.deps.journal.add({
      method,
      params: shown,
      chatId: Number.isSafeInteger(Number(chat)) && chat !== undefined ? Number(chat) : null,
      files: [...params.uploads.values()].map(({ name }) => name),
      atMs: performance.now(),
      endMs: null,
      outcome: "open",
      code: null,
      description: null,
    });
  }

  #closed(entry: JournalEntry, response: ServerResponse, gone: AbortController): void {
    gone.abort();
    if (response.writableFinished) return;
    entry.outcome = "cut";
    entry.endMs = performance.now();
    this.deps.journal.changed();
  }

  async #answer({ entry, params, signal }: Run, strike: Fault | null): Promise<Answer> {
    try {
      if (strike?.kind === "refuse") throw refusalOf(strike);
      const method = Object.hasOwn(METHODS, entry.method) ? METHODS[entry.method] : undefined;
      if (method === undefined) {
        this.deps.journal.violated("strange", `there is no method "${entry.method}"`);
        throw new Refusal(404, "Not Found");
      }
      this.#watch(entry, params);
      const { world, updates } = this.deps;
      return { status: 200, body: { ok: true, result: await method({ params, world, updates, signal }) } };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { status: error.code, body: error.body };
    }
  }

  /** Limits, for calls into a chat that is there. */
  #watch({ method, chatId }: JournalEntry, params: Params): void {
    const place = this.deps.world.places.get(Number(chatIdOf(params)));
    if (chatId === null || place === undefined || !/^(?:send|edit|delete|setMessageReaction)/.test(method)) return;
    this.deps.limits.arrived(method, chatId, isCounted({ method }));
    const messages = method === "sendMediaGroup" ? Math.max(1, params.list("media")?.length ?? 1) : 1;
    if (isCounted({ method })) this.deps.limits.count({ method, chatId, isGroup: place.isGroup, messages });
  }

  #refuse(run: Run, { code: status, body }: Refusal): void {
    this.#end(run, { status, body });
  }

  #end({ entry, response }: Run, { status, body }: Answer): void {
    // Whoever asked has gone.
    if (entry.outcome === "cut") return;
    const text = JSON.stringify(body);
    entry.code = status;
    entry.description = (body as { description?: string }).description ?? null;
    entry.endMs = performance.now();
    entry.outcome = status === 200 ? "ok" : "refused";
    response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    response.end(text, () => {
      if (entry.method === "getUpdates" && status === 200 && !response.destroyed)
        this.deps.updates.given((body as { result: Update[] }).result);
    });
    this.deps.journal.changed();
  }

  #download(run: Run, path: string): void {
    const file = [...this.deps.world.files.values()].find((each) => each.path === path);
    if (file === undefined) {
      this.#refuse(run, new Refusal(404, "Not Found"));
      return;
    }
    run.entry.outcome = "ok";
    run.entry.code = 200;
    run.entry.endMs = performance.now();
    run.response.writeHead(200, { "content-type": "application/octet-stream", "content-length": file.bytes.length });
    run.response.end(file.bytes);
    this.deps.journal.changed();
  }
}

/** A request on its way through. */
interface Run {
  entry: JournalEntry;
  params: Params;
  response: ServerResponse;
  signal: AbortSignal;
}

/** The real one does not know paths that hold no token. */
function unknownToken(token: string | undefined): Refusal {
  return /^\d+:[\w-]{30,}$/.test(token ?? "") ? new Refusal(401, "Unauthorized") : new Refusal(404, "Not Found");
}

function paramsOf(url: URL, request: IncomingMessage, body: Buffer): Params | Refusal {
  try {
    return readParams(url.searchParams, request.headers["content-type"] ?? "", body);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function refusalOf({ code, description, retryAfter }: Extract<Fault, { kind: "refuse" }>): Refusal {
  return new Refusal(code, description, retryAfter === undefined ? {} : { retry_after: retryAfter });
}

/** Carries out what a fault does before anything has happened; true: that was all. */
async function beforeEffect(fault: Fault, response: ServerResponse): Promise<boolean> {
  if (fault.kind === "slow") await new Promise((resolve) => setTimeout(resolve, fault.ms));
  if (fault.kind === "slow" || fault.kind === "refuse" || fault.effect === "after") return false;
  return struck(fault, response);
}

function afterEffect(fault: Fault, response: ServerResponse): boolean {
  return fault.kind !== "slow" && fault.kind !== "refuse" && struck(fault, response);
}

function struck(fault: Exclude<Fault, { kind: "slow" | "refuse" }>, response: ServerResponse): boolean {
  switch (fault.kind) {
    case "hold":
      return true;
    case "reset":
      response.socket?.resetAndDestroy();
      return true;
    case "gateway":
      response.writeHead(fault.status, { "content-type": "text/html" });
      response.end("<html><body><h1>Bad Gateway</h1></body></html>");
      return true;
    default:
      return fault satisfies never;
  }
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

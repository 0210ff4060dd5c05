/**
 * The REST side of the fake Discord on node:http: authorization, limits, scripted faults, bodies, journal. What a call does
 * stands in the route tables. Invariant: limits and faults come before any effect, and every call is in the journal.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Buckets, Verdict } from "./buckets.js";
import type { Fault, Faults } from "./faults.js";
import type { Journal, JournalEntry } from "./journal.js";
import { Refusal } from "./refusal.js";
import { INTERACTION_ROUTES } from "./rest-interactions.js";
import { MESSAGE_ROUTES } from "./rest-messages.js";
import { PLACE_ROUTES } from "./rest-places.js";
import { type Call, majorOf, match, type Reply, type RestSettings, type Route, type UploadedFile } from "./routes.js";
import type { World } from "./world.js";

export interface RestDeps {
  world: World;
  buckets: Buckets;
  faults: Faults;
  journal: Journal;
  settings: RestSettings;
  /** The token that is good at this moment; null after it was reset. */
  token: () => string | null;
  origin: () => string;
}

/** A request that has found its route. */
interface Found {
  route: Route;
  params: Record<string, string>;
  entry: JournalEntry;
  url: URL;
}

type Body = Pick<Call, "body" | "raw" | "files">;

const ROUTES = [...MESSAGE_ROUTES, ...INTERACTION_ROUTES, ...PLACE_ROUTES];
const API = "/api/v10";

export class RestServer {
  constructor(private readonly deps: RestDeps) {}

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.deps.origin());
    if (url.pathname.startsWith("/attachments/")) return this.#file(url, request, response);
    const bytes = await bytesOf(request);
    const found = this.#find(request, url);
    if (found === null) return this.#unknown(request, url, response);
    try {
      const body = await parseBody(request, bytes);
      Object.assign(found.entry, { body: body.raw, files: body.files.map(({ filename }) => filename) });
      this.deps.journal.changed();
      this.#authorize(request, found.route);
      await this.#answer(found, body, response);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#end(response, found.entry, error.status, error.body, {});
    }
  }

  #find(request: IncomingMessage, url: URL): Found | null {
    if (!url.pathname.startsWith(`${API}/`)) return null;
    const path = url.pathname.slice(API.length);
    for (const route of ROUTES) {
      const params = match(route, request.method ?? "", path);
      if (params === null) continue;
      const call = `${route.method} ${route.path}`;
      return { route, params, url, entry: this.#note(call, url.pathname + url.search, majorOf(params)) };
    }
    return null;
  }

  #note(call: string, path: string, major: string): JournalEntry {
    const empty = { body: null, files: [], status: null, code: null };
    return this.deps.journal.add({ call, path, major, arrivedMs: performance.now(), ...empty });
  }

  #unknown(request: IncomingMessage, url: URL, response: ServerResponse): void {
    const what = `${request.method} ${url.pathname}`;
    this.deps.journal.strange.push(what);
    this.#end(response, this.#note(what, url.pathname, ""), 404, { message: "404: Not Found", code: 0 }, {});
  }

  #authorize(request: IncomingMessage, route: Route): void {
    const { journal, token } = this.deps;
    if (!/^DiscordBot \(\S+, \S+\)/.test(request.headers["user-agent"] ?? "")) {
      journal.strange.push(`${route.method} ${route.path}: no proper user agent`);
      throw new Refusal(40333);
    }
    if (route.isOpen !== true && request.headers.authorization !== `Bot ${token()}`) throw new Refusal(0);
  }

  async #answer(found: Found, body: Body, response: ServerResponse): Promise<void> {
    const { faults, buckets } = this.deps;
    const { route, entry } = found;
    const asked = { method: route.method, route: route.path, major: entry.major };
    await faults.pass(entry.call, entry.major, body.raw);
    const fault = faults.take(entry.call, entry.major, body.raw);
    if (fault?.kind === "limited") buckets.park(fault.isGlobal === true ? null : asked, fault.retryAfterMs);
    const verdict = buckets.take(asked);
    response.once("finish", verdict.told);
    if (verdict.isRefused) return this.#limited(response, entry, verdict);
    if (fault === null || fault.kind === "limited") return this.#run(found, body, response, verdict);
    this.#fail(fault, found, body, response);
  }

  #limited(response: ServerResponse, entry: JournalEntry, { headers, isGlobal }: Verdict): void {
    const retry_after = Number(headers["retry-after"]);
    this.#end(
      response,
      entry,
      429,
      { message: "You are being rate limited.", retry_after, global: isGlobal, code: 0 },
      headers,
    );
  }

  #run(found: Found, body: Body, response: ServerResponse, { headers }: Verdict): void {
    try {
      const { status, body: answer } = this.#effect(found, body);
      this.#end(response, found.entry, status, answer, headers);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#end(response, found.entry, error.status, error.body, headers);
    }
  }

  #effect({ route, params, url }: Found, body: Body): Reply {
    const { world, settings, origin } = this.deps;
    return route.run({ world, settings, origin: origin(), params, query: url.searchParams, ...body });
  }

  #fail(fault: Exclude<Fault, { kind: "limited" }>, found: Found, body: Body, response: ServerResponse): void {
    if (fault.kind === "refuse") throw new Refusal(fault.code);
    if (fault.hasEffect) this.#effect(found, body);
    if (fault.kind === "reset") response.socket?.resetAndDestroy();
    else this.#end(response, found.entry, fault.status, { message: `${fault.status}: Server Error`, code: 0 }, {});
  }

  #end(
    response: ServerResponse,
    entry: JournalEntry,
    status: number,
    body: unknown,
    headers: Record<string, string>,
  ): void {
    const code =
      typeof body === "object" && body !== null && "code" in body && status >= 400 ? Number(body.code) : null;
    Object.assign(entry, { status, code });
    // discord.js parses whatever calls itself JSON, an empty answer too.
    response.writeHead(status, { "content-type": body === undefined ? "text/html" : "application/json", ...headers });
    response.end(body === undefined ? undefined : JSON.stringify(body));
    this.deps.journal.changed();
  }

  /** A file, as the content network gives it: without authorization. */
  async #file(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = `${request.method} /attachments/:channel/:attachment/:name`;
    const [, , channel = "", id = ""] = url.pathname.split("/");
    const entry = this.#note(call, url.pathname, channel);
    await this.deps.faults.pass(call, channel, null);
    const fault = this.deps.faults.take(call, channel, null);
    const attachment = this.deps.world.attachments.get(id);
    if (fault?.kind === "reset") return void response.socket?.resetAndDestroy();
    if (fault !== null || attachment === undefined)
      return this.#end(response, entry, fault?.kind === "status" ? fault.status : 404, {}, {});
    entry.status = 200;
    const type = attachment.contentType ?? "application/octet-stream";
    response.writeHead(200, { "content-type": type, "content-length": attachment.bytes.length });
    response.end(attachment.bytes);
  }
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function parseBody(request: IncomingMessage, bytes: Buffer): Promise<Body> {
  const type = request.headers["content-type"] ?? "";
  if (bytes.length === 0) return { body: {}, raw: null, files: [] };
  if (type.startsWith("multipart/form-data")) return parseForm(type, bytes);
  if (!type.startsWith("application/json")) throw new Refusal(50035);
  return { ...ofJson(bytes.toString("utf8")), files: [] };
}

function ofJson(text: string): Omit<Body, "files"> {
  try {
    const raw: unknown = JSON.parse(text);
    const isObject = typeof raw === "object" && raw !== null && !Array.isArray(raw);
    return { raw, body: isObject ? (raw as Record<string, unknown>) : {} };
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refusal(50109);
    throw error;
  }
}

async function parseForm(type: string, bytes: Buffer): Promise<Body> {
  const form = await new Response(new Uint8Array(bytes), { headers: { "content-type": type } }).formData();
  const files: UploadedFile[] = [];
  for (const [field, value] of form) {
    if (typeof value === "string") continue;
    files.push({
      field,
      filename: value.name,
      contentType: value.type || null,
      bytes: Buffer.from(await value.arrayBuffer()),
    });
  }
  const json = form.get("payload_json");
  return { ...ofJson(typeof json === "string" ? json : "{}"), files };
}

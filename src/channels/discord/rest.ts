/**
 * Calls to Discord's REST API through the library, which keeps the buckets that the headers tell. It never waits and never
 * repeats: that is the caller's. Invariant: an error that leaves here holds neither an address nor what was sent, where
 * tokens of interactions hide.
 */
import type { REST, RouteLike } from "discord.js";
import type { Clock } from "../clock.js";

/** The library, loaded when the channel starts. */
export type Library = typeof import("discord.js");

/** Why a call failed. */
export type RestFailure =
  /** Too early; nothing was done. */
  | { kind: "limited"; waitMs: number }
  /** Refused for what it says. */
  | { kind: "refused"; status: number; code: number }
  /** Discord had an error, or the line broke: it may have been done. */
  | { kind: "unclear" }
  /** Nothing was sent. */
  | { kind: "unreachable" };

export class RestError extends Error {
  override readonly name = "RestError";
  constructor(
    readonly failure: RestFailure,
    message: string,
  ) {
    super(message);
  }
}

export interface RestCall {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  body?: unknown;
  files?: ReadonlyArray<{ name: string; data: Buffer; contentType: string }>;
  query?: Readonly<Record<string, string>>;
  /** For calls that carry their own token in the path; Discord does not count them for the bot. */
  isOpen?: true;
  /** May be lost: leaves the last of the bot's calls to others. */
  isLossy?: true;
  signal?: AbortSignal;
}

export interface Rest {
  /** The answer as JSON. Throws `RestError`. */
  call(call: RestCall): Promise<unknown>;
  close(): void;
}

export interface RestDeps {
  library: Library;
  apiRoot: string;
  token: string;
  clock: Pick<Clock, "nowMs">;
}

/** Calls of the bot within any second; Discord allows 50 and counts when they arrive. */
const MOST_CALLS = 45;
const MOST_LOSSY_CALLS = 30;
const WINDOW_MS = 1050;

/** Longest time for one call. */
const TIMEOUT_MS = 20_000;

export function openRest({ library, apiRoot, token, clock }: RestDeps): Rest {
  const gate = new Gate(clock);
  const rest = new library.REST({ ...restOptions(apiRoot), invalidRequestWarningInterval: 0 }).setToken(token);
  return {
    call: async (call) => {
      gate.pass(call);
      // The library leaves its listener on the signal it is given; the caller's may live long.
      const ended = new AbortController();
      const end = () => ended.abort();
      if (call.signal?.aborted) end();
      call.signal?.addEventListener("abort", end, { once: true });
      try {
        return await request(rest, { ...call, signal: ended.signal });
      } catch (error) {
        throw translated(library, error);
      } finally {
        call.signal?.removeEventListener("abort", end);
      }
    },
    close: () => {
      rest.clearHashSweeper();
      rest.clearHandlerSweeper();
    },
  };
}

/** The limit over all calls of the bot. The library counts in windows of its own, which need not be Discord's. */
class Gate {
  readonly #clock: Pick<Clock, "nowMs">;
  #recentMs: number[] = [];

  constructor(clock: Pick<Clock, "nowMs">) {
    this.#clock = clock;
  }

  /** Throws `RestError` for a call that would be one too many. */
  pass({ isOpen, isLossy }: RestCall): void {
    if (isOpen === true) return;
    const nowMs = this.#clock.nowMs();
    this.#recentMs = this.#recentMs.filter((at) => at > nowMs - WINDOW_MS);
    const most = isLossy === true ? MOST_LOSSY_CALLS : MOST_CALLS;
    const blocking = this.#recentMs.at(-most);
    if (blocking !== undefined) {
      const waitMs = Math.max(1, Math.ceil(blocking + WINDOW_MS - nowMs));
      throw new RestError({ kind: "limited", waitMs }, `the bot's calls of this second are used up for ${waitMs} ms`);
    }
    this.#recentMs.push(nowMs);
  }
}

/** How the library has to behave: nothing repeated, nothing waited for. */
export function restOptions(apiRoot: string) {
  const api = apiRoot.replace(/\/+$/, "");
  return { api, version: "10", retries: 0, timeout: TIMEOUT_MS, rejectOnRateLimit: () => true };
}

function request(rest: REST, { method, path, body, files, query, isOpen, signal }: RestCall): Promise<unknown> {
  const route: RouteLike = `/${path.replace(/^\//, "")}`;
  const options = {
    ...(body === undefined ? {} : { body }),
    ...(files === undefined || files.length === 0 ? {} : { files: [...files] }),
    ...(query === undefined ? {} : { query: new URLSearchParams(query) }),
    ...(isOpen === true ? { auth: false } : {}),
    ...(signal === undefined ? {} : { signal }),
  };
  switch (method) {
    case "GET":
      return rest.get(route, options);
    case "POST":
      return rest.post(route, options);
    case "PUT":
      return rest.put(route, options);
    case "PATCH":
      return rest.patch(route, options);
    case "DELETE":
      return rest.delete(route, options);
    default:
      return method satisfies never;
  }
}

/** Errors before a request has left. */
const NOT_SENT = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT/;

function translated(library: Library, error: unknown): RestError {
  if (error instanceof library.RateLimitError) {
    const waitMs = Math.max(1, Math.ceil(Math.max(error.retryAfter, error.sublimitTimeout)));
    return new RestError({ kind: "limited", waitMs }, `Discord asks to wait ${waitMs} ms`);
  }
  if (error instanceof library.DiscordAPIError) {
    const { status } = error;
    const code = Number(error.code) || 0;
    const words = error.message.replaceAll(/\s+/g, " ").slice(0, 300);
    return new RestError({ kind: "refused", status, code }, `Discord says: ${words} (${code || status})`);
  }
  if (error instanceof library.HTTPError)
    return new RestError({ kind: "unclear" }, `Discord had an error (${error.status})`);
  const codes = codesOf(error);
  if (NOT_SENT.test(codes)) return new RestError({ kind: "unreachable" }, `Discord is out of reach (${codes})`);
  return new RestError({ kind: "unclear" }, `the line to Discord broke (${codes || "no reason given"})`);
}

/** The codes of an error and its causes; never their words. */
function codesOf(error: unknown): string {
  const codes: string[] = [];
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    if ("code" in at && typeof at.code === "string") codes.push(at.code);
    else if (at.name === "AbortError") codes.push("aborted");
    if (at instanceof AggregateError) codes.push(...at.errors.map(codesOf));
  }
  return [...new Set(codes.filter((code) => /^\w+$/.test(code)))].join(" ");
}

/** The id in an answer. Throws `RestError`. */
export function idIn(answer: unknown): string {
  const id = typeof answer === "object" && answer !== null && "id" in answer ? answer.id : null;
  if (typeof id === "string") return id;
  throw new RestError({ kind: "unclear" }, "Discord did not say what became of a message");
}

/**
 * Any OpenAI-compatible endpoint, by chat completions and streaming, over the official client (loaded on first use).
 * It does not retry and chooses no model. Invariants: a stream ends with `finish` or throws; silence is bounded, also
 * before the first byte; an abort and a consumer that walks away both end the connection.
 */
import type OpenAI from "openai";
import type { ChatCompletionChunk, ChatCompletionCreateParamsStreaming } from "openai/resources/chat/completions";
import { linkAbort, raceAbort } from "./abort.js";
import { callIdsOf } from "./call-ids.js";
import { normaliseMessages } from "./normalise.js";
import { createAnswerReader } from "./openai-answer.js";
import { type Endpoint, providerFailure, translateError } from "./openai-errors.js";
import { wireRequest } from "./openai-wire.js";
import { type ModelRequest, type Provider, ProviderError, type ProviderEvent } from "./provider.js";

/** Where and how to ask. */
export interface OpenAiProviderDeps {
  /** The provider's name in the config, for messages. */
  name: string;
  /** Null: none is set; only a server on this machine is asked without one. */
  apiKey: string | null;
  baseUrl: string;
  /** Limit of one whole model call; 0 for none. */
  requestTimeoutMs: number;
  /** Longest silence between two chunks, and before the first; 0 for no limit. */
  streamIdleTimeoutMs: number;
}

/** The longest delay a timer takes: switches the client's own time limit off. */
const NEVER_MS = 2_147_483_647;
/** After the finish reason only numbers are missing; nobody waits long for them. */
const USAGE_WAIT_MS = 2_000;

function isLoopback(baseUrl: string): boolean {
  const host = new URL(baseUrl).hostname;
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127\./.test(host);
}

function assertUsable(deps: OpenAiProviderDeps, endpoint: Endpoint): void {
  const url = URL.canParse(deps.baseUrl) ? new URL(deps.baseUrl) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new ProviderError(
      "PROVIDER_INVALID",
      `providers.${deps.name}.baseUrl is not a plain http or https address. Write it without user name and password, for instance https://api.openai.com/v1.`,
    );
  }
  if (deps.apiKey === null && !isLoopback(deps.baseUrl)) throw providerFailure("PROVIDER_NO_KEY", endpoint);
}

async function createClient(deps: OpenAiProviderDeps): Promise<OpenAI> {
  const { default: Client } = await import("openai");
  return new Client({
    apiKey: deps.apiKey ?? "none",
    baseURL: deps.baseUrl,
    // Named, so that the client does not look for them in the environment.
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: "off",
    maxRetries: 0,
    timeout: NEVER_MS,
    defaultHeaders: { "X-Stainless-Timeout": null, ...(deps.apiKey === null ? { Authorization: null } : {}) },
  });
}

/**
 * Waiting under the two time limits; each limit aborts `signal`, and with it the connection. A wait that was aborted
 * throws, although the client ends an aborted stream as if it were complete.
 */
interface Watch {
  readonly signal: AbortSignal;
  within<T>(work: Promise<T>, limitMs: number): Promise<T>;
  close(): void;
}

/** A delay a timer takes; zero or less means no limit. */
function timerMs(limitMs: number): number {
  return limitMs > 0 ? Math.min(limitMs, NEVER_MS) : NEVER_MS;
}

function createWatch(outer: AbortSignal, requestTimeoutMs: number, onSilence: () => ProviderError): Watch {
  const link = linkAbort(outer);
  const stop = () => link.controller.abort(onSilence());
  const whole = setTimeout(stop, timerMs(requestTimeoutMs));
  return {
    signal: link.controller.signal,
    async within(work, limitMs) {
      const idle = setTimeout(stop, timerMs(limitMs));
      try {
        return await raceAbort(work, link.controller.signal);
      } finally {
        clearTimeout(idle);
      }
    },
    close() {
      clearTimeout(whole);
      link.close();
    },
  };
}

interface ChunkSource {
  client: OpenAI;
  body: ChatCompletionCreateParamsStreaming;
  endpoint: Endpoint;
  deps: OpenAiProviderDeps;
  isFinished(): boolean;
}

async function* readChunks(source: ChunkSource, outer: AbortSignal): AsyncGenerator<ChatCompletionChunk> {
  const { deps, endpoint } = source;
  const watch = createWatch(outer, deps.requestTimeoutMs, () => providerFailure("PROVIDER_TIMEOUT", endpoint));
  let hasBegun = false;
  try {
    const request = source.client.chat.completions.create(source.body, { signal: watch.signal });
    const chunks = (await watch.within(request, deps.streamIdleTimeoutMs))[Symbol.asyncIterator]();
    while (true) {
      const limitMs = source.isFinished()
        ? Math.min(USAGE_WAIT_MS, timerMs(deps.streamIdleTimeoutMs))
        : deps.streamIdleTimeoutMs;
      const next = await watch.within(chunks.next(), limitMs);
      if (next.done) return;
      hasBegun = true;
      yield next.value;
    }
  } catch (error) {
    if (outer.aborted) throw outer.reason;
    if (source.isFinished()) return;
    throw watch.signal.aborted ? watch.signal.reason : translateError(error, endpoint, hasBegun);
  } finally {
    watch.close();
  }
}

/** A provider over one endpoint. Nothing is loaded or connected before the first call. */
export function createOpenAiProvider(deps: OpenAiProviderDeps): Provider {
  let client: Promise<OpenAI> | undefined;
  return {
    name: deps.name,
    async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ProviderEvent> {
      signal.throwIfAborted();
      const endpoint: Endpoint = { ...deps, model: request.model };
      assertUsable(deps, endpoint);
      client ??= createClient(deps);
      const reader = createAnswerReader(callIdsOf(request.messages));
      const body = wireRequest({ ...request, messages: normaliseMessages(request.messages) }, deps.baseUrl);
      const source = { client: await client, body, endpoint, deps, isFinished: reader.isFinished };
      for await (const chunk of readChunks(source, signal)) yield* reader.take(chunk);
      yield* reader.end();
    },
  };
}

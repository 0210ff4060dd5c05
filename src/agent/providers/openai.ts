/**
 * Any OpenAI-compatible endpoint, by chat completions and streaming, over the official client (loaded on first use).
 * It does not retry and chooses no model; time limits and aborts are `guarded-stream.ts`. Invariant: a stream ends with
 * `finish` or throws.
 */
import type OpenAI from "openai";
import { callIdsOf } from "./call-ids.js";
import { assertUsable, type EndpointDeps } from "./endpoint.js";
import { NEVER_MS, readChunks } from "./guarded-stream.js";
import { normaliseMessages } from "./normalise.js";
import { createAnswerReader } from "./openai-answer.js";
import { wireRequest } from "./openai-wire.js";
import type { ModelRequest, Provider, ProviderEvent } from "./provider.js";
import type { Endpoint } from "./provider-errors.js";

async function createClient(deps: EndpointDeps): Promise<OpenAI> {
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

/** A provider over one endpoint. Nothing is loaded or connected before the first call. */
export function createOpenAiProvider(deps: EndpointDeps): Provider {
  let client: Promise<OpenAI> | undefined;
  return {
    name: deps.name,
    async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ProviderEvent> {
      signal.throwIfAborted();
      const endpoint: Endpoint = { ...deps, model: request.model };
      assertUsable(endpoint, "https://api.openai.com/v1");
      client ??= createClient(deps);
      const { chat } = await client;
      const reader = createAnswerReader(callIdsOf(request.messages));
      const body = wireRequest({ ...request, messages: normaliseMessages(request.messages) }, deps.baseUrl);
      const open = (within: AbortSignal) => chat.completions.create(body, { signal: within });
      const chunks = readChunks({ endpoint, deps, open, isFinished: reader.isFinished }, signal);
      for await (const chunk of chunks) yield* reader.take(chunk);
      yield* reader.end();
    },
  };
}

/**
 * Any OpenAI-compatible endpoint, by chat completions and streaming, over the official client (loaded on first use).
 * It does not retry and chooses no model; time limits and aborts are `guarded-stream.ts`. Invariant: a stream ends with
 * `finish` or throws.
 */
import type OpenAI from "openai";
import { callIdsOf } from "./call-ids.js";
import { assertUsable, type EndpointDeps } from "./endpoint.js";
import { readChunks } from "./guarded-stream.js";
import { normaliseMessages } from "./normalise.js";
import { createAnswerReader } from "./openai-answer.js";
import { createOpenAiClient } from "./openai-client.js";
import { wireRequest } from "./openai-wire.js";
import type { ModelRequest, Provider, ProviderEvent } from "./provider.js";
import type { Endpoint } from "./provider-errors.js";

/** A provider over one endpoint. Nothing is loaded or connected before the first call. */
export function createOpenAiProvider(deps: EndpointDeps): Provider {
  let client: Promise<OpenAI> | undefined;
  return {
    name: deps.name,
    async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ProviderEvent> {
      signal.throwIfAborted();
      const endpoint: Endpoint = { ...deps, model: request.model };
      assertUsable(endpoint, "https://api.openai.com/v1");
      client ??= createOpenAiClient(deps);
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

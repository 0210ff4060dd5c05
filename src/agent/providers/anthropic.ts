/**
 * Anthropic's models, by the messages wire and streaming, over the official client (loaded on first use). It does not
 * retry and chooses no model; time limits and aborts are `guarded-stream.ts`. The raw events are read, not the client's
 * own: it swallows pings, which are the only sign of life while a long tool call is written.
 * Invariant: a stream ends with `finish` or throws.
 */
import type Anthropic from "@anthropic-ai/sdk";
import type { RawMessageStreamEvent } from "@anthropic-ai/sdk/resources/messages";
import { AnthropicAnswer } from "./anthropic-answer.js";
import { wireRequest } from "./anthropic-wire.js";
import { callIdsOf } from "./call-ids.js";
import { assertUsable, type EndpointDeps } from "./endpoint.js";
import { NEVER_MS, readChunks } from "./guarded-stream.js";
import type { ModelRequest, Provider, ProviderError, ProviderEvent } from "./provider.js";
import { type Endpoint, translateError } from "./provider-errors.js";

/** The client, and how it reads a body as events. */
interface Client {
  messages: Anthropic["messages"];
  readEvents(response: Response): AsyncIterable<{ data: string }>;
}

/** What an error inside a stream would have had as its HTTP status. */
const STATUS_OF_TYPE: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

async function createClient(deps: EndpointDeps): Promise<Client> {
  const [{ default: Official }, { Stream }] = await Promise.all([
    import("@anthropic-ai/sdk"),
    import("@anthropic-ai/sdk/core/streaming"),
  ]);
  const { messages } = new Official({
    apiKey: deps.apiKey ?? "none",
    // The client adds /v1 itself; people write it all the same.
    baseURL: deps.baseUrl.replace(/\/+(?:v1\/*)?$/, ""),
    // Named, so that the client does not look for them in the environment.
    authToken: null,
    webhookKey: null,
    openTelemetry: false,
    logLevel: "off",
    maxRetries: 0,
    timeout: NEVER_MS,
    defaultHeaders: { "X-Stainless-Timeout": null, ...(deps.apiKey === null ? { Authorization: null } : {}) },
  });
  return { messages, readEvents: (response) => Stream.rawEvents(response) };
}

interface WireError {
  type: "error";
  error?: { type?: string; message?: string };
}

function streamFailure(wire: WireError, endpoint: Endpoint): ProviderError {
  const { type = "", message = "the stream reported an error" } = wire.error ?? {};
  const status = Object.hasOwn(STATUS_OF_TYPE, type) ? STATUS_OF_TYPE[type] : undefined;
  return translateError({ status, type, message, error: wire }, endpoint, true);
}

async function* parsed(
  events: AsyncIterable<{ data: string }>,
  endpoint: Endpoint,
): AsyncGenerator<RawMessageStreamEvent> {
  for await (const { data } of events) {
    if (data === "") continue;
    const event: RawMessageStreamEvent | WireError | null = JSON.parse(data);
    if (event?.type === "error") throw streamFailure(event, endpoint);
    if (event !== null) yield event;
  }
}

/** A provider over one endpoint. Nothing is loaded or connected before the first call. */
export function createAnthropicProvider(deps: EndpointDeps): Provider {
  let client: Promise<Client> | undefined;
  return {
    name: deps.name,
    async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ProviderEvent> {
      signal.throwIfAborted();
      const endpoint: Endpoint = { ...deps, model: request.model };
      assertUsable(endpoint, "https://api.anthropic.com");
      client ??= createClient(deps);
      const { messages, readEvents } = await client;
      const answer = new AnthropicAnswer(callIdsOf(request.messages));
      const body = wireRequest(request);
      const open = async (within: AbortSignal) => {
        const response = await messages.create(body, { signal: within }).asResponse();
        return parsed(readEvents(response), endpoint);
      };
      const events = readChunks({ endpoint, deps, open, isFinished: () => answer.isFinished }, signal);
      for await (const event of events) yield* answer.take(event);
      yield* answer.end();
    },
  };
}

/**
 * Anthropic's wire against peers that misbehave: a plain HTTP server that writes what each test says.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { createAnthropicProvider } from "../../../src/agent/providers/anthropic.js";
import type { ProviderEvent } from "../../../src/agent/providers/provider.js";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(handler: Handler): Promise<string> {
  const server = createServer(handler).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Event = { type: string } & Record<string, unknown>;

function write(response: ServerResponse, ...events: Event[]): void {
  if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

const started = (usage: object = { input_tokens: 3, output_tokens: 1 }): Event => ({
  type: "message_start",
  message: { id: "m", role: "assistant", content: [], usage },
});
const block = (index: number, content_block: object): Event => ({ type: "content_block_start", index, content_block });
const delta = (index: number, fields: object): Event => ({ type: "content_block_delta", index, delta: fields });
const said = (piece: string): Event => delta(0, { type: "text_delta", text: piece });
const stopped = (stop_reason: string | null, usage: object = { output_tokens: 9 }): Event => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence: null },
  usage,
});
const end: Event = { type: "message_stop" };
const beginning = [started(), block(0, { type: "text", text: "" })];
const halfCall = [
  block(1, { type: "tool_use", id: "a", name: "f", input: {} }),
  delta(1, { type: "input_json_delta", partial_json: '{"pa' }),
];

interface Limits {
  idleMs?: number;
  wholeMs?: number;
  signal?: AbortSignal;
}

function stream(baseUrl: string, limits: Limits = {}): AsyncIterable<ProviderEvent> {
  const provider = createAnthropicProvider({
    name: "peer",
    apiKey: "secret-key-1",
    baseUrl,
    requestTimeoutMs: limits.wholeMs ?? 10_000,
    streamIdleTimeoutMs: limits.idleMs ?? 10_000,
  });
  const request = { model: "m", tools: [], toolChoice: "auto" as const, maxOutputTokens: 5 };
  const messages = [{ role: "user" as const, content: "hi" }];
  return provider.stream({ ...request, messages }, limits.signal ?? new AbortController().signal);
}

async function collect(events: AsyncIterable<ProviderEvent>) {
  const seen: ProviderEvent[] = [];
  try {
    for await (const event of events) seen.push(event);
    return { seen, error: null };
  } catch (error) {
    return { seen, error };
  }
}

describe("streams that break", () => {
  test.each([
    ["closed", (response: ServerResponse) => response.end()],
    ["closed after message_stop alone", (response: ServerResponse) => response.end(`data: ${JSON.stringify(end)}\n\n`)],
    ["reset", (response: ServerResponse) => setImmediate(() => response.socket?.resetAndDestroy())],
    ["damaged", (response: ServerResponse) => response.end("event: ping\ndata: {broken\n\n")],
    ["cut within an event", (response: ServerResponse) => response.end('event: message_delta\ndata: {"type":"mess')],
  ])("%s without a stop reason: incomplete, and no call is given out", async (_name, finish) => {
    const url = await serve((_request, response) => {
      write(response, ...beginning, said("Hel"), ...halfCall);
      finish(response);
    });
    const { seen, error } = await collect(stream(url));
    expect(seen).toEqual([{ type: "text", text: "Hel" }]);
    expect(error).toMatchObject({ code: "PROVIDER_INCOMPLETE", isTransient: true });
  });

  test.each([
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "stop"],
    ["refusal", "content_filter"],
  ])("a call in an answer that ended with %s is not given out", async (wire, reason) => {
    const url = await serve((_request, response) => {
      write(response, ...beginning, said("x"), ...halfCall, stopped(wire), end);
      response.end();
    });
    const { seen, error } = await collect(stream(url));
    expect(error).toBeNull();
    expect(seen.slice(1)).toEqual([
      { type: "finish", reason, usage: { inputTokens: 3, outputTokens: 9, estimated: false } },
    ]);
  });

  test.each([
    ["overloaded_error", "PROVIDER_SERVER", true],
    ["rate_limit_error", "PROVIDER_RATE_LIMITED", true],
    ["authentication_error", "PROVIDER_AUTH", false],
    ["invalid_request_error", "PROVIDER_INVALID", false],
    ["billing_error", "PROVIDER_QUOTA", false],
    ["never_heard_of", "PROVIDER_SERVER", true],
    ["toString", "PROVIDER_SERVER", true],
  ])("an error inside the stream is told by its kind: %s", async (type, code, isTransient) => {
    const url = await serve((_request, response) => {
      write(response, ...beginning, { type: "error", error: { type, message: "secret-key-1 said no" } });
      response.end();
    });
    const { error } = await collect(stream(url));
    expect(error).toMatchObject({ code, isTransient, options: { detail: "[redacted] said no" } });
    expect(String(error)).not.toContain("said no");
  });

  test("a stream that breaks after its stop reason is complete", async () => {
    const url = await serve((_request, response) => {
      write(response, ...beginning, said("Hi"), stopped("end_turn"));
      setImmediate(() => response.socket?.resetAndDestroy());
    });
    const { seen, error } = await collect(stream(url));
    expect(error).toBeNull();
    expect(seen.at(-1)).toMatchObject({ type: "finish", reason: "stop" });
  });

  test("a stream that stays open after its stop reason does not hold the answer", async () => {
    const url = await serve((_request, response) =>
      write(response, ...beginning, said("Hi"), stopped("end_turn"), end),
    );
    const { seen } = await collect(stream(url, { idleMs: 100 }));
    expect(seen.at(-1)).toMatchObject({ type: "finish", reason: "stop" });
  });

  test("a body that is no stream of events is incomplete", async () => {
    const url = await serve((_request, response) => response.end("<html>Welcome to the hotel's network</html>"));
    expect((await collect(stream(url))).error).toMatchObject({ code: "PROVIDER_INCOMPLETE" });
  });
});

describe("servers of other makers", () => {
  test("blocks that begin with their content, arguments that are not streamed, events and fields nobody knows", async () => {
    const url = await serve((_request, response) => {
      write(
        response,
        { type: "brand_new" },
        started({}),
        block(0, { type: "thinking", thinking: "hm" }),
        block(1, { type: "text", text: "Hel" }),
        delta(1, { type: "text_delta", text: "lo" }),
        delta(1, { type: "brand_new_delta" }),
        block(2, { type: "tool_use", name: "f", input: { a: 1 } }),
        block(3, { type: "tool_use", id: "", name: "g" }),
        block(4, { type: "brand_new" }),
        stopped("tool_use", {}),
        end,
      );
      response.end();
    });
    expect((await collect(stream(url))).seen).toEqual([
      { type: "reasoning", text: "hm" },
      { type: "text", text: "Hel" },
      { type: "text", text: "lo" },
      { type: "tool_call", call: { id: "call-1", name: "f", arguments: '{"a":1}' } },
      { type: "tool_call", call: { id: "call-2", name: "g", arguments: "{}" } },
      { type: "finish", reason: "tool_calls", usage: null },
    ]);
  });

  test("usage: what was written to and read from the cache is input, and what was read is told apart", async () => {
    const url = await serve((_request, response) => {
      const usage = {
        input_tokens: 5,
        cache_creation_input_tokens: 20,
        cache_read_input_tokens: 300,
        output_tokens: 1,
      };
      write(
        response,
        started(usage),
        block(0, { type: "text", text: "ok" }),
        stopped("end_turn", { output_tokens: 7 }),
      );
      response.end();
    });
    expect((await collect(stream(url))).seen.at(-1)).toMatchObject({
      usage: { inputTokens: 325, outputTokens: 7, cachedTokens: 300, estimated: false },
    });
  });
});

describe("silence", () => {
  test("before the first byte: a timeout, and the connection is ended", async () => {
    let closed: Promise<unknown> | undefined;
    const url = await serve((request) => {
      closed = once(request.socket, "close");
    });
    expect((await collect(stream(url, { idleMs: 200 }))).error).toMatchObject({ code: "PROVIDER_TIMEOUT" });
    await vi.waitFor(() => expect(closed).toBeDefined());
    await closed;
  });

  test("in the middle: a timeout", async () => {
    const url = await serve((_request, response) => write(response, ...beginning, said("Hel")));
    const { seen, error } = await collect(stream(url, { idleMs: 80 }));
    expect(seen).toHaveLength(1);
    expect(error).toMatchObject({ code: "PROVIDER_TIMEOUT" });
  });

  test("pings are signs of life, up to the limit of the whole request", async () => {
    let pings = 0;
    const url = await serve((request, response) => {
      write(response, ...beginning);
      const beat = setInterval(() => {
        write(response, { type: "ping" });
        pings += 1;
      }, 20);
      request.socket.on("close", () => clearInterval(beat));
    });
    const begunMs = performance.now();
    const { error } = await collect(stream(url, { idleMs: 800, wholeMs: 2000 }));
    expect(error).toMatchObject({ code: "PROVIDER_TIMEOUT" });
    expect(performance.now() - begunMs).toBeGreaterThan(1900);
    expect(pings).toBeGreaterThan(3);
  });
});

describe("ends from our side", () => {
  test.each(["before the answer", "in the middle"])(
    "an abort %s throws its reason and ends the socket",
    async (when) => {
      const reason = new Error("stopped");
      const controller = new AbortController();
      let closed: Promise<unknown> = Promise.resolve();
      const url = await serve((request, response) => {
        closed = once(request.socket, "close");
        if (when === "before the answer") controller.abort(reason);
        else write(response, ...beginning, said("a"));
      });
      const running = collect(
        (async function* () {
          for await (const event of stream(url, { signal: controller.signal })) {
            yield event;
            controller.abort(reason);
          }
        })(),
      );
      expect((await running).error).toBe(reason);
      await closed;
    },
  );

  test("a reader that walks away ends the socket", async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const url = await serve((request, response) => {
      closed = once(request.socket, "close");
      write(response, ...beginning, said("a"));
    });
    for await (const _event of stream(url)) break;
    await closed;
  });

  test("an answer read to its end leaves the connection for later requests", async () => {
    const ports: Array<number | undefined> = [];
    const url = await serve((request, response) => {
      ports.push(request.socket.remotePort);
      write(response, ...beginning, said("a"), stopped("end_turn"), end);
      response.end();
    });
    // The client needs a moment to take the connection back.
    await vi.waitFor(async () => {
      await collect(stream(url));
      expect(new Set(ports).size).toBeLessThan(ports.length);
    });
  });
});

test("one request: the stream is asked for, the key goes in a header, and nothing is repeated", async () => {
  const bodies: Array<Promise<string>> = [];
  const keys: unknown[] = [];
  const url = await serve((request, response) => {
    bodies.push(text(request));
    keys.push(request.headers.authorization);
    response.writeHead(503, { "x-should-retry": "true" }).end();
  });
  expect((await collect(stream(url))).error).toMatchObject({ code: "PROVIDER_SERVER", isTransient: true });
  expect(bodies).toHaveLength(1);
  expect(keys).toEqual(["Bearer secret-key-1"]);
  expect(JSON.parse((await bodies[0]) ?? "")).toMatchObject({ model: "m", max_tokens: 5, stream: true });
});

test("a host that refuses is named, with its port and without secrets", async () => {
  const url = await serve(() => undefined);
  const port = new URL(url).port;
  await new Promise((resolve) => servers.pop()?.close(resolve));
  const { error } = await collect(stream(url));
  expect(error).toMatchObject({ code: "PROVIDER_UNREACHABLE", isTransient: true });
  expect(String(error)).toContain(`127.0.0.1:${port}`);
  expect(String(error)).not.toContain("secret-key-1");
});

/**
 * The OpenAI-compatible provider against peers that misbehave: a plain HTTP server that writes what each test says.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import { createOpenAiProvider } from "../../../src/agent/providers/openai.js";
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
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

function begin(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
}

function send(response: ServerResponse, delta: object, finish: string | null = null): void {
  const chunk = { id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] };
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}

interface Limits {
  idleMs?: number;
  wholeMs?: number;
  signal?: AbortSignal;
}

function stream(baseUrl: string, limits: Limits = {}): AsyncIterable<ProviderEvent> {
  const provider = createOpenAiProvider({
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
    ["closed after [DONE]", (response: ServerResponse) => response.end("data: [DONE]\n\n")],
    ["reset", (response: ServerResponse) => setImmediate(() => response.socket?.resetAndDestroy())],
    ["damaged", (response: ServerResponse) => response.end("data: {broken\n\n")],
  ])("%s without a finish reason: incomplete, and no call is given out", async (_name, finish) => {
    const url = await serve((_request, response) => {
      begin(response);
      send(response, { content: "Hel" });
      send(response, { tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: '{"pa' } }] });
      finish(response);
    });
    const { seen, error } = await collect(stream(url));
    expect(seen).toEqual([{ type: "text", text: "Hel" }]);
    expect(error).toMatchObject({ code: "PROVIDER_INCOMPLETE", isTransient: true });
  });

  test("a call in an answer that was cut by its length is not given out", async () => {
    const url = await serve((_request, response) => {
      begin(response);
      send(response, { tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: '{"pa' } }] });
      send(response, {}, "length");
      response.end("data: [DONE]\n\n");
    });
    const { seen, error } = await collect(stream(url));
    expect(error).toBeNull();
    expect(seen).toEqual([{ type: "finish", reason: "length", usage: null }]);
  });

  test("an error inside the stream is told by its kind", async () => {
    const url = await serve((_request, response) => {
      begin(response);
      response.end(`data: ${JSON.stringify({ error: { code: 429, message: "slow down" } })}\n\n`);
    });
    expect((await collect(stream(url))).error).toMatchObject({ code: "PROVIDER_RATE_LIMITED" });
  });

  test("a stream that breaks after its finish reason is complete", async () => {
    const url = await serve((_request, response) => {
      begin(response);
      send(response, { content: "Hi" }, "stop");
      setImmediate(() => response.socket?.resetAndDestroy());
    });
    const { seen, error } = await collect(stream(url));
    expect(error).toBeNull();
    expect(seen.at(-1)).toEqual({ type: "finish", reason: "stop", usage: null });
  });

  test("a stream that stays open after its finish reason does not hold the answer", async () => {
    const url = await serve((_request, response) => {
      begin(response);
      send(response, { content: "Hi" }, "stop");
    });
    const { seen } = await collect(stream(url, { idleMs: 100 }));
    expect(seen.at(-1)).toMatchObject({ type: "finish", reason: "stop" });
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
    const url = await serve((_request, response) => {
      begin(response);
      send(response, { content: "Hel" });
    });
    const { seen, error } = await collect(stream(url, { idleMs: 80 }));
    expect(seen).toHaveLength(1);
    expect(error).toMatchObject({ code: "PROVIDER_TIMEOUT" });
  });

  test("an endless slow stream ends at the limit of the whole request", async () => {
    const url = await serve((request, response) => {
      begin(response);
      const drip = setInterval(() => send(response, { content: "." }), 20);
      request.socket.on("close", () => clearInterval(drip));
    });
    const { seen, error } = await collect(stream(url, { idleMs: 5000, wholeMs: 300 }));
    expect(seen.length).toBeGreaterThan(1);
    expect(error).toMatchObject({ code: "PROVIDER_TIMEOUT" });
  });

  test("a slow reader is not the provider's silence", async () => {
    const url = await serve((_request, response) => {
      begin(response);
      send(response, { content: "a" });
      send(response, { content: "b" }, "stop");
      response.end("data: [DONE]\n\n");
    });
    const events = stream(url, { idleMs: 150 })[Symbol.asyncIterator]();
    await events.next();
    // Longer than the limit, in which nothing is asked for.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await events.next()).value).toEqual({ type: "text", text: "b" });
    expect((await events.next()).value).toMatchObject({ type: "finish" });
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
        if (when === "before the answer") {
          controller.abort(reason);
          return;
        }
        begin(response);
        send(response, { content: "a" });
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
      begin(response);
      send(response, { content: "a" });
    });
    for await (const _event of stream(url)) break;
    await closed;
  });

  test("an abort that came before asks nothing", async () => {
    let requests = 0;
    const url = await serve(() => {
      requests += 1;
    });
    const { error } = await collect(stream(url, { signal: AbortSignal.abort(new Error("no")) }));
    expect(error).toMatchObject({ message: "no" });
    expect(requests).toBe(0);
  });
});

describe("hosts and headers", () => {
  test("a host that refuses is named, with its port and without secrets", async () => {
    const url = await serve(() => undefined);
    const port = new URL(url).port;
    await new Promise((resolve) => servers.pop()?.close(resolve));
    const { error } = await collect(stream(url));
    expect(error).toMatchObject({ code: "PROVIDER_UNREACHABLE", isTransient: true });
    expect(String(error)).toContain(`127.0.0.1:${port}`);
    expect(String(error)).not.toContain("secret-key-1");
  });

  test("a name that does not exist is named", async () => {
    const { error } = await collect(stream("http://no-such-host.invalid/v1"));
    expect(error).toMatchObject({ code: "PROVIDER_UNREACHABLE" });
    expect(String(error)).toContain("no-such-host.invalid:80");
  });

  test("an address with credentials is refused without repeating them", async () => {
    const { error } = await collect(stream("http://user:hunter22@127.0.0.1:1/v1"));
    expect(error).toMatchObject({ code: "PROVIDER_INVALID" });
    expect(String(error)).not.toContain("hunter22");
  });

  test.each([
    [{ "retry-after-ms": "1500", "retry-after": "9" }, 1500, 1500],
    [{ "retry-after": "0.5" }, 500, 500],
    [{ "retry-after": new Date(Date.now() + 30_000).toUTCString() }, 27_000, 30_000],
    [{ "retry-after": "Mon, 01 Jan 2001 00:00:00 GMT" }, 0, 0],
  ])("%o", async (headers, atLeastMs, atMostMs) => {
    const url = await serve((_request, response) => response.writeHead(429, headers).end());
    const { error } = await collect(stream(url));
    const { retryAfterMs } = (error as { options: { retryAfterMs: number } }).options;
    expect(retryAfterMs).toBeGreaterThanOrEqual(atLeastMs);
    expect(retryAfterMs).toBeLessThanOrEqual(atMostMs);
  });

  test("the provider's own word on retrying wins", async () => {
    const url = await serve((_request, response) => response.writeHead(503, { "x-should-retry": "false" }).end());
    expect((await collect(stream(url))).error).toMatchObject({ code: "PROVIDER_SERVER", isTransient: false });
  });
});

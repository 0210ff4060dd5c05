/**
 * Anthropic's wire against an independent model peer: streams, reasoning, calls, usage, refusals.
 */
import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createAnthropicProvider } from "../../../src/agent/providers/anthropic.js";
import type { ModelRequest, ProviderEvent } from "../../../src/agent/providers/provider.js";

const mock = new LLMock({ port: 0, strict: true });
beforeAll(async () => {
  await mock.start();
});
afterAll(() => mock.stop());
beforeEach(() => {
  mock.clearFixtures();
  mock.clearRequests();
});

function ask(content: string, extra: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: "claude-test",
    messages: [{ role: "user", content }],
    tools: [],
    toolChoice: "auto",
    maxOutputTokens: 64,
    ...extra,
  };
}

async function collect(request: ModelRequest, deps: { apiKey?: string | null; path?: string } = {}) {
  const provider = createAnthropicProvider({
    name: "peer",
    apiKey: deps.apiKey === undefined ? "sk-ant-test-123456" : deps.apiKey,
    baseUrl: `${mock.url}${deps.path ?? ""}`,
    requestTimeoutMs: 5000,
    streamIdleTimeoutMs: 5000,
  });
  const events: ProviderEvent[] = [];
  for await (const event of provider.stream(request, new AbortController().signal)) events.push(event);
  return events;
}

function textOf(events: readonly ProviderEvent[]): string {
  return events.map((event) => (event.type === "text" ? event.text : "")).join("");
}

const listDir = { name: "list_dir", description: "list", parameters: { type: "object", properties: {} } };

describe("answers", () => {
  test("text is streamed in whole characters and ends with reason and usage", async () => {
    const content = "Grüße, 世界 and 😀😀😀 to all of you";
    mock.onMessage("hello", { content, usage: { input_tokens: 11, output_tokens: 7 } }, { chunkSize: 3 });
    const events = await collect(ask("hello"));
    expect(textOf(events)).toBe(content);
    const texts = events.flatMap((event) => (event.type === "text" ? event.text : []));
    expect(texts.length).toBeGreaterThan(3);
    expect(texts.every((text) => text.isWellFormed())).toBe(true);
    expect(events.at(-1)).toEqual({
      type: "finish",
      reason: "stop",
      usage: { inputTokens: 11, outputTokens: 7, estimated: false },
    });
  });

  test("thinking comes as reasoning, apart from the text, without its signature", async () => {
    mock.onMessage("hello", { content: "yes", reasoning: "let me think" });
    const events = await collect(ask("hello"));
    expect(events.map((event) => (event.type === "reasoning" ? event.text : "")).join("")).toBe("let me think");
    expect(textOf(events)).toBe("yes");
    expect(JSON.stringify(events)).not.toContain("signature");
  });

  test("calls come whole, after the text, with their ids; counts of zero are none", async () => {
    const path = '{"path":"a longer path than one chunk"}';
    mock.onMessage(
      "files",
      {
        content: "Looking.",
        toolCalls: [
          { name: "list_dir", arguments: path, id: "toolu_a" },
          { name: "list_dir", arguments: "{}", id: "toolu_b" },
        ],
      },
      { chunkSize: 4 },
    );
    const events = await collect(ask("files", { tools: [listDir] }));
    expect(textOf(events)).toBe("Looking.");
    expect(events.slice(-3)).toEqual([
      { type: "tool_call", call: { id: "toolu_a", name: "list_dir", arguments: path } },
      { type: "tool_call", call: { id: "toolu_b", name: "list_dir", arguments: "{}" } },
      { type: "finish", reason: "tool_calls", usage: null },
    ]);
  });

  test("a conversation with results goes on, and an id it has already is not given out again", async () => {
    const call = { id: "toolu_0", name: "list_dir", arguments: "{}" };
    mock.on({ hasToolResult: true }, { toolCalls: [{ name: "list_dir", arguments: '{"n":2}', id: "toolu_0" }] });
    const messages: ModelRequest["messages"] = [
      { role: "system", content: "be brief" },
      { role: "user", content: "files" },
      { role: "assistant", content: "", toolCalls: [call] },
      { role: "tool", toolCallId: "toolu_0", name: "list_dir", content: "a" },
    ];
    const events = await collect(ask("", { messages, tools: [listDir] }));
    expect(events[0]).toMatchObject({ type: "tool_call", call: { id: "toolu_0-2", arguments: '{"n":2}' } });
  });

  test.each([
    ["length", "length"],
    ["refusal", "content_filter"],
    ["stop_sequence", "stop"],
    ["pause_turn", "stop"],
  ])("the stop reason for %s is %s", async (finishReason, reason) => {
    mock.on({}, { content: "half", finishReason });
    expect((await collect(ask("hello"))).at(-1)).toMatchObject({ type: "finish", reason });
  });

  test("the key goes in a header only where there is one, and an address with /v1 is the same address", async () => {
    mock.on({}, { content: "ok" });
    await collect(ask("hello"), { path: "/v1" });
    expect(mock.getLastRequest()?.headers).toHaveProperty("authorization");
    await collect(ask("hello"), { apiKey: null, path: "/v1/" });
    expect(mock.getLastRequest()?.headers).not.toHaveProperty("authorization");
    expect(mock.getLastRequest()?.headers).not.toHaveProperty("x-api-key");
    expect(mock.getRequests()).toHaveLength(2);
  });
});

describe("refusals", () => {
  test.each([
    [401, { type: "authentication_error", message: "invalid x-api-key" }, "PROVIDER_AUTH", false],
    [403, { type: "permission_error", message: "not for you" }, "PROVIDER_AUTH", false],
    [404, { type: "not_found_error", message: "model: claude-test" }, "PROVIDER_MODEL_UNKNOWN", false],
    [400, { type: "invalid_request_error", message: "prompt is too long" }, "PROVIDER_INVALID", false],
    [400, { type: "invalid_request_error", message: "Your credit balance is too low" }, "PROVIDER_QUOTA", false],
    [
      400,
      { type: "invalid_request_error", message: "You have reached your API usage limits" },
      "PROVIDER_QUOTA",
      false,
    ],
    [413, { type: "request_too_large", message: "32 MB" }, "PROVIDER_INVALID", false],
    [429, { type: "rate_limit_error", message: "slow down" }, "PROVIDER_RATE_LIMITED", true],
    [500, { type: "api_error", message: "oops" }, "PROVIDER_SERVER", true],
    [529, { type: "overloaded_error", message: "Overloaded" }, "PROVIDER_SERVER", true],
  ])("%i %o is %s", async (status, body, code, isTransient) => {
    mock.on({}, { error: body, status });
    const error: unknown = await collect(ask("hello")).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code, isTransient, options: { status } });
    expect(mock.getRequests()).toHaveLength(1);
    const { message, options } = error as { message: string; options: { detail: string } };
    expect(message).not.toContain(body.message);
    expect(message).toContain("peer");
    expect(options.detail).toContain(body.message);
  });

  test("retry-after is kept in milliseconds", async () => {
    mock.on({}, { error: { message: "slow down" }, status: 429, retryAfter: 7 });
    await expect(collect(ask("hello"))).rejects.toMatchObject({ options: { retryAfterMs: 7000 } });
  });

  test("without a key nothing is asked, whatever the environment holds", async () => {
    const provider = createAnthropicProvider({
      name: "far",
      apiKey: null,
      baseUrl: "https://models.invalid",
      requestTimeoutMs: 5000,
      streamIdleTimeoutMs: 5000,
    });
    const first = provider.stream(ask("hello"), new AbortController().signal)[Symbol.asyncIterator]().next();
    await expect(first).rejects.toMatchObject({
      code: "PROVIDER_NO_KEY",
      message: expect.stringContaining("providers.far.apiKey"),
    });
  });
});

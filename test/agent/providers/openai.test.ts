/**
 * The OpenAI-compatible provider against an independent model peer: streams, calls, usage, refusals.
 */
import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createOpenAiProvider } from "../../../src/agent/providers/openai.js";
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
    model: "m",
    messages: [{ role: "user", content }],
    tools: [],
    toolChoice: "auto",
    maxOutputTokens: 64,
    ...extra,
  };
}

async function collect(request: ModelRequest, apiKey: string | null = "sk-test-key-123456"): Promise<ProviderEvent[]> {
  const provider = createOpenAiProvider({
    name: "peer",
    apiKey,
    baseUrl: `${mock.url}/v1`,
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
  test("text is streamed in pieces and ends with reason and usage", async () => {
    const content = "Grüße, 世界 and 😀 to all of you";
    mock.onMessage("hello", { content, usage: { prompt_tokens: 11, completion_tokens: 7 } }, { chunkSize: 3 });
    const events = await collect(ask("hello"));
    expect(textOf(events)).toBe(content);
    expect(events.filter((event) => event.type === "text").length).toBeGreaterThan(3);
    expect(events.at(-1)).toEqual({
      type: "finish",
      reason: "stop",
      usage: { inputTokens: 11, outputTokens: 7, estimated: false },
    });
  });

  test("reasoning comes apart from the text", async () => {
    mock.onMessage("hello", { content: "yes", reasoning: "let me think" });
    const events = await collect(ask("hello"));
    expect(events.map((event) => (event.type === "reasoning" ? event.text : "")).join("")).toBe("let me think");
    expect(textOf(events)).toBe("yes");
  });

  test("calls come whole, after the text, with their ids", async () => {
    mock.onMessage(
      "files",
      {
        toolCalls: [
          { name: "list_dir", arguments: '{"path":"a longer path than one chunk"}', id: "call_a" },
          { name: "list_dir", arguments: "{}", id: "call_b" },
        ],
      },
      { chunkSize: 4 },
    );
    const events = await collect(ask("files", { tools: [listDir] }));
    expect(events).toEqual([
      {
        type: "tool_call",
        call: { id: "call_a", name: "list_dir", arguments: '{"path":"a longer path than one chunk"}' },
      },
      { type: "tool_call", call: { id: "call_b", name: "list_dir", arguments: "{}" } },
      { type: "finish", reason: "tool_calls", usage: expect.anything() },
    ]);
  });

  test("an id the conversation has already is not given out again", async () => {
    const call = { id: "call_0", name: "list_dir", arguments: "{}" };
    mock.on({ hasToolResult: true }, { toolCalls: [{ name: "list_dir", arguments: '{"n":2}', id: "call_0" }] });
    const messages: ModelRequest["messages"] = [
      { role: "user", content: "files" },
      { role: "assistant", content: "", toolCalls: [call] },
      { role: "tool", toolCallId: "call_0", name: "list_dir", content: "a" },
    ];
    const events = await collect(ask("", { messages, tools: [listDir] }));
    expect(events[0]).toMatchObject({ type: "tool_call", call: { id: "call_0-2" } });
  });

  test("what is sent: legal rows, tools with a choice, limits, usage asked for", async () => {
    mock.on({}, { content: "ok" });
    const messages: ModelRequest["messages"] = [
      { role: "system", content: "be brief" },
      { role: "user", content: "one" },
      { role: "assistant", content: "", toolCalls: [{ id: "x", name: "list_dir", arguments: "{}" }] },
      { role: "user", content: "two \ud800" },
    ];
    await collect(ask("", { messages, tools: [listDir], toolChoice: "none" }));
    expect(mock.getLastRequest()?.body).toMatchObject({
      model: "m",
      max_tokens: 64,
      stream: true,
      stream_options: { include_usage: true },
      tool_choice: "none",
      tools: [{ type: "function", function: { name: "list_dir" } }],
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: "one" },
        { role: "assistant", content: null, tool_calls: [{ id: "x" }] },
        { role: "tool", tool_call_id: "x", content: "(no result is known for this call)" },
        { role: "user", content: "two \ufffd" },
      ],
    });
  });

  test("without tools no choice is sent; the key goes in the header only", async () => {
    mock.on({}, { content: "ok" });
    await collect(ask("hello"));
    expect(mock.getLastRequest()?.body).not.toHaveProperty("tool_choice");
    expect(mock.getLastRequest()?.headers.authorization).toBeDefined();
    await collect(ask("hello"), null);
    expect(mock.getLastRequest()?.headers.authorization).toBeUndefined();
  });
});

describe("refusals", () => {
  test.each([
    [401, { message: "Incorrect API key provided" }, "PROVIDER_AUTH", false],
    [404, { message: "The model `m` does not exist", code: "model_not_found" }, "PROVIDER_MODEL_UNKNOWN", false],
    [400, { message: "context too long" }, "PROVIDER_INVALID", false],
    [402, { message: "pay first" }, "PROVIDER_QUOTA", false],
    [429, { message: "You exceeded your current quota", code: "insufficient_quota" }, "PROVIDER_QUOTA", false],
    [429, { message: "slow down" }, "PROVIDER_RATE_LIMITED", true],
    [408, { message: "late" }, "PROVIDER_TIMEOUT", true],
    [409, { message: "locked" }, "PROVIDER_SERVER", true],
    [503, { message: "overloaded" }, "PROVIDER_SERVER", true],
  ])("%i %o is %s", async (status, body, code, isTransient) => {
    mock.nextRequestError(status, body);
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

  test("without a key nothing is asked", async () => {
    const provider = createOpenAiProvider({
      name: "far",
      apiKey: null,
      baseUrl: "https://models.invalid/v1",
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

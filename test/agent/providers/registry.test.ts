/**
 * From a model's name to its provider; several endpoints side by side.
 */
import { LLMock } from "@copilotkit/aimock";
import { describe, expect, test } from "vitest";
import { createProviders, type ProvidersSlice } from "../../../src/agent/providers/registry.js";

function slice(model: string, keys: Record<string, string | null> = {}): ProvidersSlice {
  const providers = Object.fromEntries(
    Object.entries(keys).map(([name, apiKey]) => [
      name,
      { kind: "openai" as const, apiKey, baseUrl: `https://${name}.invalid/v1` },
    ]),
  );
  return { model, providers, requestTimeoutMs: 1000, streamIdleTimeoutMs: 1000 };
}

describe("auto", () => {
  test.each<[Record<string, string | null>, string, string]>([
    [{}, "demo", "demo"],
    [{ openai: null, openrouter: null }, "demo", "demo"],
    [{ openrouter: "k", openai: "k", anthropic: "k" }, "anthropic/claude-sonnet-5", "claude-sonnet-5"],
    [{ openrouter: "k", openai: "k", anthropic: null }, "openai/gpt-5-mini", "gpt-5-mini"],
    [{ other: "k", openai: null, openrouter: "k" }, "openrouter/openai/gpt-5-mini", "openai/gpt-5-mini"],
  ])("%o is %s", (keys, label, model) => {
    expect(createProviders(slice("auto", keys)).resolve()).toMatchObject({ label, model });
  });

  test("a key for a provider whose models nobody knows asks for a name", () => {
    expect(() => createProviders(slice("auto", { groq: "k" })).resolve()).toThrowError(/groq\/<model>/);
  });
});

describe("names", () => {
  test("provider/model, the model's own slashes kept, one provider object for all of its models", () => {
    const providers = createProviders(slice("auto", { openrouter: "k" }));
    const first = providers.resolve("openrouter/meta/llama");
    expect(first).toMatchObject({
      model: "meta/llama",
      label: "openrouter/meta/llama",
      provider: { name: "openrouter" },
    });
    expect(providers.resolve("openrouter/x").provider).toBe(first.provider);
    expect(providers.resolve("demo")).toMatchObject({ label: "demo", provider: { name: "demo" } });
  });

  test.each(["nope/model", "gpt-5-mini", "openai/", "/x", "", "toString/x"])("%j names the known ones", (name) => {
    const providers = createProviders(slice("auto", { openai: "k", local: null }));
    expect(() => providers.resolve(name)).toThrowError(
      expect.objectContaining({
        code: "PROVIDER_MODEL_UNKNOWN",
        message: expect.stringMatching(/openai\/….*local\/….*demo/),
      }),
    );
  });
});

describe("side by side", () => {
  const request = { messages: [{ role: "user" as const, content: "hi" }], tools: [], toolChoice: "auto" as const };

  async function answerOf(providers: ReturnType<typeof createProviders>, name: string): Promise<string> {
    const { provider, model } = providers.resolve(name);
    let answer = "";
    const events = provider.stream({ ...request, model, maxOutputTokens: 9 }, new AbortController().signal);
    for await (const event of events) if (event.type === "text") answer += event.text;
    return answer;
  }

  test("two OpenAI-compatible endpoints and one of Anthropic's kind, each asked with its own key and model", async () => {
    const [east, west] = [new LLMock({ port: 0 }), new LLMock({ port: 0 })];
    await Promise.all([east.start(), west.start()]);
    try {
      east.on({}, { content: "from the east" });
      west.on({}, { content: "from the west" });
      const providers = createProviders({
        ...slice("east/a"),
        providers: {
          east: { kind: "openai", apiKey: "key-east", baseUrl: `${east.url}/v1` },
          west: { kind: "openai", apiKey: null, baseUrl: `${west.url}/v1` },
          claude: { kind: "anthropic", apiKey: "key-claude", baseUrl: west.url },
        },
      });
      const names = ["east/a", "west/b", "claude/c"];
      const answers = await Promise.all(names.map((name) => answerOf(providers, name)));
      expect(answers).toEqual(["from the east", "from the west", "from the west"]);
      const asked = (mock: LLMock) =>
        mock.getRequests().map(({ path, body, headers }) => [path, body?.model, "authorization" in headers]);
      expect(asked(east)).toEqual([["/v1/chat/completions", "a", true]]);
      expect(asked(west).sort()).toEqual([
        ["/v1/chat/completions", "b", false],
        ["/v1/messages", "c", true],
      ]);
    } finally {
      await Promise.all([east.stop(), west.stop()]);
    }
  });

  test("a kind's own address is taken where the config names none", async () => {
    const providers = createProviders({
      ...slice("auto"),
      providers: { claude: { kind: "anthropic", apiKey: null, baseUrl: null } },
    });
    // Without a key a far endpoint is not asked, and the error names its provider.
    await expect(answerOf(providers, "claude/x")).rejects.toMatchObject({ code: "PROVIDER_NO_KEY" });
  });
});

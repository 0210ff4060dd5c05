/**
 * From a model's name to its provider.
 */
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
    [{ openrouter: "k", openai: "k" }, "openai/gpt-5-mini", "gpt-5-mini"],
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

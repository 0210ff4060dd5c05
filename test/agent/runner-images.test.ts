/** A model that refuses images: asked once more without, then not shown any in this run; other failures stay what they are. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type ChatMessage, ProviderError, type ProviderErrorCode } from "../../src/agent/providers/provider.js";
import type { Tool } from "../../src/agent/tools/tool.js";
import { brief, inputFor, run } from "./run-helpers.js";
import { call, calls, type Script, type ScriptedProvider, scripted, text } from "./scripted-provider.js";

const image = { mime: "image/png" as const, base64: "AAAA" };
const seen = (content: string): ChatMessage => ({ role: "user", content, images: [image] });
const refusal = (code: ProviderErrorCode = "PROVIDER_INVALID", detail = "") =>
  new ProviderError(code, "no", { detail });
const echo: Tool<object> = {
  name: "echo",
  description: "says it again",
  input: z.strictObject({}),
  isReadOnly: true,
  run: async () => ({ type: "done", text: "echo", isError: false }),
};

function images(provider: ScriptedProvider): number[] {
  return provider.requests.map(({ messages }) =>
    messages.reduce((sum, row) => sum + (row.role === "user" ? (row.images ?? []).length : 0), 0),
  );
}

const input = (provider: ScriptedProvider, more: Parameters<typeof inputFor>[1] = {}) =>
  inputFor(provider, { messages: [{ role: "system", content: "s" }, seen("what is it?")], tools: [echo], ...more });

describe("images that are refused", () => {
  test("are left out of one more call, with a word about it, and nobody sees the first", async () => {
    const provider = scripted(refusal(), text("a cat?"));
    const { events, result } = await run(input(provider));
    expect(images(provider)).toEqual([1, 0]);
    expect(provider.requests[1]?.messages[1]?.content).toMatch(/^what is it\?\n\(The images could not be shown/);
    expect(brief(events)).toEqual(['1 text "a cat?"', '1 final "a cat?"']);
    expect(result.stop).toBe("completed");
  });

  test("are not sent again in this run, nor those that come in while it goes on", async () => {
    const provider = scripted(refusal(), calls(call("echo", {}, "a")), text("one"), text("two"));
    const more: ChatMessage[][] = [[seen("and this?")], []];
    const takeIn = async (where: string) => (where === "after_final" ? (more.shift() ?? []) : []);
    await run(input(provider, { takeIn }));
    expect(images(provider)).toEqual([1, 0, 0, 0]);
    // The beginning stays the same, so that the provider's cache holds.
    expect(provider.requests[3]?.messages.slice(0, 2)).toEqual(provider.requests[1]?.messages);
  });

  test.each<[string, Script]>([
    ["by a server that knows no such model for images", refusal("PROVIDER_MODEL_UNKNOWN")],
    ["by a server that calls it its own failure", refusal("PROVIDER_SERVER", "image input is not supported")],
  ])("%s", async (_, first) => {
    const provider = scripted(first, text("ok"));
    await run(input(provider));
    expect(images(provider)).toEqual([1, 0]);
  });

  test("and refused again without: that error is the run's", async () => {
    const provider = scripted(refusal(), refusal("PROVIDER_SERVER", "second"));
    await expect(run(input(provider))).rejects.toMatchObject({ code: "PROVIDER_SERVER" });
    expect(images(provider)).toEqual([1, 0]);
  });
});

describe("no second call is made", () => {
  test.each<[string, ProviderError]>([
    ["for a failure that has nothing to do with images", refusal("PROVIDER_SERVER", "overloaded")],
    ["for a wrong key", refusal("PROVIDER_AUTH", "image")],
    ["for a model that takes no more for the moment", refusal("PROVIDER_RATE_LIMITED", "image")],
  ])("%s", async (_, error) => {
    const provider = scripted(error);
    await expect(run(input(provider))).rejects.toBe(error);
    expect(images(provider)).toEqual([1]);
  });

  test("without images, or after something was shown", async () => {
    const plain = scripted(refusal());
    await expect(run(inputFor(plain))).rejects.toMatchObject({ code: "PROVIDER_INVALID" });
    expect(plain.requests).toHaveLength(1);
    const late = scripted(async function* () {
      yield { type: "text" as const, text: "It is" };
      throw refusal();
    });
    await expect(run(input(late))).rejects.toMatchObject({ code: "PROVIDER_INVALID" });
    expect(late.requests).toHaveLength(1);
  });
});

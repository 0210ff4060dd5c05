/**
 * Tokens: what the provider counted wins, cached ones are told apart, and the sum says where it is a guess.
 */
import { describe, expect, test } from "vitest";
import { addUsage } from "../../../src/agent/providers/estimate.js";
import { createAnswerReader } from "../../../src/agent/providers/openai-answer.js";
import { parseRow } from "../../../src/session/row.js";

const usage = { inputTokens: 10, outputTokens: 5, estimated: false };

describe("sums", () => {
  test("cached tokens are added, and are left out where nobody told of any", () => {
    expect(addUsage(usage, usage)).toEqual({ inputTokens: 20, outputTokens: 10, estimated: false });
    expect(addUsage({ ...usage, cachedTokens: 4 }, usage)).toMatchObject({ inputTokens: 20, cachedTokens: 4 });
    expect(addUsage({ ...usage, cachedTokens: 4 }, { ...usage, cachedTokens: 3 })).toMatchObject({ cachedTokens: 7 });
    expect(addUsage(null, { ...usage, cachedTokens: 0 })).toEqual({ ...usage, cachedTokens: 0 });
  });

  test("one guess makes the sum a guess", () => {
    expect(addUsage(usage, { ...usage, estimated: true })).toMatchObject({ estimated: true });
  });
});

describe("an OpenAI-compatible endpoint", () => {
  test.each([
    [
      { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 8 } },
      { ...usage, cachedTokens: 8 },
    ],
    [{ prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: null }, usage],
    [{ prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: "8" } }, usage],
    [{ prompt_tokens: 10, completion_tokens: 5 }, usage],
  ])("%j", (wire, expected) => {
    const reader = createAnswerReader(new Set());
    const choices = [{ index: 0, delta: {}, finish_reason: "stop" as const }];
    const chunk = { id: "c", object: "chat.completion.chunk", created: 0, model: "m", choices, usage: wire };
    reader.take(chunk as unknown as Parameters<typeof reader.take>[0]);
    expect(reader.end()).toEqual([{ type: "finish", reason: "stop", usage: expected }]);
  });
});

test("a stored row keeps cached tokens, and a broken count is left out with the whole usage", () => {
  const row = { role: "assistant", content: "x" };
  expect(parseRow({ ...row, usage: { ...usage, cachedTokens: 4 } })).toMatchObject({ usage: { cachedTokens: 4 } });
  expect(parseRow({ ...row, usage: { ...usage, cachedTokens: "4" } })).not.toHaveProperty("usage");
});

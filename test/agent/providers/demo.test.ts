/**
 * The demo model: labelled, the same every time, bounded, in any language, and the abort.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { createDemoProvider } from "../../../src/agent/providers/demo.js";
import type { ChatMessage, ProviderEvent } from "../../../src/agent/providers/provider.js";

async function ask(content: string, signal = new AbortController().signal, earlier: ChatMessage[] = []) {
  const messages: ChatMessage[] = [...earlier, { role: "user", content }];
  const request = { model: "demo", messages, tools: [], toolChoice: "auto" as const, maxOutputTokens: 9 };
  const events: ProviderEvent[] = [];
  for await (const event of createDemoProvider().stream(request, signal)) events.push(event);
  return { events, text: events.map((event) => (event.type === "text" ? event.text : "")).join("") };
}

test.each(["hello there", "Привет, как дела?", "今日は良い天気ですね", "مرحبا بالعالم", "👩‍👩‍👧 😀"])(
  "echoes %s word by word, labelled, with how to connect a model",
  async (said) => {
    const { events, text } = await ask(said, undefined, [{ role: "user", content: "earlier" }]);
    expect(text).toMatch(/^\[demo model\]/);
    expect(text).toContain(said);
    expect(text).not.toContain("earlier");
    expect(text).toContain("OPENAI_API_KEY");
    expect(events.length).toBeGreaterThan(10);
    expect(events.at(-1)).toMatchObject({ type: "finish", reason: "stop", usage: { estimated: true } });
    expect((await ask(said, undefined, [{ role: "user", content: "earlier" }])).events).toEqual(events);
  },
);

test("says how to connect a model at the start of a conversation only", async () => {
  const earlier: ChatMessage[] = [
    { role: "user", content: "one" },
    { role: "assistant", content: "[demo model] You said: one", toolCalls: [] },
  ];
  expect((await ask("two", undefined, earlier)).text).toBe("[demo model] You said: two");
});

test("any input: bounded, labelled, encodable", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary", maxLength: 3000 }), async (said) => {
      const { text } = await ask(said);
      expect(text.startsWith("[demo model]")).toBe(true);
      expect(text.length).toBeLessThan(900);
      expect(text).not.toMatch(/\p{Surrogate}/u);
    }),
    { numRuns: 50 },
  );
});

test("an abort throws the signal's reason", async () => {
  const reason = new Error("stopped");
  await expect(ask("hi", AbortSignal.abort(reason))).rejects.toBe(reason);
});

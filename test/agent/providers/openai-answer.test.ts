/**
 * Reading chunks: how calls grow in the dialects servers speak, and that no character is torn.
 */
import type { ChatCompletionChunk } from "openai/resources/chat/completions";
import { describe, expect, test } from "vitest";
import { createAnswerReader } from "../../../src/agent/providers/openai-answer.js";

function chunk(delta: object, finish: string | null = null): ChatCompletionChunk {
  // Servers leave fields out that the type promises; that is what is tested here.
  return { choices: [{ index: 0, delta, finish_reason: finish }] } as unknown as ChatCompletionChunk;
}

function read(deltas: object[], finish = "tool_calls", used = new Set<string>()) {
  const reader = createAnswerReader(used);
  const events = deltas.flatMap((delta) => reader.take(chunk(delta)));
  events.push(...reader.take(chunk({}, finish)), ...reader.end());
  return events;
}

function callsOf(deltas: object[], used?: Set<string>): string[] {
  return read(deltas, "tool_calls", used).flatMap((event) =>
    event.type === "tool_call" ? [`${event.call.id} ${event.call.name} ${event.call.arguments}`] : [],
  );
}

const part = (index: number | undefined, id: string | undefined, name: string | undefined, args: string) => ({
  tool_calls: [
    { ...(index === undefined ? {} : { index }), ...(id ? { id } : {}), function: { name, arguments: args } },
  ],
});

describe("calls", () => {
  test.each<[string, object[], string[]]>([
    [
      "by index",
      [part(0, "a", "f", ""), part(1, "b", "g", "{}"), part(0, undefined, undefined, "{}")],
      ["a f {}", "b g {}"],
    ],
    ["id and name in every piece", [part(0, "a", "f", "{"), part(0, "a", "f", "}")], ["a f {}"]],
    ["one index for all", [part(0, "a", "f", "{}"), part(0, "b", "g", "{}")], ["a f {}", "b g {}"]],
    ["no index", [part(undefined, "a", "f", "{"), part(undefined, undefined, undefined, "}")], ["a f {}"]],
    ["no ids", [part(0, undefined, "f", "{}"), part(1, undefined, "g", "{}")], ["call-1 f {}", "call-2 g {}"]],
    ["one id for two calls", [part(0, "a", "f", "1"), part(1, "a", "f", "2")], ["a f 1", "a-2 f 2"]],
    ["a block repeated word for word", [part(0, "a", "f", "{}"), part(1, "a", "f", "{}")], ["a f {}"]],
    [
      "a name in pieces",
      [part(0, "a", "read_", ""), part(0, undefined, "file", ""), part(0, undefined, "", "{}")],
      ["a read_file {}"],
    ],
  ])("%s", (_name, deltas, expected) => {
    expect(callsOf(deltas)).toEqual(expected);
  });

  test("ids in use are avoided, also by those made up", () => {
    expect(callsOf([part(0, undefined, "f", "{}"), part(1, "x", "g", "{}")], new Set(["call-1", "x", "x-2"]))).toEqual([
      "call-2 f {}",
      "x-3 g {}",
    ]);
  });
});

describe("text", () => {
  test("a character cut in two arrives whole", () => {
    const events = read([{ content: "a\ud83d" }, { content: "\ude00b" }], "stop");
    expect(events.slice(0, 2)).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "😀b" },
    ]);
  });

  test("both names of the reasoning field, and a refusal's words", () => {
    const events = read([{ reasoning_content: "a" }, { reasoning: "b" }, { refusal: "I will not" }], "stop");
    expect(events.slice(0, 3).map((event) => event.type)).toEqual(["reasoning", "reasoning", "text"]);
  });

  test("a provider that says the answer failed is believed", () => {
    expect(() => read([{ content: "a" }], "error")).toThrowError(/broke its answer off/);
  });

  test("nothing but a finish reason ends an answer", () => {
    const reader = createAnswerReader(new Set());
    reader.take(chunk({ content: "a" }));
    expect(() => reader.end()).toThrowError(expect.objectContaining({ code: "PROVIDER_INCOMPLETE" }));
  });
});

/**
 * Inline reasoning: never in the text, wherever the deltas cut; the same words in code and prose stay.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ThinkFilter } from "../../src/agent/runner-think.js";
import { brief, inputFor, run } from "./run-helpers.js";
import { scripted, text } from "./scripted-provider.js";

function sort(deltas: readonly string[], isContinuation = false) {
  const filter = new ThinkFilter(isContinuation);
  const pieces = [...deltas.map((delta) => filter.push(delta)), filter.end()];
  return {
    text: pieces.map((piece) => piece.text).join(""),
    reasoning: pieces.map((piece) => piece.reasoning).join(""),
  };
}

const CASES: Array<[name: string, input: string, text: string, reasoning: string]> = [
  ["closed at the start", "<think>plan</think>\n\nHello", "Hello", "plan"],
  ["other names and letters", "<Thinking>a</thinking><thought>b</thought>c", "c", "ab"],
  ["left open at the start", "  <think>never ends", "  ", "never ends"],
  ["closed in the middle", "Hello <thinking>hm</thinking>there", "Hello there", "hm"],
  ["open in prose", "Use the <think> tag for that.", "Use the <think> tag for that.", ""],
  ["inline code", "Write `<think>x</think>` there.", "Write `<think>x</think>` there.", ""],
  ["double backticks", "``<think>`</think>`` ok", "``<think>`</think>`` ok", ""],
  ["fenced code", "See:\n```xml\n<think>x</think>\n```\nok", "See:\n```xml\n<think>x</think>\n```\nok", ""],
  ["after fenced code", "```\na\n```\n<think>x</think>b", "```\na\n```\nb", "x"],
  ["a stray backtick", "a ` b\nc <think>x</think>d", "a ` b\nc d", "x"],
  ["another word", "<thinker>x</thinker> <b>1 < 2</b>", "<thinker>x</thinker> <b>1 < 2</b>", ""],
  ["only the beginning of a tag", "<thin", "", ""],
  ["a lone sign", "<", "<", ""],
  ["cut close", "<think>a</thi", "", "a</thi"],
  ["code inside reasoning", "<think>`</think>ok", "ok", "`"],
];

describe("the filter", () => {
  test.each(CASES)("%s", (_name, input, expectedText, reasoning) => {
    expect(sort([input])).toEqual({ text: expectedText, reasoning });
    expect(sort([...input])).toEqual({ text: expectedText, reasoning });
  });

  test("how the deltas cut the stream makes no difference", () => {
    const part = fc.constantFrom(
      "<think>",
      "</think>",
      "<thought>",
      "</thought>",
      "`",
      "```",
      "\n",
      "a b",
      "<",
      "İ",
      " ",
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 14 }), fc.array(fc.nat(6), { maxLength: 40 }), (parts, cuts) => {
        const whole = parts.join("");
        const deltas: string[] = [];
        let at = 0;
        for (const cut of cuts) {
          deltas.push(whole.slice(at, at + cut));
          at += cut;
        }
        deltas.push(whole.slice(at));
        expect(sort(deltas)).toEqual(sort([whole]));
      }),
      { numRuns: 500 },
    );
  });

  test("text without tags passes through unchanged", () => {
    fc.assert(
      fc.property(
        fc.string().filter((value) => !value.includes("<")),
        (value) => {
          expect(sort([...value])).toEqual({ text: value, reasoning: "" });
        },
      ),
    );
  });

  test("what is plain text is shown at once", () => {
    const filter = new ThinkFilter();
    expect(filter.push("Hello").text).toBe("Hello");
    expect(filter.push(" <th").text).toBe(" ");
    expect(filter.push("e>").text).toBe("<the>");
  });
});

describe("in a run", () => {
  test("inline reasoning becomes reasoning events", async () => {
    const { events } = await run(inputFor(scripted(text("<thi", "nk>a", "b</th", "ink>\nYes"))));
    expect(brief(events)).toEqual(['1 reasoning "a"', '1 reasoning "b"', '1 text "Yes"', '1 final "Yes"']);
  });

  test("a dedicated reasoning field wins; inline reasoning is taken out all the same", async () => {
    const answer = scripted([{ type: "reasoning", text: "real" }, ...text("<think>copy</think>Yes")]);
    const { events } = await run(inputFor(answer));
    expect(brief(events)).toEqual(['1 reasoning "real"', '1 text "Yes"', '1 final "Yes"']);
    expect(events.at(-1)).toMatchObject({ reasoning: "real" });
  });
});

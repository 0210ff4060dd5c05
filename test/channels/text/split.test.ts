/**
 * Cutting markdown: whatever the text, each part stands within the limit and on its own, and nothing is lost. The fences
 * are counted here by a reader of its own.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutMarkdown, type SplitOptions, splitMarkdown } from "../../../src/channels/text/split.js";
import { markdownLike } from "./arbitraries.js";

interface Opened {
  signs: string;
  isQuoted: boolean;
}

/** The fence that a line opens; markers and quotes that would eat a part are text like any other. */
function openedBy(line: string, limit: number): Opened | null {
  const lead = /^[ \t>]*/.exec(line)?.[0] ?? "";
  const item = line.slice(lead.length).replace(/^(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*/, "");
  const signs = /^(?:`{3,}|~{3,})/.exec(item)?.[0] ?? "";
  if (signs === "" || signs.length > limit / 8) return null;
  if (signs[0] === "`" && item.slice(signs.length).includes("`")) return null;
  const isQuoted = lead.includes(">");
  return isQuoted && lead.length > limit / 16 ? null : { signs, isQuoted };
}

function isClosedBy(line: string, { signs }: Opened): boolean {
  const bare = line.replace(/^[ \t>]*/, "").trimEnd();
  return bare.length >= signs.length && bare === signs.charAt(0).repeat(bare.length);
}

/** Whether a fence is open at the end of a text. */
function isFenceOpen(text: string, limit: number): boolean {
  let open: Opened | null = null;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    if (open?.isQuoted === true && !/^[ \t]*>/.test(line)) open = null;
    if (open === null) open = openedBy(line, limit);
    else if (isClosedBy(line, open)) open = null;
  }
  return open !== null;
}

function joined(text: string, options: SplitOptions): string {
  return cutMarkdown(text, options)
    .map(({ body }) => body)
    .join("");
}

describe("splitMarkdown", () => {
  it("leaves a text alone that fits", () => {
    expect(splitMarkdown("hello\n```js\nlet a;\n```", { limit: 100 })).toEqual(["hello\n```js\nlet a;\n```"]);
  });

  it("has no part for a blank text", () => {
    expect(splitMarkdown(" \n\n ", { limit: 10 })).toEqual([]);
    expect(splitMarkdown("", { limit: 10 })).toEqual([]);
  });

  it("cuts at paragraphs before lines before sentences before spaces", () => {
    const words = "aaaa bbbb cccc dddd";
    expect(splitMarkdown(`${words}\n\n${words}\n${words}`, { limit: 50 })[0]).toBe(`${words}\n\n`);
    expect(splitMarkdown(`${words}\n${words}. ${words}`, { limit: 45 })[0]).toBe(`${words}\n`);
    expect(splitMarkdown(`${words}. ${words} ${words}`, { limit: 45 })[0]).toBe(`${words}. `);
    expect(splitMarkdown(`${words} ${words}`, { limit: 22 })[0]).toBe(`${words} `);
  });

  it("closes and reopens a fence with its language", () => {
    const code = Array.from({ length: 40 }, (_, i) => `line ${i};`).join("\n");
    const parts = splitMarkdown(`Look:\n\`\`\`ts\n${code}\n\`\`\`\nDone.`, { limit: 120 });
    expect(parts.length).toBeGreaterThan(3);
    for (const part of parts.slice(1, -1)) expect(part).toMatch(/^```ts\nline [\s\S]*\n```$/);
    expect(parts.at(-1)).toMatch(/^```ts\nline [\s\S]*\n```\nDone\.$/);
  });

  it("repeats no long info string", () => {
    const code = "x = 1\n".repeat(100);
    const parts = splitMarkdown(`\`\`\`python title="${"very ".repeat(20)}long"\n${code}\`\`\``, { limit: 200 });
    for (const part of parts.slice(1)) expect(part.startsWith("```python\nx = 1\n")).toBe(true);
    const nameless = splitMarkdown(`\`\`\`${"q".repeat(90)}\n${code}\`\`\``, { limit: 200 });
    for (const part of nameless.slice(1)) expect(part.startsWith("```\nx = 1\n")).toBe(true);
  });

  it("takes an opening line along that is longer than a part", () => {
    const text = `\`\`\`${"i".repeat(300)}\ncode\n\`\`\``;
    const parts = splitMarkdown(text, { limit: 100 });
    for (const part of parts) expect(isFenceOpen(part, 100)).toBe(false);
    expect(joined(text, { limit: 100 })).toBe(text);
  });

  it("does not cut a fence that fits into a part of its own", () => {
    const fence = `\`\`\`\n${"code\n".repeat(12)}\`\`\``;
    expect(splitMarkdown(`${"word ".repeat(10)}\n${fence}`, { limit: 100 })).toEqual([
      `${"word ".repeat(10)}\n`,
      fence,
    ]);
  });

  it("forgets where a fence began that goes on in the next part", () => {
    const text = `[x]: https://example.org\n\n~~~\n${"`".repeat(50)}Words of a sentence. `;
    for (const part of splitMarkdown(text, { limit: 74 })) expect(isFenceOpen(part, 74)).toBe(false);
    expect(splitMarkdown(text, { limit: 74 })[1]).toMatch(/^~~~\n`{50}Words of a sente\n~~~$/);
  });

  it("keeps the quote around a fence that is cut", () => {
    const parts = splitMarkdown(`> \`\`\`js\n${"> some code;\n".repeat(20)}> \`\`\`\nafter`, { limit: 100 });
    for (const part of parts.slice(1, -1)) expect(part).toMatch(/^> ```js\n(> some code;\n)+> ```$/);
  });

  it("closes a fence that its author left open", () => {
    expect(splitMarkdown("```js\nlet a;", { limit: 100 })).toEqual(["```js\nlet a;\n```"]);
  });

  it("makes no fence of backticks within a line", () => {
    const text = `${"word ".repeat(15)}\`\`\` ${"word ".repeat(15)}`;
    for (const part of splitMarkdown(text, { limit: 76 })) expect(part.trimEnd()).toMatch(/^(word|```)( (word|```))*$/);
    expect(splitMarkdown(text, { limit: 76 }).some((part) => part.startsWith("```"))).toBe(false);
  });

  it("keeps at most so many lines in a part", () => {
    const parts = splitMarkdown("a\n".repeat(100), { limit: 2000, maxLines: 17 });
    expect(parts.map((part) => part.split("\n").length - 1)).toEqual([17, 17, 17, 17, 17, 15]);
  });

  it("keeps faces and flags whole", () => {
    const family = "👨‍👩‍👧‍👦";
    for (const part of splitMarkdown(family.repeat(50), { limit: 30 })) {
      expect(part.length % family.length).toBe(0);
    }
  });

  it("cuts any text into parts within the limit, balanced and complete", () => {
    const limits = fc.record(
      { limit: fc.integer({ min: 40, max: 300 }), maxLines: fc.integer({ min: 1, max: 30 }) },
      { requiredKeys: ["limit"] },
    );
    fc.assert(
      fc.property(markdownLike(), limits, (text, options) => {
        const parts = splitMarkdown(text, options);
        for (const part of parts) {
          expect(part.length).toBeLessThanOrEqual(options.limit);
          expect(part.trim()).not.toBe("");
          expect(part.isWellFormed()).toBe(true);
          expect(isFenceOpen(part, options.limit)).toBe(false);
        }
        expect(joined(text, options)).toBe(text.toWellFormed());
      }),
      { numRuns: 500 },
    );
  });

  it("advances with any limit", () => {
    fc.assert(
      fc.property(markdownLike(), fc.integer({ min: 2, max: 12 }), (text, limit) => {
        for (const part of splitMarkdown(text, { limit })) expect(part.length).toBeLessThanOrEqual(limit);
        expect(joined(text, { limit })).toBe(text.toWellFormed());
      }),
      { numRuns: 200 },
    );
    expect(splitMarkdown("a👍b", { limit: 1 })).toEqual(["a", "👍", "b"]);
  });

  it("cuts a megabyte quickly", () => {
    const text = `${"word ".repeat(1000)}\n\`\`\`js\n${"code();\n".repeat(1000)}\`\`\`\n`.repeat(80);
    const begun = performance.now();
    expect(splitMarkdown(text, { limit: 2000 }).length).toBeGreaterThan(500);
    expect(splitMarkdown("x".repeat(1_000_000), { limit: 2000 })).toHaveLength(500);
    expect(performance.now() - begun).toBeLessThan(5_000);
  });
});

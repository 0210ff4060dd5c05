/**
 * Markdown to formatted text: what each construct becomes, and that whatever is written, no word is lost, no entity is out
 * of place and no platform's rule of nesting is broken, before and after cutting.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isInsidePair } from "../../../src/channels/text/borders.js";
import { type Entity, type Formatted, splitFormatted } from "../../../src/channels/text/formatted.js";
import { renderMarkdown } from "../../../src/channels/text/markdown.js";
import { markdownLike } from "./arbitraries.js";

/** Entities as `type(stretch)`. */
function marks({ text, entities }: Formatted): string[] {
  return entities.map(({ type, offset, length }) => `${type}(${text.slice(offset, offset + length)})`);
}

function overlap(a: Entity, b: Entity): boolean {
  return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

function contains(a: Entity, b: Entity): boolean {
  return a.offset <= b.offset && b.offset + b.length <= a.offset + a.length;
}

/** What platforms refuse or silently drop. */
function faultsOf({ text, entities }: Formatted): string[] {
  const faults = entities.flatMap((entity, at) => entities.slice(at + 1).map((other) => faultBetween(entity, other)));
  for (const { type, offset, length } of entities) {
    const end = offset + length;
    if (length < 1 || offset < 0 || end > text.length) faults.push(`out of range: ${type}`);
    if (isInsidePair(text, offset) || isInsidePair(text, end)) faults.push(`inside a pair: ${type}`);
  }
  return faults.filter((fault) => fault !== null);
}

function faultBetween(a: Entity, b: Entity): string | null {
  const types = [a.type, b.type];
  if (!overlap(a, b)) return null;
  if (!contains(a, b) && !contains(b, a)) return `${types} cross`;
  if (a.type === b.type || types.includes("pre")) return `${types} nested`;
  return types.includes("code") && !types.includes("quote") ? `${types} nested` : null;
}

describe("renderMarkdown", () => {
  it("renders styles, and nests them", () => {
    const formatted = renderMarkdown("**bold *both* `code` on** ~~gone~~");
    expect(formatted.text).toBe("bold both code on gone");
    expect(marks(formatted)).toEqual(["bold(bold both )", "italic(both)", "code(code)", "bold( on)", "strike(gone)"]);
  });

  it("renders headings, lists and rules as text", () => {
    const source = "# Title *x*\nText\n\n- a\n- b\n  - c\n- [x] done\n- [ ] open\n\n3. three\n4. four\n\n---\nend";
    const formatted = renderMarkdown(source);
    expect(formatted.text).toBe("Title x\nText\n\n• a\n• b\n  • c\n☑ done\n☐ open\n\n3. three\n4. four\n\n———\nend");
    expect(marks(formatted)).toEqual(["bold(Title x)", "italic(x)"]);
  });

  it("keeps a soft line break and makes one of a hard break", () => {
    expect(renderMarkdown("a\nb  \nc<br>d").text).toBe("a\nb\nc\nd");
  });

  it("renders code with its language, wherever it stands", () => {
    const formatted = renderMarkdown("1. do\n   ```js\n   let a = 1;\n\n   b\n   ```\n2. more\n\n    indented");
    expect(formatted.entities.filter(({ type }) => type === "pre")).toMatchObject([{ language: "js" }]);
    expect(marks(formatted)).toContain("pre(let a = 1;\n\nb)");
  });

  it("leaves markup in code alone", () => {
    const formatted = renderMarkdown("`**a** <b>` and\n```\n# no _heading_ &amp;\n```");
    expect(marks(formatted)).toEqual(["code(**a** <b>)", "pre(# no _heading_ &amp;)"]);
  });

  it("links what is safe to link and shows the rest", () => {
    const formatted = renderMarkdown(
      "[a `b`](https://x.org/?q=1) [rel](./a.md) [bad](javascript:1) <me@x.org> ![pic](http://p.org)",
    );
    expect(formatted.text).toBe("a b rel (./a.md) bad (javascript:1) me@x.org pic");
    expect(formatted.entities).toEqual([
      { type: "link", url: "https://x.org/?q=1", offset: 0, length: 3 },
      { type: "link", url: "http://p.org", offset: 45, length: 3 },
    ]);
  });

  it("renders a quote as one, its code outside", () => {
    const formatted = renderMarkdown("> a **b**\n>\n> c\n> > d\n>\n> ```\n> code\n> ```\n> e\n\nf");
    expect(formatted.text).toBe("a b\n\nc\nd\n\ncode\ne\n\nf");
    expect(marks(formatted)).toEqual(["quote(a b\n\nc\nd)", "bold(b)", "pre(code)", "quote(e)"]);
  });

  it("aligns tables, wide characters counting two", () => {
    const formatted = renderMarkdown("| Name | n |\n|---|--:|\n| 漢字 **b** | 1 |\n| 👍 | 200 |\n| é | |");
    expect(formatted.text.split("\n")).toEqual([
      "Name   |   n",
      "-------+----",
      "漢字 b |   1",
      "👍     | 200",
      "é      |",
    ]);
    expect(formatted.entities.map(({ type }) => type)).toEqual(["pre"]);
  });

  it("shows the addresses of links in a table, which can carry none", () => {
    expect(renderMarkdown("| a |\n|---|\n| [b](https://x.org) |").text).toBe(`a\n${"-".repeat(17)}\nb (https://x.org)`);
  });

  it("shows html, broken markup and definitions as they were written", () => {
    for (const text of ["<div>\nx\n</div>", "a <b>c</b>", "**a", "_a*b_c", "[a](b", "`a", "|a|", "[x]: http://x.org"]) {
      expect(renderMarkdown(text)).toEqual({ text, entities: [] });
    }
    expect(renderMarkdown("```This is no language\nmore").text).toBe("This is no language\nmore");
    expect(renderMarkdown("```js\n```").text).toBe("```js\n```");
  });

  it("takes out the backslashes of escapes", () => {
    expect(renderMarkdown("\\*a\\* 1\\. \\_b").text).toBe("*a* 1. _b");
  });

  it("renders nesting without end", () => {
    expect(renderMarkdown(`${"> ".repeat(30_000)}deep`).text).toContain("deep");
    expect(renderMarkdown(`${"*a **b ".repeat(5_000)}deep`).text).toContain("deep");
  });

  it("loses no word and breaks no rule, whatever is written", () => {
    fc.assert(
      fc.property(markdownLike(), (source) => {
        const formatted = renderMarkdown(source);
        expect(faultsOf(formatted)).toEqual([]);
        expect(formatted.text.isWellFormed()).toBe(true);
        const details = formatted.entities.map((one) =>
          "url" in one ? one.url : "language" in one ? one.language : "",
        );
        const all = `${formatted.text} ${details.join(" ")}`;
        const words = source.match(/[a-z]{3,}/g) ?? [];
        // The only words that stand for a sign.
        expect(words.filter((word) => !all.includes(word) && word !== "amp")).toEqual([]);
      }),
      { numRuns: 800 },
    );
  });
});

describe("splitFormatted", () => {
  it("cuts entities with their text", () => {
    const parts = splitFormatted(renderMarkdown(`**${"bold ".repeat(9)}bold** tail`), 25);
    expect(parts.flatMap(marks)).toEqual(["bold(bold bold bold bold bold )", "bold(bold bold bold bold bold)"]);
    expect(parts.map(({ text }) => text).join("")).toBe(`${"bold ".repeat(9)}bold tail`);
  });

  it("cuts anything into legal parts that join to the text", () => {
    fc.assert(
      fc.property(markdownLike(), fc.integer({ min: 2, max: 200 }), (source, limit) => {
        const formatted = renderMarkdown(source);
        const parts = splitFormatted(formatted, limit);
        for (const part of parts) {
          expect(part.text.length).toBeLessThanOrEqual(limit);
          expect(part.text.trim()).not.toBe("");
          expect(part.text.isWellFormed()).toBe(true);
          expect(faultsOf(part)).toEqual([]);
        }
        const joined = parts.map(({ text }) => text).join("");
        expect(joined.replace(/\s/g, "")).toBe(formatted.text.replace(/\s/g, ""));
        const styled = (all: Formatted[]) =>
          all
            .flatMap(({ text, entities }) => entities.map(({ offset, length }) => text.slice(offset, offset + length)))
            .join("")
            .replace(/\s/g, "").length;
        expect(styled(parts)).toBe(styled([formatted]));
      }),
      { numRuns: 500 },
    );
  });

  it("cuts a text of hundreds of parts in a moment", () => {
    const source = "Some **bold** text, a [link](https://x.org) and `code`.\n\n- one\n- two\n\n".repeat(20_000);
    const begun = performance.now();
    const parts = splitFormatted(renderMarkdown(source), 4096);
    expect(parts.length).toBeGreaterThan(200);
    expect(performance.now() - begun).toBeLessThan(8_000);
  });
});

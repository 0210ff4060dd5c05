/**
 * Edits: which place is meant, line ends, loose matches, and files that are not what they were.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEditFile } from "../../../src/agent/tools/edit-file.js";
import { findMatches, replaceMatches } from "../../../src/agent/tools/edit-match.js";
import { FileReads } from "../../../src/agent/tools/files.js";
import { createReadFile } from "../../../src/agent/tools/read-file.js";
import { createToolRegistry } from "../../../src/agent/tools/registry.js";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "nanogate-edit-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function edit(before: string | Buffer | null, args: object) {
  const path = join(root, "f.txt");
  if (before !== null) await writeFile(path, before);
  const resolve = async (name: string) => join(root, name);
  const deps = { guard: { resolveInside: resolve, resolveReadable: resolve }, reads: new FileReads() };
  const registry = createToolRegistry([createEditFile(deps), createReadFile(deps)]);
  const context = { signal: new AbortController().signal, callId: "1" };
  const use = async (name: string, more: object) => {
    const call = { id: "1", name, arguments: JSON.stringify({ path: "f.txt", ...more }) };
    const result = await registry.runTool(call, context);
    if (result.type !== "done") throw new Error("an edit does not wait");
    return result;
  };
  const result = await use("edit_file", args);
  return { ...result, use, path, after: await readFile(path, "utf8").catch(() => null) };
}

const three = "a\nx\nb\nx\nc\nx\n";

describe("which place", () => {
  test("one place is replaced", async () => {
    const { text, after } = await edit("one two", { old_text: "two", new_text: "three" });
    expect(after).toBe("one three");
    expect(text).toMatch(/^Replaced 1 in f.txt \(line 1\)/);
  });

  test("several places are listed by line, and nothing is changed", async () => {
    const { isError, text, after } = await edit(three, { old_text: "x", new_text: "y" });
    expect(isError).toBe(true);
    expect(text).toContain("3 places (lines 2, 4, 6)");
    expect(after).toBe(three);
  });

  test.each<[string, object, string | RegExp]>([
    ["all", { replace_all: true }, "a\ny\nb\ny\nc\ny\n"],
    ["the second", { occurrence: 2 }, "a\nx\nb\ny\nc\nx\n"],
    ["near a line", { line_hint: 7 }, "a\nx\nb\nx\nc\ny\n"],
    ["as many as expected", { expected_replacements: 3 }, "a\ny\nb\ny\nc\ny\n"],
    ["between two lines", { line_hint: 3 }, /3 places/],
    ["one that is not there", { occurrence: 4 }, /no occurrence 4/],
    ["not as many as expected", { expected_replacements: 2, replace_all: true }, /3 places, not at 2/],
  ])("%s", async (_name, args, expected) => {
    const { text, after, isError } = await edit(three, { old_text: "x", new_text: "y", ...args });
    if (typeof expected === "string") expect(after).toBe(expected);
    else
      expect({ isError, text, after }).toEqual({ isError: true, text: expect.stringMatching(expected), after: three });
  });

  test("what is not there is said, with where its first line is", async () => {
    const { isError, text } = await edit("a\nfoo bar\nb", { old_text: "foo\nqux", new_text: "" });
    expect(isError).toBe(true);
    expect(text).toMatch(/not found.*line 2/s);
  });
});

describe("line ends and loose matches", () => {
  test("Windows line ends stay, whatever the model writes", async () => {
    const { after } = await edit("a\r\nb\r\nc\r\n", { old_text: "a\nb", new_text: "1\n2\n3" });
    expect(after).toBe("1\r\n2\r\n3\r\nc\r\n");
  });

  test("in a mixed file only the replaced lines follow their neighbours", async () => {
    const { after } = await edit("a\r\nb\nc\r\n", { old_text: "b\nc", new_text: "x\ny" });
    expect(after).toBe("a\r\nx\ny\r\n");
  });

  test("other indentation and other quotes still match whole lines", async () => {
    const before = "if (a) {\n    say(‘hi’);\n    go();\n}\n";
    const { after } = await edit(before, { old_text: "say('hi');\ngo();", new_text: "say('ho');\nif (b)\n  go();" });
    expect(after).toBe("if (a) {\n    say('ho');\n    if (b)\n      go();\n}\n");
  });

  test("an exact edit changes nothing around it", () => {
    const line = fc.stringMatching(/^[ab ]{0,4}$/);
    const ends = fc.constantFrom("\n", "\r\n");
    fc.assert(
      fc.property(
        fc.array(line),
        fc.array(line),
        ends,
        fc.stringMatching(/^[xy\n]{0,6}$/),
        (before, after, end, fresh) => {
          const head = before.map((text) => text + end).join("");
          const tail = after.map((text) => end + text).join("");
          const text = `${head}<MARK>${tail}`;
          const matches = findMatches(text, "<MARK>");
          const hasEnds = text.includes(end);
          expect(replaceMatches(text, matches, fresh)).toBe(
            head + (hasEnds ? fresh.replace(/\n/g, end) : fresh) + tail,
          );
          expect(matches[0]?.line).toBe(before.length + 1);
        },
      ),
    );
  });
});

describe("files", () => {
  test("an empty old_text makes a new file, and only that", async () => {
    expect((await edit(null, { old_text: "", new_text: "new" })).after).toBe("new");
    expect((await edit("", { old_text: "", new_text: "filled" })).after).toBe("filled");
    expect(await edit("full", { old_text: "", new_text: "no" })).toMatchObject({ isError: true, after: "full" });
  });

  test("it warns when the file was not read, or changed since", async () => {
    const first = await edit("one two three", { old_text: "one", new_text: "1" });
    expect(first.text).toMatch(/had not been read/);
    expect((await first.use("edit_file", { old_text: "two", new_text: "2" })).text).not.toMatch(/Warning/);
    await first.use("read_file", {});
    await writeFile(first.path, "1 2 three, changed outside");
    expect((await first.use("edit_file", { old_text: "three", new_text: "3" })).text).toMatch(/had changed/);
  });

  test("missing, binary and unchanged are refused", async () => {
    expect(await edit(null, { old_text: "a", new_text: "b" })).toMatchObject({ isError: true, after: null });
    const binary = await edit(Buffer.from([0x61, 0xff, 0x62]), { old_text: "a", new_text: "b" });
    expect(binary.text).toMatch(/binary/);
    expect((await edit("a", { old_text: "a", new_text: "a" })).text).toMatch(/the same/);
  });
});

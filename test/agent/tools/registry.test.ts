/**
 * Arguments and names: what is run, what is refused, and what the model is told.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { parseArguments } from "../../../src/agent/tools/arguments.js";
import { createToolRegistry } from "../../../src/agent/tools/registry.js";
import type { Tool } from "../../../src/agent/tools/tool.js";

const input = z.strictObject({
  path: z.string(),
  count: z.number().int().optional(),
  deep: z.boolean().default(false),
  tags: z.array(z.string()).optional(),
  sizes: z.array(z.number()).optional(),
  inner: z.strictObject({ on: z.boolean() }).optional(),
  limit: z.number().nullable().optional(),
  either: z.union([z.string(), z.number()]).optional(),
});

function parse(value: unknown) {
  const parsed = parseArguments(typeof value === "string" ? value : JSON.stringify(value), input);
  return parsed.ok ? parsed.value : parsed.problem;
}

describe("arguments", () => {
  test.each<[string, unknown, object]>([
    ["an object", { path: "a" }, { path: "a", deep: false }],
    ["a JSON string of an object", JSON.stringify(JSON.stringify({ path: "a" })), { path: "a", deep: false }],
    ["a wrapper", { arguments: { path: "a" } }, { path: "a", deep: false }],
    ["a wrapper of text", { arguments: '{"path":"a"}' }, { path: "a", deep: false }],
    ["numbers in text", { path: "a", count: " 12 " }, { path: "a", deep: false, count: 12 }],
    ["booleans in text", { path: "a", deep: "Yes" }, { path: "a", deep: true }],
    [
      "items and inner objects",
      { path: "a", sizes: ["1", "2.5"], inner: { on: "0" } },
      { path: "a", deep: false, sizes: [1, 2.5], inner: { on: false } },
    ],
    ["null where it is allowed", { path: "a", limit: null }, { path: "a", deep: false, limit: null }],
    ["null for what may be left out", { path: "a", count: null, deep: null }, { path: "a", deep: false }],
    ["text stays text where text is allowed", { path: "12", either: "12" }, { path: "12", deep: false, either: "12" }],
  ])("%s", (_name, value, expected) => {
    expect(parse(value)).toEqual(expected);
  });

  test.each<[string, unknown, RegExp]>([
    ["a list", [1], /a list, not an object.*path, count\?/],
    ["a number", "5", /a number, not an object/],
    ["broken JSON", '{"path": "a', /not valid JSON.*Send one JSON object/],
    ["an unknown parameter", { path: "a", cout: 1 }, /Unknown parameter: "cout" \(did you mean "count"\?\)/],
    ["a missing one", {}, /path: /],
    ["null is nothing", "null", /path: /],
    ["empty text is no number", { path: "a", count: "" }, /count: /],
    ["an infinite number", { path: "a", count: "1e999" }, /count: /],
    ["a boolean is no number", { path: "a", count: true }, /count: /],
    ["one value is no list", { path: "a", tags: "x" }, /tags: /],
  ])("%s is refused", (_name, value, problem) => {
    expect(parse(value)).toMatch(problem);
  });

  test("no text makes it throw", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (value) => {
        const parsed = parseArguments(value, input);
        expect(parsed.ok || parsed.problem.length > 0).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

describe("registry", () => {
  let runs = 0;
  const tool = (name: string): Tool<{ path: string }> => ({
    name,
    description: name,
    input: z.object({ path: z.string() }),
    isReadOnly: true,
    run: async ({ path }) => {
      runs += 1;
      return { type: "done", text: path, isError: path === "bad" };
    },
  });
  const registry = createToolRegistry([tool("write_file"), tool("read_file")]);
  const context = { signal: new AbortController().signal, callId: "1" };
  const call = (name: string, args = '{"path":"a"}') => registry.runTool({ id: "1", name, arguments: args }, context);

  test("definitions are sorted and are JSON Schema", () => {
    expect(registry.definitions().map((definition) => definition.name)).toEqual(["read_file", "write_file"]);
    expect(registry.definitions()[0]?.parameters).toMatchObject({ type: "object", required: ["path"] });
    expect(registry.definitions()[0]?.parameters).not.toHaveProperty("$schema");
  });

  test("a near miss is named and not run; two near ones are not guessed between", async () => {
    runs = 0;
    expect(await call("Read-File")).toMatchObject({
      isError: true,
      text: expect.stringContaining('Did you mean "read_file"?'),
    });
    const far = await call("delete_everything");
    expect(far).toMatchObject({ isError: true, text: expect.stringContaining("read_file, write_file") });
    expect(far).not.toMatchObject({ text: expect.stringContaining("Did you mean") });
    expect(runs).toBe(0);
  });

  test("unknown parameters are refused also where the schema would drop them", async () => {
    expect(await call("read_file", '{"path":"a","x":1}')).toMatchObject({ isError: true });
  });

  test("a failed call carries a hint", async () => {
    expect(await call("read_file", '{"path":"bad"}')).toMatchObject({
      text: expect.stringMatching(/^bad\n\n.*another way/),
    });
  });

  test("an abort is thrown, not told", async () => {
    const reason = new Error("stopped");
    const aborted = { signal: AbortSignal.abort(reason), callId: "1" };
    await expect(registry.runTool({ id: "1", name: "read_file", arguments: "{}" }, aborted)).rejects.toBe(reason);
  });

  test("two tools of one name are a mistake of ours", () => {
    expect(() => createToolRegistry([tool("a"), tool("a")])).toThrowError(/same name/);
  });
});

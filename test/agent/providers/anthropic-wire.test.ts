/**
 * Our rows in Anthropic's words: the rules one by one, and as properties of any list of rows.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { wireRequest } from "../../../src/agent/providers/anthropic-wire.js";
import { normaliseMessages } from "../../../src/agent/providers/normalise.js";
import type { ChatMessage, ModelRequest, ToolCall, ToolDefinition } from "../../../src/agent/providers/provider.js";

const user = (content: string): ChatMessage => ({ role: "user", content });
const system = (content: string): ChatMessage => ({ role: "system", content });
const call = (id: string, name = "f", args = "{}"): ToolCall => ({ id, name, arguments: args });
const assistant = (content: string, ...toolCalls: ToolCall[]): ChatMessage => ({
  role: "assistant",
  content,
  toolCalls,
  reasoning: "never sent",
});
const result = (toolCallId: string, content = "r"): ChatMessage => ({ role: "tool", toolCallId, name: "f", content });

const tool = (name: string): ToolDefinition => ({ name, description: `does ${name}`, parameters: { properties: {} } });

function wire(messages: readonly ChatMessage[], extra: Partial<ModelRequest> = {}) {
  return wireRequest({ model: "m", messages, tools: [], toolChoice: "auto", maxOutputTokens: 9, ...extra });
}

/** The body without its cache markers. */
function plain(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body, (key, value: unknown) => (key === "cache_control" ? undefined : value)));
}

/** Where the cache markers are, in the order in which the wire reads the parts. */
function markers(body: ReturnType<typeof wireRequest>): string[] {
  const parts: Array<[string, unknown]> = [
    ["tools", body.tools ?? []],
    ["system", body.system ?? []],
    ...body.messages.map((message, at): [string, unknown] => [`messages.${at}`, message.content]),
  ];
  return parts.flatMap(([name, blocks]) =>
    Array.isArray(blocks)
      ? blocks.flatMap((one: object, at) => ("cache_control" in one ? `${name}.${at - blocks.length}` : []))
      : [],
  );
}

describe("rules", () => {
  test("results are the user's, and go before the words that follow them", () => {
    const rows = [system("s"), user("a"), assistant("x", call("1"), call("2")), result("1"), result("2"), user("b")];
    expect(plain(wire(rows, { tools: [tool("f")] }))).toEqual({
      model: "m",
      max_tokens: 9,
      stream: true,
      system: [{ type: "text", text: "s" }],
      tools: [{ name: "f", description: "does f", input_schema: { type: "object", properties: {} } }],
      tool_choice: { type: "auto" },
      messages: [
        { role: "user", content: [{ type: "text", text: "a" }] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "x" },
            { type: "tool_use", id: "1", name: "f", input: {} },
            { type: "tool_use", id: "2", name: "f", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "1", content: "r" },
            { type: "tool_result", tool_use_id: "2", content: "r" },
            { type: "text", text: "b" },
          ],
        },
      ],
    });
  });

  test("system rows from anywhere become the system prompt, and what they parted is joined", () => {
    const body = wire([system("s"), user("a"), system(" "), user("b"), system("t"), assistant("x")]);
    expect(plain(body.system)).toEqual([
      { type: "text", text: "s" },
      { type: "text", text: "t" },
    ]);
    expect(plain(body.messages)).toEqual([{ role: "user", content: [{ type: "text", text: "a\n\nb" }] }]);
  });

  test("system rows alone: there is something to answer", () => {
    expect(plain(wire([system("s")]).messages)).toEqual([
      { role: "user", content: [{ type: "text", text: "(continue)" }] },
    ]);
  });

  test("ids that the wire refuses are renamed, in the call and in its result, and stay apart", () => {
    const rows = [
      user("a"),
      assistant("", call("f.x:1"), call("f_x_1")),
      result("f.x:1", "one"),
      result("f_x_1", "two"),
    ];
    const [, calls, results] = wire(rows).messages;
    expect(calls?.content).toMatchObject([{ id: "f_x_1" }, { id: "f_x_1-2" }]);
    expect(results?.content).toMatchObject([
      { tool_use_id: "f_x_1", content: "one" },
      { tool_use_id: "f_x_1-2", content: "two" },
    ]);
  });

  test("no tools: no choice; but a conversation with calls keeps its tools, and none may be used", () => {
    expect(wire([user("a")])).not.toHaveProperty("tools");
    expect(wire([user("a")])).not.toHaveProperty("tool_choice");
    const body = wire([user("a"), assistant("", call("1"), call("2", "g"), call("3")), user("b")]);
    expect(body.tools?.map((one) => "name" in one && one.name)).toEqual(["f", "g"]);
    expect(body.tool_choice).toEqual({ type: "none" });
  });

  test("words only, although tools are shown", () => {
    expect(wire([user("a")], { tools: [tool("f")], toolChoice: "none" }).tool_choice).toEqual({ type: "none" });
  });
});

describe("cache markers", () => {
  const rows = [system("s"), user("a"), assistant("x"), user("b"), assistant("y", call("1")), result("1")];

  test("the tools, the system prompt, and the last two turns of the user", () => {
    expect(markers(wire(rows, { tools: [tool("f"), tool("g")] }))).toEqual([
      "tools.-1",
      "system.-1",
      "messages.2.-1",
      "messages.4.-1",
    ]);
    expect(markers(wire([user("a")]))).toEqual(["messages.0.-1"]);
  });

  test("the next request begins with the bytes of the one before it, up to its last marker", () => {
    const before = wire(rows, { tools: [tool("f")] });
    const after = wire([...rows, assistant("z"), user("c")], { tools: [tool("f")] });
    expect(JSON.stringify(plain([after.tools, after.system]))).toBe(
      JSON.stringify(plain([before.tools, before.system])),
    );
    const kept = after.messages.slice(0, before.messages.length);
    expect(JSON.stringify(plain(kept))).toBe(JSON.stringify(plain(before.messages)));
    // The last marker of the request before is marked again.
    expect(markers(after)).toContain(`messages.${before.messages.length - 1}.-1`);
  });
});

const anyText = fc.constantFrom("", " ", "hello", "a\ud800b", "\udc00", "😀", "x\ny");
const anyCall = fc.record({
  id: fc.constantFrom("", "1", "2", "1-2", "a.b", "a_b", "a:b", "ü", "call-1"),
  name: fc.constantFrom("", "f", "g h", "\ud800"),
  arguments: fc.constantFrom("", "{}", '{"a":1}', "[1]", "{broken", '"x"'),
});
const anyRow: fc.Arbitrary<ChatMessage> = fc.oneof(
  fc.record({ role: fc.constant("system" as const), content: anyText }),
  fc.record({ role: fc.constant("user" as const), content: anyText }),
  fc.record({
    role: fc.constant("assistant" as const),
    content: anyText,
    toolCalls: fc.array(anyCall, { maxLength: 3 }),
    reasoning: fc.constant("never sent"),
  }),
  fc.record({
    role: fc.constant("tool" as const),
    toolCallId: fc.constantFrom("", "1", "2", "1-2", "a.b", "a:b", "9"),
    name: fc.constantFrom("f", "g h"),
    content: anyText,
  }),
);

type Block = { type: string; id?: string; tool_use_id?: string; text?: string; content?: string; input?: unknown };

function blocksOf(message: ReturnType<typeof wireRequest>["messages"][number] | undefined): Block[] {
  const content: unknown = message?.content;
  return Array.isArray(content) ? (content as Block[]) : [];
}

function orderFault({ messages }: ReturnType<typeof wireRequest>): string | null {
  const roles = messages.map(({ role }) => role);
  if (roles.some((role, at) => role !== (at % 2 === 0 ? "user" : "assistant"))) return "roles do not alternate";
  return roles.at(-1) === "user" ? null : "does not end with the user";
}

function emptyFault(blocks: Block[]): string | null {
  if (blocks.length === 0) return "an empty message";
  if (blocks.some(({ type, text }) => type === "text" && (text ?? "").trim() === "")) return "empty text";
  return blocks.some(({ type, content }) => type === "tool_result" && (content ?? "").trim() === "")
    ? "an empty result"
    : null;
}

/** `before`: the message that an answer to calls must answer. */
function pairFault(blocks: Block[], before: Block[]): string | null {
  const results = blocks.filter(({ type }) => type === "tool_result");
  if (blocks.slice(0, results.length).some(({ type }) => type !== "tool_result")) return "text before a result";
  const called = before.flatMap(({ type, id }) => (type === "tool_use" ? [id] : []));
  return called.join() === results.map(({ tool_use_id }) => tool_use_id).join() ? null : "calls and results differ";
}

function callFault(calls: Block[], tools: number): string | null {
  const ids = calls.map(({ id }) => id ?? "");
  if (ids.some((id) => !/^[A-Za-z0-9_-]+$/.test(id)) || new Set(ids).size !== ids.length) return "a bad id";
  const isBad = ({ input }: Block) => typeof input !== "object" || input === null || Array.isArray(input);
  if (calls.some(isBad)) return "bad input";
  return calls.length > 0 && tools === 0 ? "calls without tools" : null;
}

/** What the wire would refuse, or null. Written apart from the code it judges. */
function illegality(body: ReturnType<typeof wireRequest>): string | null {
  const turns = body.messages.map(blocksOf);
  const calls = turns.flat().filter(({ type }) => type === "tool_use");
  const faults = [
    orderFault(body),
    ...turns.map(emptyFault),
    ...turns.map((blocks, at) => (at % 2 === 0 ? pairFault(blocks, turns[at - 1] ?? []) : null)),
    callFault(calls, body.tools?.length ?? 0),
    /\\ud[89a-f]/i.test(JSON.stringify(body)) ? "text that cannot be encoded" : null,
    markers(body).length > 4 ? "too many markers" : null,
  ];
  return faults.find((fault) => fault !== null) ?? null;
}

describe("properties", () => {
  const anyRows = fc.array(anyRow, { maxLength: 12 });
  const anyTools = fc.constantFrom<ToolDefinition[]>([], [tool("f")], [tool("f"), tool("g")]);

  test("whatever rows come in, normalised or not, the wire takes what goes out", () => {
    fc.assert(
      fc.property(anyRows, anyTools, fc.boolean(), (rows, tools, isNormalised) => {
        expect(illegality(wire(isNormalised ? normaliseMessages(rows) : rows, { tools }))).toBeNull();
      }),
      { numRuns: 2000 },
    );
  });

  test("the same rows give the same bytes, no reasoning is in them, and the input never changes", () => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const before = structuredClone(rows);
        const body = JSON.stringify(wire(rows));
        expect(JSON.stringify(wire(structuredClone(rows)))).toBe(body);
        expect(body).not.toContain("never sent");
        expect(rows).toEqual(before);
      }),
    );
  });

  test("nothing that was said is lost", () => {
    const words = fc.array(fc.tuple(fc.boolean(), fc.stringMatching(/^[a-z]{3,8}$/)), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(words, (spoken) => {
        const rows = [...spoken.map(([isUser, word]) => (isUser ? user(word) : assistant(word))), user("last")];
        const texts = wire(rows).messages.flatMap((message) => blocksOf(message).map(({ text }) => text ?? ""));
        for (const [, word] of spoken) expect(texts.join(" ")).toContain(word);
      }),
    );
  });
});

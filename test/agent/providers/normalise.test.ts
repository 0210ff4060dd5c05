/**
 * Legal conversations: the rules one by one, and as properties of any list of rows.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { normaliseMessages } from "../../../src/agent/providers/normalise.js";
import { NO_RESULT, wellFormed } from "../../../src/agent/providers/normalise-row.js";
import type { ChatMessage, ToolCall } from "../../../src/agent/providers/provider.js";

const user = (content: string): ChatMessage => ({ role: "user", content });
const system = (content: string): ChatMessage => ({ role: "system", content });
const call = (id: string, name = "f", args = "{}"): ToolCall => ({ id, name, arguments: args });
const assistant = (content: string, ...toolCalls: ToolCall[]): ChatMessage => ({
  role: "assistant",
  content,
  toolCalls,
});
const result = (toolCallId: string, content = "r", name = "f"): ChatMessage => ({
  role: "tool",
  toolCallId,
  name,
  content,
});

describe("rules", () => {
  test.each<[string, ChatMessage[], ChatMessage[]]>([
    ["users are joined", [user("a"), user("b")], [user("a\n\nb")]],
    [
      "assistants are joined, and calls are kept",
      [user("a"), assistant("x"), assistant("y", call("1")), result("1")],
      [user("a"), assistant("x\n\ny", call("1")), result("1")],
    ],
    ["a trailing assistant goes", [user("a"), assistant("x")], [user("a")]],
    ["an assistant alone becomes a user", [system("s"), assistant("x")], [system("s"), user("x")]],
    [
      "a leading assistant gets a user before it",
      [system("s"), assistant("x"), user("a")],
      [system("s"), user("(continue)"), assistant("x"), user("a")],
    ],
    [
      "orphan and double results go",
      [user("a"), result("9"), assistant("", call("1")), result("1"), result("1", "again")],
      [user("a"), assistant("", call("1")), result("1")],
    ],
    [
      "a call without a result gets one",
      [user("a"), assistant("", call("1")), user("b")],
      [user("a"), assistant("", call("1")), result("1", NO_RESULT), user("b")],
    ],
    [
      "a late result is put behind its call",
      [user("a"), assistant("", call("1"), call("2")), result("2", "two"), user("b"), result("1", "one")],
      [user("a"), assistant("", call("1"), call("2")), result("1", "one"), result("2", "two"), user("b")],
    ],
    [
      "a call without a name goes, and an empty row with it",
      [user("a"), assistant("", call("1", " ")), result("1"), user("b")],
      [user("a\n\nb")],
    ],
    [
      "broken arguments and odd names",
      [user("a"), assistant("", call("1", "read file", '{"pa')), result("1", "e", "read file")],
      [user("a"), assistant("", call("1", "read_file")), result("1", "e", "read_file")],
    ],
    [
      "empty rows",
      [user(" "), assistant("", call("1")), result("1", "")],
      [user("(empty message)"), assistant("", call("1")), result("1", "(completed with no output)")],
    ],
    ["halves of characters", [user("a\ud83d b 😀")], [user("a\ufffd b 😀")]],
  ])("%s", (_name, rows, expected) => {
    expect(normaliseMessages(rows)).toEqual(expected);
  });

  test("one id in one answer and again in the next: each call keeps its own result", () => {
    const rows = [
      user("a"),
      assistant("", call("1"), call("1")),
      result("1", "one"),
      result("1", "two"),
      user("b"),
      assistant("", call("1")),
      result("1", "three"),
    ];
    expect(normaliseMessages(rows)).toEqual([
      user("a"),
      assistant("", call("1"), call("1-2")),
      result("1", "one"),
      result("1-2", "two"),
      user("b"),
      assistant("", call("1-3")),
      result("1-3", "three"),
    ]);
  });

  test("a conversation that is legal is the same object afterwards", () => {
    const rows = [system("s"), user("a"), assistant("x", call("1")), result("1"), assistant("ok"), user("b")];
    expect(normaliseMessages(rows)).toBe(rows);
  });
});

const anyText = fc.constantFrom("", " ", "hello", "a\ud800b", "\udc00", "😀", "x\ny");
const anyCall = fc.record({
  id: fc.constantFrom("", "1", "2", "1-2", "call-1"),
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
  }),
  fc.record({
    role: fc.constant("assistant" as const),
    content: anyText,
    toolCalls: fc.constant<ToolCall[]>([]),
    reasoning: anyText,
  }),
  fc.record({
    role: fc.constant("tool" as const),
    toolCallId: fc.constantFrom("", "1", "2", "1-2", "9"),
    name: fc.constantFrom("f", "g h"),
    content: anyText,
  }),
);

function rowFault(row: ChatMessage): string | null {
  if (JSON.stringify(row) !== wellFormed(JSON.stringify(row)) || /\\ud[89a-f]/.test(JSON.stringify(row))) {
    return "text that cannot be encoded";
  }
  if (row.role !== "assistant") return row.role !== "system" && row.content.trim() === "" ? "an empty row" : null;
  if (row.content === "" && row.toolCalls.length === 0) return "an empty assistant row";
  if (row.toolCalls.some((made) => !/^[A-Za-z0-9_-]{1,64}$/.test(made.name))) return "a bad name";
  return row.toolCalls.every((made) => /^\{.*\}$/.test(JSON.stringify(JSON.parse(made.arguments))))
    ? null
    : "bad arguments";
}

function pairFault(rows: readonly ChatMessage[]): string | null {
  const ids = rows.flatMap((row) => (row.role === "assistant" ? row.toolCalls.map((made) => made.id) : []));
  if (ids.includes("") || new Set(ids).size !== ids.length) return "an id used twice";
  let open: string[] = [];
  for (const row of rows) {
    if (row.role === "tool" && open.shift() !== row.toolCallId) return "a result out of place";
    if (row.role !== "tool" && open.length > 0) return "a call without a result";
    if (row.role === "assistant") open = row.toolCalls.map((made) => made.id);
  }
  return open.length > 0 ? "a call without a result at the end" : null;
}

function orderFault(rows: readonly ChatMessage[]): string | null {
  const roles = rows.filter((row) => row.role !== "system").map((row) => row.role);
  if (roles.length > 0 && roles[0] !== "user") return "does not begin with a user";
  if (roles.at(-1) === "assistant") return "ends with an assistant";
  return / (user user|assistant assistant) /.test(` ${roles.join(" ")} `) ? "two of a kind" : null;
}

/** What is wrong with a conversation, or null. Written apart from the code it judges. */
function illegality(rows: readonly ChatMessage[]): string | null {
  return rows.map(rowFault).find((fault) => fault !== null) ?? pairFault(rows) ?? orderFault(rows);
}

describe("properties", () => {
  const anyRows = fc.array(anyRow, { maxLength: 12 });

  test("whatever comes in, what goes out is legal", () => {
    // System rows between two users keep them apart, so the judge sees the conversation without them.
    fc.assert(
      fc.property(anyRows, (rows) => {
        const spoken = rows.filter((row) => row.role !== "system");
        expect(illegality(normaliseMessages([system("s"), ...spoken]))).toBeNull();
      }),
      { numRuns: 1000 },
    );
  });

  test("the second time nothing changes, and the input never does", () => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const before = structuredClone(rows);
        const once = normaliseMessages(rows);
        expect(normaliseMessages(once)).toBe(once);
        expect(rows).toEqual(before);
      }),
      { numRuns: 1000 },
    );
  });
});

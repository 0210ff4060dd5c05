/** What a model is shown: legal for any rows, and what the reference promises of windows, files, commands and markers. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getHistory, type HistoryMessage, type HistoryOptions } from "../../src/session/history.js";
import type { Row, WireToolCall } from "../../src/session/row.js";
import { assistant, calling, result, user } from "./support.js";

const of = (messages: Row[], options?: HistoryOptions, lastConsolidated = 0): HistoryMessage[] =>
  getHistory({ messages, lastConsolidated }, options);
const short = (messages: HistoryMessage[]): string[] =>
  messages.map((row) => {
    if (row.role === "tool") return `tool:${row.toolCallId}`;
    const calls = row.role === "assistant" ? row.toolCalls.map((call) => `+${call.id}`).join("") : "";
    return `${row.role}:${row.content}${calls}`;
  });

describe("history", () => {
  it("starts at lastConsolidated and there on a user row", () => {
    const rows = [user("old"), assistant("old"), assistant("loose"), user("new"), assistant("answer")];
    expect(short(of(rows, {}, 2))).toEqual(["user:new", "assistant:answer"]);
    expect(of(rows, {}, 5)).toEqual([]);
  });

  it("has no row limit unless asked [T061]", () => {
    expect(of(Array.from({ length: 5000 }, (_, index) => user(String(index))))).toHaveLength(5000);
    expect(of([user("a"), user("b")], { maxMessages: 0, maxTokens: 0 })).toHaveLength(2);
  });

  it("drops results whose call is outside the window, and a group that is cut through [T046, T048]", () => {
    const rows = [user("q"), calling("a", "b"), result("a"), result("b"), user("next"), assistant("yes")];
    expect(short(of(rows, { maxMessages: 4 }))).toEqual(["user:next", "assistant:yes"]);
    expect(short(of(rows.slice(3)))).toEqual(["user:next", "assistant:yes"]);
  });

  it("is empty for nothing but orphan results, and skips only the orphan otherwise [T049]", () => {
    expect(of([result("a"), result("b")])).toEqual([]);
    expect(short(of([user("q"), result("gone"), assistant("yes")]))).toEqual(["user:q", "assistant:yes"]);
  });

  it("brings a long tool turn's user row in beyond the limit, and reaches no further back [T051, T052, T060]", () => {
    const turn = [user("long"), calling("a"), result("a"), calling("b"), result("b"), assistant("end")];
    expect(short(of([user("before"), ...turn], { maxMessages: 3 }))).toEqual([
      "user:long",
      "assistant:+b",
      "tool:b",
      "assistant:end",
    ]);
    expect(short(of([...turn, user("newer"), assistant("x")], { maxMessages: 3 }))).toEqual([
      "user:newer",
      "assistant:x",
    ]);
    expect(short(of(turn, { maxTokens: 1 }))).toEqual(["user:long", "assistant:end"]);
  });

  it("keeps within the token budget by the estimate it is given", () => {
    const rows = Array.from({ length: 10 }, (_, index) => user(`message ${index}`));
    expect(of(rows, { maxTokens: 42, estimate: () => 10 })).toHaveLength(3);
    expect(of(rows, { maxTokens: 41, estimate: () => 10 })).toHaveLength(2);
  });

  it("leaves an unanswered call out, and its row if nothing else is in it", () => {
    const half: Row = { ...calling("a", "b"), content: "looking" };
    expect(short(of([user("q"), half, result("b"), calling("c")]))).toEqual([
      "user:q",
      "assistant:looking+b",
      "tool:b",
    ]);
  });

  it("puts a result that came late behind its call", () => {
    const wait: Row = { role: "wait", content: null, call_id: "a", wait_id: "w", until: 1 };
    expect(short(of([user("q"), calling("a"), wait, user("and?"), assistant("soon"), result("a")]))).toEqual([
      "user:q",
      "assistant:+a",
      "tool:a",
      "user:and?",
      "assistant:soon",
    ]);
  });

  it("keeps rounds apart whose provider reuses call ids, and drops a call repeated in one answer", () => {
    const rows = [
      user("q"),
      calling("c0", "c0"),
      result("c0", "one"),
      result("c0", "twice"),
      calling("c0"),
      result("c0", "two"),
    ];
    const history = of(rows);
    expect(short(history)).toEqual(["user:q", "assistant:+c0", "tool:c0", "assistant:+c0~2", "tool:c0~2"]);
    expect(history.map((row) => row.content)).toEqual(["q", "", "one", "", "two"]);
  });

  it("never shows command, wait and system rows [T058]", () => {
    const rows: Row[] = [
      { ...user("/status"), _command: true },
      { ...assistant("all well"), _command: true },
      { role: "system", content: "stale prompt" },
      user("hello"),
    ];
    expect(short(of(rows))).toEqual(["user:hello"]);
  });

  it("names attached files in lines, also where there are only files [T055]", () => {
    const file = { path: "b/report.pdf", mime: "application/pdf", name: "report.pdf", bytes: 3 };
    const rows: Row[] = [
      { role: "user", content: "see", media: ["a/cat.PNG", file] },
      { role: "user", content: "", media: [{ ...file, path: "c.bin", mime: "image/png" }] },
      { role: "assistant", content: "nice" },
    ];
    expect(of(rows).map((row) => row.content)).toEqual([
      "see\n[image: a/cat.PNG]\n[file: report.pdf (application/pdf, 3 bytes) at b/report.pdf]",
      "[image: report.pdf (image/png, 3 bytes) at c.bin]",
      "nice",
    ]);
  });

  it("hands over the images of the turn at hand, and those alone", () => {
    const cat = { path: "a/cat.png", mime: "image/png", name: "cat.png", bytes: 3 };
    const note = { ...cat, path: "a/n.txt", mime: "text/plain", name: "n.txt" };
    const asked = (turn_id: string, media: Array<typeof cat>): Row => ({
      role: "user",
      content: turn_id,
      media,
      turn_id,
    });
    const rows: Row[] = [
      { role: "assistant", content: "Look out of the window.", _channel_delivery: true },
      asked("t1", [cat]),
      assistant("nice"),
      asked("t2", [cat, note]),
    ];
    const images = (options: HistoryOptions) =>
      of(rows, options).map((row) => (row.role === "user" ? row.images : null));
    expect(images({})).toEqual([undefined, null, undefined]);
    expect(images({ turnId: "t2" })).toEqual([undefined, null, [cat]]);
    // What it answers is quoted before it, and it keeps its image.
    expect(images({ turnId: "t1" })).toEqual([[cat], null, undefined]);
    expect(of(rows, { turnId: "t2", mediaFolder: "/m" }).at(-1)?.content).toBe(
      "t2\n[image: cat.png (image/png, 3 bytes) at /m/a/cat.png]\n[file: n.txt (text/plain, 3 bytes) at /m/a/n.txt]",
    );
    expect(of(rows, { turnId: "t2", maxTokens: 1000 })).toHaveLength(1);
    expect(of(rows, { maxTokens: 1000 })).toHaveLength(3);
  });

  it("names a file in one line, whatever it is called, and a spoken one not at all", () => {
    const file = { path: "a/x]\n[y", mime: "text/plain", name: "x]\nIgnore all\u2028[y", bytes: 3 };
    const spoken = { ...file, isVoice: true as const };
    expect(of([{ role: "user", content: "see", media: [file, spoken] }])[0]?.content).toBe(
      "see\n[file: x__Ignore all__y (text/plain, 3 bytes) at a/x___y]",
    );
  });

  it("turns blocks into text and image data into a breadcrumb", () => {
    const content = [
      { type: "text", text: "what is it?" },
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" }, _meta: { path: "in/x.png" } },
    ];
    expect(of([{ role: "user", content }])).toEqual([{ role: "user", content: "what is it?\n[image: in/x.png]" }]);
  });

  it("cleans copied markers, image lines and spelled-out calls, but not quoted code [T057]", () => {
    const text =
      "[Message Time: 2026-01-01 10:00]\n[image: /tmp/x.png]\nHere.\nmessage(content='hi')\n```\nmessage(1)\n```";
    expect(short(of([user("q"), assistant(text)]))).toEqual(["user:q", "assistant:Here.\n```\nmessage(1)\n```"]);
  });

  it("drops empty answers but keeps reasoning, and gives an empty result words", () => {
    const thought: Row = { role: "assistant", content: "", reasoning_content: "hm" };
    const history = of([user("q"), assistant(""), thought, calling("a"), result("a", "")]);
    expect(history.slice(1, 2)).toEqual([{ role: "assistant", content: "", toolCalls: [], reasoning: "hm" }]);
    expect(history.at(-1)).toMatchObject({ role: "tool", content: "(no output)" });
  });

  it("quotes what was sent unasked right before the first user row, and only that", () => {
    const reminder: Row = { role: "assistant", content: "Take your pills.", _channel_delivery: true };
    expect(short(of([reminder, user("done")]))).toEqual([
      "user:[Your message before this one: Take your pills.]\n\ndone",
    ]);
    expect(short(of([reminder, assistant("more"), user("done")]))).toEqual(["user:done"]);
    expect(short(of([assistant("said"), user("done")]))).toEqual(["user:done"]);
  });

  it("shows no stored time [T054]", () => {
    const rows = [user("q"), calling("a"), result("a"), assistant("x")].map((row) => ({
      ...row,
      timestamp: "2031-05-06T07:08:09Z",
    }));
    expect(JSON.stringify(of(rows))).not.toContain("2031");
  });
});

const id = fc.constantFrom("a", "b", "c", "a~2", "");
const words = fc.oneof(
  fc.constantFrom("", "message(x)", "[image: y]", "[Message Time: z] w", "```"),
  fc.string({ maxLength: 12 }),
);
const call: fc.Arbitrary<WireToolCall> = id.map((name) => ({
  id: name,
  type: "function",
  function: { name, arguments: "{}" },
}));
const flags = { _command: fc.boolean(), _channel_delivery: fc.boolean() };
const anyRow: fc.Arbitrary<Row> = fc.oneof(
  fc.record({ role: fc.constant("user" as const), content: words, media: fc.array(fc.string(), { maxLength: 1 }) }),
  fc.record({
    role: fc.constant("assistant" as const),
    content: words,
    tool_calls: fc.array(call, { maxLength: 3 }),
    ...flags,
  }),
  fc.record({ role: fc.constant("assistant" as const), content: fc.constant(null), reasoning_content: words }),
  fc.record(
    { role: fc.constant("tool" as const), content: words, tool_call_id: id },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record({
    role: fc.constant("wait" as const),
    content: fc.constant(null),
    call_id: id,
    wait_id: id,
    until: fc.nat(),
  }),
  fc.record({ role: fc.constant("system" as const), content: words }),
);

/** What is wrong with a conversation, by the rules of the providers. */
function faultsOf(history: readonly HistoryMessage[]): string[] {
  const faults: string[] = [];
  const seen = new Set<string>();
  let open = new Set<string>();
  const check = (isWrong: boolean, fault: string): void => void (isWrong && faults.push(fault));
  check(history.length > 0 && history[0]?.role !== "user", "does not start with a user row");
  for (const row of history) {
    if (row.role === "tool") {
      check(!open.delete(row.toolCallId), "orphan or second result");
      continue;
    }
    check(open.size > 0, "calls without a result");
    const ids = row.role === "assistant" ? row.toolCalls.map((made) => made.id) : [];
    open = new Set(ids);
    check(open.size !== ids.length || ids.some((made) => seen.has(made)), "call id used twice");
    for (const made of ids) seen.add(made);
  }
  check(open.size > 0, "ends with calls without a result");
  return faults;
}

const asRow = (row: HistoryMessage): Row => {
  if (row.role === "user") return row;
  if (row.role === "tool") return { role: "tool", tool_call_id: row.toolCallId, content: row.content };
  const tool_calls = row.toolCalls.map(({ id: name, ...made }) => ({
    id: name,
    type: "function" as const,
    function: made,
  }));
  return { role: "assistant", content: row.content, tool_calls, reasoning_content: row.reasoning ?? "" };
};

describe("history of any rows", () => {
  const rows = fc.array(anyRow, { maxLength: 25 });
  const options = fc.record({ maxMessages: fc.nat(12), maxTokens: fc.nat(60) });

  it("is legal, changes nothing, and is the same each time [T067]", () => {
    fc.assert(
      fc.property(rows, options, fc.nat(25), (messages, limits, from) => {
        const before = structuredClone(messages);
        const lastConsolidated = Math.min(from, messages.length);
        const history = of(messages, limits, lastConsolidated);
        expect(faultsOf(history)).toEqual([]);
        expect(messages).toEqual(before);
        expect(of(messages, limits, lastConsolidated)).toEqual(history);
      }),
      { numRuns: 1000 },
    );
  });

  it("is its own history", () => {
    fc.assert(
      fc.property(rows, (messages) => {
        const history = of(messages);
        expect(of(history.map(asRow))).toEqual(history);
      }),
      { numRuns: 1000 },
    );
  });
});

/**
 * Batches of tool calls in the runner: order, what runs beside what, waiting calls, aborts, repeats, and bounds.
 */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { runAgent } from "../../src/agent/runner.js";
import type { Tool, ToolResult } from "../../src/agent/tools/tool.js";
import { brief, inputFor, run } from "./run-helpers.js";
import { call, calls, scripted, text } from "./scripted-provider.js";

/** A tool whose calls end when the test says so, and that notes what runs at once. */
function gated(name: string, isReadOnly: boolean, trace: string[]) {
  const gates = new Map<string, (result: ToolResult) => void>();
  const tool: Tool<{ id: string }> = {
    name,
    description: name,
    input: z.strictObject({ id: z.string() }),
    isReadOnly,
    run: ({ id }) => {
      trace.push(`begin ${id}`);
      return new Promise((resolve) => {
        gates.set(id, (result) => {
          trace.push(`end ${id}`);
          resolve(result);
        });
      });
    },
  };
  const open = async (id: string) => {
    while (!gates.has(id)) await new Promise((resolve) => setImmediate(resolve));
    gates.get(id)?.({ type: "done", text: id, isError: false });
  };
  return { tool, open };
}

function fixed(result: ToolResult, name = "fixed"): Tool<{ n?: number | undefined }> {
  return {
    name,
    description: name,
    input: z.strictObject({ n: z.number().optional() }),
    isReadOnly: true,
    run: async () => result,
  };
}

const done = (said: string): ToolResult => ({ type: "done", text: said, isError: false });

describe("batches", () => {
  test("read-only neighbours run beside each other, others alone, and results keep the order of calls", async () => {
    const trace: string[] = [];
    const read = gated("read", true, trace);
    const write = gated("write", false, trace);
    const batch = calls(
      call("read", { id: "r1" }, "r1"),
      call("read", { id: "r2" }, "r2"),
      call("write", { id: "w" }, "w"),
      call("read", { id: "r3" }, "r3"),
    );
    const running = run(inputFor(scripted(batch, text("ok")), { tools: [read.tool, write.tool] }));
    await read.open("r2");
    await read.open("r1");
    await write.open("w");
    await read.open("r3");
    const { events } = await running;
    expect(trace).toEqual(["begin r1", "begin r2", "end r2", "end r1", "begin w", "end w", "begin r3", "end r3"]);
    expect(brief(events).filter((line) => line.includes("start") || line.includes("result"))).toEqual([
      "1 start r1",
      "1 start r2",
      "1 result r1",
      "1 result r2",
      "1 start w",
      "1 result w",
      "1 start r3",
      "1 result r3",
    ]);
  });

  test("ids that repeat are told apart", async () => {
    const batch = calls(call("fixed", { n: 1 }, "x"), call("fixed", { n: 2 }, "x"));
    const { events } = await run(inputFor(scripted(batch, text("ok")), { tools: [fixed(done("y"))] }));
    expect(brief(events).filter((line) => line.includes("result"))).toEqual(["1 result x", "1 result x-2"]);
  });

  test("a waiting call parks the run after all others of its batch are finished", async () => {
    const wait: Tool<{ n?: number | undefined }> = fixed({ type: "wait", waitId: "w9", untilMs: 5 }, "ask");
    const batch = calls(call("ask", {}, "q"), call("fixed", { n: 1 }, "a"), call("fixed", { n: 2 }, "b"));
    const input = inputFor(scripted(batch), { tools: [wait, fixed(done("y"))] });
    const { events, result } = await run(input);
    expect(brief(events).slice(-3)).toEqual(["1 result a", "1 result b", "1 parked q"]);
    expect(events.at(-1)).toMatchObject({ waits: [{ waitId: "w9", untilMs: 5 }] });
    expect(result).toMatchObject({ stop: "parked", text: "" });
  });

  test("wrong arguments and unknown tools are answered, not run, and the model may go on", async () => {
    const batch = calls(call("fixed", "[1]", "a"), call("fixe", {}, "b"), call("fixed", "{broken", "c"));
    const { events, result } = await run(inputFor(scripted(batch, text("ok")), { tools: [fixed(done("y"))] }));
    const results = events.filter((event) => event.type === "tool_result");
    expect(results.map((event) => event.isError)).toEqual([true, true, true]);
    expect(results.map((event) => event.text).join("\n")).toMatch(/a list.*Did you mean "fixed"\?.*not valid JSON/s);
    expect(result.text).toBe("ok");
  });

  test("the same call a third time in a row is refused; another call between makes it new", async () => {
    let runs = 0;
    const run1 = async () => {
      runs += 1;
      return done("y");
    };
    const counting = { ...fixed(done("y")), run: run1 };
    const same = (id: string) => calls(call("fixed", '{"n":1}', id));
    const spaced = (id: string) => calls(call("fixed", '{ "n": 1 }', id));
    const other = calls(call("fixed", { n: 2 }, "o"));
    const provider = scripted(same("a"), spaced("b"), same("c"), other, same("d"), text("ok"));
    const { events } = await run(inputFor(provider, { tools: [counting] }));
    expect(brief(events).filter((line) => /result|error/.test(line))).toEqual([
      "1 result a",
      "2 result b",
      "3 error c",
      "4 result o",
      "5 result d",
    ]);
    expect(runs).toBe(4);
  });
});

describe("results", () => {
  const textOf = async (result: ToolResult) => {
    const provider = scripted(calls(call("fixed", {}, "a")), text("ok"));
    const { events } = await run(inputFor(provider, { tools: [fixed(result)], toolResultMaxChars: 200 }));
    return events.find((event) => event.type === "tool_result");
  };

  test("an empty result gets a marker, and output that begins with Error is no error", async () => {
    expect(await textOf(done(""))).toMatchObject({ text: "(completed with no output)", isError: false });
    expect(await textOf(done("Error: 0 found"))).toMatchObject({ text: "Error: 0 found", isError: false });
  });

  test("a long result is cut at the limit with a visible mark, not inside a character", async () => {
    const result = await textOf(done("😀".repeat(500)));
    expect(result?.type === "tool_result" && result.text.length).toBeLessThanOrEqual(200);
    expect(result?.type === "tool_result" && result.text).toMatch(
      /^(😀)+\n\[cut here: the result has 1000 characters/u,
    );
  });

  test("a tool that throws is a failed call with a hint, not the end of the turn", async () => {
    const thrower = { ...fixed(done("")), run: async () => Promise.reject(new Error("disk on fire")) };
    const { events, result } = await run(
      inputFor(scripted(calls(call("fixed", {}, "a")), text("ok")), { tools: [thrower] }),
    );
    const said = events.find((event) => event.type === "tool_result");
    expect(said).toMatchObject({ isError: true, text: expect.stringMatching(/disk on fire.*another way/s) });
    expect(result.text).toBe("ok");
  });
});

describe("aborts", () => {
  test("an abort reaches the tool, and a tool that ignores it holds nobody up", async () => {
    const controller = new AbortController();
    const reason = new Error("stopped");
    let seen: AbortSignal | undefined;
    const deaf: Tool<{ n?: number | undefined }> = {
      ...fixed(done("")),
      run: (_input, context) => {
        seen = context.signal;
        return new Promise(() => undefined);
      },
    };
    const running = runAgent(
      inputFor(scripted(calls(call("fixed", {}, "a"))), { tools: [deaf], signal: controller.signal }),
    );
    await running.next();
    await running.next();
    const waiting = running.next();
    while (seen === undefined) await new Promise((resolve) => setImmediate(resolve));
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(seen.aborted).toBe(true);
  });

  test("nothing is started before the consumer took every tool_start of its group", async () => {
    const trace: string[] = [];
    const read = gated("read", true, trace);
    const batch = calls(call("read", { id: "r1" }, "r1"), call("read", { id: "r2" }, "r2"));
    const running = runAgent(inputFor(scripted(batch), { tools: [read.tool] }));
    await running.next();
    await running.next();
    await running.next();
    expect(trace).toEqual([]);
    await running.return({ stop: "completed", text: "", usage: null });
    expect(trace).toEqual([]);
  });
});

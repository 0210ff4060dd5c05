/**
 * The runner with scripted answers: the order of its events, its recoveries, its limits. No network, no files.
 */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type ChatMessage, ProviderError, type ProviderEvent } from "../../src/agent/providers/provider.js";
import { runAgent } from "../../src/agent/runner.js";
import type { Tool } from "../../src/agent/tools/tool.js";
import { brief, inputFor, run } from "./run-helpers.js";
import { call, calls, scripted, text } from "./scripted-provider.js";

const echo: Tool<{ word: string }> = {
  name: "echo",
  description: "says it again",
  input: z.strictObject({ word: z.string() }),
  isReadOnly: true,
  run: async ({ word }) => ({ type: "done", text: word, isError: false }),
};

function cutOff(part: string): ProviderEvent[] {
  return [
    { type: "text", text: part },
    { type: "finish", reason: "length", usage: null },
  ];
}

function lastUser(messages: readonly ChatMessage[] | undefined): string {
  return messages?.findLast((row) => row.role === "user")?.content ?? "";
}

describe("answers", () => {
  test("an answer is streamed, told whole, and ends the run", async () => {
    const { events, result } = await run(inputFor(scripted(text("Hel", "lo"))));
    expect(brief(events)).toEqual(['1 text "Hel"', '1 text "lo"', '1 final "Hello"']);
    expect(result).toEqual({
      stop: "completed",
      text: "Hello",
      usage: { inputTokens: 10, outputTokens: 5, estimated: false },
    });
  });

  test("a tool's result goes back to the model, and usage is summed and marked where it is estimated", async () => {
    const provider = scripted(calls(call("echo", { word: "hi" }, "a")), text("done"));
    const { events, result } = await run(inputFor(provider, { tools: [echo] }));
    expect(brief(events)).toEqual(['1 calls ""', "1 start a", "1 result a", '2 text "done"', '2 final "done"']);
    expect(provider.requests[1]?.messages.slice(2)).toEqual([
      { role: "assistant", content: "", toolCalls: [call("echo", { word: "hi" }, "a")] },
      { role: "tool", toolCallId: "a", name: "echo", content: "hi" },
    ]);
    expect(result.usage?.estimated).toBe(true);
    expect(result.usage?.inputTokens).toBeGreaterThan(10);
  });

  test("messages taken in after tools and after a final answer go to the model; the answer before stays", async () => {
    const provider = scripted(calls(call("echo", { word: "x" }, "a")), text("one"), text("two"));
    const pending: Record<string, ChatMessage[][]> = {
      after_tools: [[{ role: "user", content: "steered" }]],
      after_final: [[{ role: "user", content: "and now?" }]],
    };
    const takeIn = async (where: string) => pending[where]?.shift() ?? [];
    const { events, result } = await run(inputFor(provider, { tools: [echo], takeIn }));
    expect(brief(events).filter((line) => / (calls|final) /.test(line))).toEqual([
      '1 calls ""',
      '2 final "one"',
      '3 final "two"',
    ]);
    expect(lastUser(provider.requests[1]?.messages)).toBe("steered");
    expect(provider.requests[2]?.messages.slice(-2)).toEqual([
      { role: "assistant", content: "one", toolCalls: [] },
      { role: "user", content: "and now?" },
    ]);
    expect(result).toMatchObject({ stop: "completed", text: "two" });
  });

  test("a resumed run goes on counting steps, and the input is never changed", async () => {
    const input = inputFor(scripted(text("ok")), { firstStep: 7 });
    const before = structuredClone(input.messages);
    const { events } = await run(input);
    expect(brief(events)).toEqual(['7 text "ok"', '7 final "ok"']);
    expect(input.messages).toEqual(before);
  });
});

describe("recoveries", () => {
  test("a blank answer is asked again in silence, and shows nothing", async () => {
    const { events } = await run(inputFor(scripted(text(" \n"), text("yes"))));
    expect(brief(events)).toEqual(['1 text "yes"', '1 final "yes"']);
  });

  test("reasoning alone is blank; what was shown of it is void before the second try", async () => {
    const { events } = await run(inputFor(scripted(text("<think>hm"), text("yes"))));
    expect(brief(events)).toEqual(['1 reasoning "hm"', "1 void", '1 text "yes"', '1 final "yes"']);
  });

  test("blank twice: one request for words alone, then a fixed sentence", async () => {
    const provider = scripted(text(""), text(""), text(""));
    const { events, result } = await run(inputFor(provider, { tools: [echo] }));
    expect(provider.requests.map((request) => request.toolChoice)).toEqual(["auto", "auto", "none"]);
    expect(lastUser(provider.requests[1]?.messages)).toBe("hello");
    expect(lastUser(provider.requests[2]?.messages)).toMatch(/Answer the user now/);
    expect(result.stop).toBe("empty_final");
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ type: "assistant", isFinal: true, content: result.text });
    expect(result.text).not.toBe("");
  });

  test("a blank answer after tools counts from anew", async () => {
    const provider = scripted(text(""), calls(call("echo", { word: "x" }, "a")), text(""), text("fine"));
    const { result } = await run(inputFor(provider, { tools: [echo] }));
    expect(result).toMatchObject({ stop: "completed", text: "fine" });
  });

  test("a filtered blank answer is not asked again", async () => {
    const provider = scripted([{ type: "finish", reason: "content_filter", usage: null }]);
    const { result } = await run(inputFor(provider));
    expect(provider.requests).toHaveLength(1);
    expect(result.stop).toBe("empty_final");
    expect(result.text).toMatch(/content filter/);
  });

  test("an answer that was cut off is continued in one step, its spaces kept", async () => {
    const provider = scripted(cutOff("one two "), cutOff("three "), text("four"));
    const { events, result } = await run(inputFor(provider));
    expect(brief(events)).toEqual([
      '1 text "one two "',
      '1 text "three "',
      '1 text "four"',
      '1 final "one two three four"',
    ]);
    expect(provider.requests[2]?.messages.at(-2)).toMatchObject({ role: "assistant", content: "one two three " });
    expect(lastUser(provider.requests[2]?.messages)).toContain("one two three ");
    expect(result).toMatchObject({ stop: "completed", text: "one two three four" });
  });

  test("continuations are at most three, and what there is then is the answer", async () => {
    const provider = scripted(cutOff("a"), cutOff("b"), cutOff("c"), cutOff("d"));
    const { result } = await run(inputFor(provider));
    expect(result).toMatchObject({ stop: "completed", text: "abcd" });
  });

  test("a blank answer that was cut off is continued, too", async () => {
    const provider = scripted(cutOff("<think>long"), text("short"));
    const { result } = await run(inputFor(provider));
    expect(result).toMatchObject({ stop: "completed", text: "short" });
    expect(provider.requests[1]?.toolChoice).toBe("auto");
  });

  test("calls without a name are dropped; all of them: one try with a note, then words alone", async () => {
    const nameless = calls({ id: "x", name: " ", arguments: "{}" });
    const provider = scripted(nameless, nameless, text("well"));
    const { result } = await run(inputFor(provider, { tools: [echo] }));
    expect(lastUser(provider.requests[1]?.messages)).toMatch(/without naming it/);
    expect(provider.requests[2]?.toolChoice).toBe("none");
    expect(result.text).toBe("well");
  });

  test("calls under any other finish reason are not run", async () => {
    let runs = 0;
    const counting: Tool<{ word: string }> = {
      ...echo,
      run: async () => {
        runs += 1;
        return { type: "done", text: "", isError: false };
      },
    };
    const filtered: ProviderEvent[] = [
      { type: "text", text: "partly" },
      { type: "tool_call", call: call("echo", { word: "x" }) },
      { type: "finish", reason: "content_filter", usage: null },
    ];
    const { events, result } = await run(inputFor(scripted(filtered), { tools: [counting] }));
    expect(runs).toBe(0);
    expect(events.at(-1)).toMatchObject({ type: "assistant", toolCalls: [], isFinal: true });
    expect(result.text).toBe("partly");
  });
});

describe("limits and failures", () => {
  const busy = (id: string) => calls(call("echo", { word: id }, id));

  test("at the iteration limit messages are taken in and the model closes without tools", async () => {
    const provider = scripted(busy("a"), busy("b"), text("so far so good"));
    const asked: string[] = [];
    const takeIn = async (where: string): Promise<ChatMessage[]> => {
      asked.push(where);
      return where === "at_limit" ? [{ role: "user", content: "late" }] : [];
    };
    const { events, result } = await run(inputFor(provider, { tools: [echo], maxIterations: 2, takeIn }));
    expect(asked).toEqual(["after_tools", "after_tools", "at_limit"]);
    expect(provider.requests[2]?.toolChoice).toBe("none");
    expect(provider.requests[2]?.messages.at(-2)).toEqual({ role: "user", content: "late" });
    expect(brief(events).at(-1)).toBe('3 final "so far so good"');
    expect(result).toMatchObject({ stop: "max_iterations", text: "so far so good" });
  });

  test("when closing fails, a sentence names the limit", async () => {
    const broken = new ProviderError("PROVIDER_SERVER", "down");
    const { events, result } = await run(inputFor(scripted(busy("a"), broken), { tools: [echo], maxIterations: 1 }));
    expect(result.stop).toBe("max_iterations");
    expect(result.text).toContain("limit of 1 model calls");
    expect(brief(events)).not.toContain("2 void");
  });

  test("a provider's error goes to the caller as it is", async () => {
    const broken = new ProviderError("PROVIDER_AUTH", "no");
    await expect(run(inputFor(scripted(broken)))).rejects.toBe(broken);
  });

  test("a stream without a finish is an error, not an answer", async () => {
    const silent: ProviderEvent[] = [{ type: "text", text: "half" }];
    await expect(run(inputFor(scripted(silent)))).rejects.toMatchObject({ code: "PROVIDER_INCOMPLETE" });
  });

  test("what takeIn throws ends the run", async () => {
    const lost = new Error("lease lost");
    const takeIn = async () => Promise.reject(lost);
    await expect(run(inputFor(scripted(text("hi")), { takeIn }))).rejects.toBe(lost);
  });

  test("an abort ends a provider that does not listen, with the signal's reason", async () => {
    const controller = new AbortController();
    const reason = new Error("stopped");
    const deaf = async function* (): AsyncGenerator<ProviderEvent> {
      yield { type: "text", text: "a" };
      await new Promise(() => undefined);
    };
    const running = runAgent(inputFor(scripted(deaf), { signal: controller.signal }));
    expect((await running.next()).value).toMatchObject({ type: "text" });
    const waiting = running.next();
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });

  test("a consumer that walks away ends the provider's stream", async () => {
    let seen: AbortSignal | undefined;
    const endless = async function* (signal: AbortSignal): AsyncGenerator<ProviderEvent> {
      seen = signal;
      while (true) yield { type: "text", text: "x" };
    };
    for await (const _event of runAgent(inputFor(scripted(endless)))) break;
    expect(seen?.aborted).toBe(true);
  });
});

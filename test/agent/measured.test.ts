/** Timed providers and tools: every call is counted once under the outcome it had, and nothing else about it changes. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { withModelMetrics } from "../../src/agent/providers/measured.js";
import { type Provider, ProviderError, type ProviderEvent } from "../../src/agent/providers/provider.js";
import { withToolMetrics } from "../../src/agent/tools/measured.js";
import type { Tool, ToolResult } from "../../src/agent/tools/tool.js";
import { KeptMetrics } from "../fakes/kept-metrics.js";
import { type Script, scripted, text } from "./scripted-provider.js";

const REQUEST = { model: "m", messages: [], tools: [], toolChoice: "auto", maxOutputTokens: 10 } as const;

function measured(...scripts: Script[]) {
  const metrics = new KeptMetrics();
  const inner: Provider = scripted(...scripts);
  const providers = withModelMetrics({ resolve: () => ({ provider: inner, model: "m", label: "m" }) }, metrics);
  return { metrics, provider: providers.resolve().provider, again: () => providers.resolve().provider };
}

async function read(provider: Provider, signal = new AbortController().signal): Promise<ProviderEvent[]> {
  const events: ProviderEvent[] = [];
  for await (const event of provider.stream(REQUEST, signal)) events.push(event);
  return events;
}

describe("a model call", () => {
  it("that succeeds: its first piece and its end, the events unchanged", async () => {
    const { metrics, provider } = measured(text("a", "b"));
    expect(await read(provider)).toEqual(text("a", "b"));
    expect(metrics.reports.map(({ name, labels }) => [name, labels])).toEqual([
      ["model_first_byte_seconds", { provider: "scripted" }],
      ["model_call_seconds", { provider: "scripted", outcome: "ok" }],
    ]);
  });

  it("that fails: its code, and the error unchanged", async () => {
    const error = new ProviderError("PROVIDER_RATE_LIMITED", "busy");
    const { metrics, provider } = measured(error);
    await expect(read(provider)).rejects.toBe(error);
    expect(metrics.labelsOf("model_call_seconds")).toEqual([
      { provider: "scripted", outcome: "PROVIDER_RATE_LIMITED" },
    ]);
    expect(metrics.labelsOf("model_first_byte_seconds")).toEqual([]);
  });

  it("that is aborted, or whose reader walks away", async () => {
    const stop = new AbortController();
    const { metrics, provider } = measured((signal) => abortedAfterOne(signal, stop), text("a", "b"));
    await expect(read(provider, stop.signal)).rejects.toThrow("stop");
    for await (const _ of provider.stream(REQUEST, new AbortController().signal)) break;
    expect(metrics.labelsOf("model_call_seconds").map(({ outcome }) => outcome)).toEqual(["aborted", "aborted"]);
  });

  it("goes through one provider, however often it is resolved", () => {
    const { provider, again } = measured();
    expect(again()).toBe(provider);
  });
});

async function* abortedAfterOne(signal: AbortSignal, stop: AbortController): AsyncGenerator<ProviderEvent> {
  yield { type: "text", text: "a" };
  stop.abort(new Error("stop"));
  signal.throwIfAborted();
}

function tool(run: () => Promise<ToolResult>): Tool<object> {
  return { name: "look", description: "", input: z.object({}), isReadOnly: true, run };
}

describe("a tool call", () => {
  const stopped = new AbortController();
  stopped.abort(new Error("stop"));
  const fails = async () => {
    throw new Error("no");
  };
  it.each([
    ["ok", async () => ({ type: "done", text: "", isError: false }) as const, new AbortController().signal],
    ["error", async () => ({ type: "done", text: "", isError: true }) as const, new AbortController().signal],
    ["wait", async () => ({ type: "wait", waitId: "w", untilMs: 0 }) as const, new AbortController().signal],
    ["error", fails, new AbortController().signal],
    ["aborted", fails, stopped.signal],
  ])("ends as %s", async (outcome, run, signal) => {
    const metrics = new KeptMetrics();
    const outcomes = await Promise.allSettled([
      withToolMetrics(tool(run), metrics).run({}, { signal, callId: "c" }),
      tool(run).run({}, { signal, callId: "c" }),
    ]);
    expect(outcomes[0]).toEqual(outcomes[1]);
    expect(metrics.labelsOf("tool_call_seconds")).toEqual([{ tool: "look", outcome }]);
  });
});

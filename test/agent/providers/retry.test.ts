/**
 * Retries: when, how often, how long the waits are, and when never.
 */
import { expect, test } from "vitest";
import { sleepMs } from "../../../src/agent/providers/abort.js";
import { ProviderError, type ProviderEvent } from "../../../src/agent/providers/provider.js";
import { withRetries } from "../../../src/agent/providers/retry.js";
import { quietLogger } from "../run-helpers.js";
import { type Script, scripted, text } from "../scripted-provider.js";

const busy = (options: ProviderError["options"] = {}) => new ProviderError("PROVIDER_RATE_LIMITED", "busy", options);

async function play(answers: Script[], signal = new AbortController().signal) {
  const waits: number[] = [];
  const lines: string[] = [];
  const provider = scripted(...answers);
  const retrying = withRetries(provider, {
    delaysMs: [1000, 2000, 4000],
    logger: quietLogger(lines),
    sleep: async (durationMs) => {
      waits.push(durationMs);
    },
  });
  const request = { model: "m", messages: [], tools: [], toolChoice: "auto" as const, maxOutputTokens: 1 };
  const seen: ProviderEvent[] = [];
  let error: unknown = null;
  try {
    for await (const event of retrying.stream(request, signal)) seen.push(event);
  } catch (thrown) {
    error = thrown;
  }
  return { seen, error, waits, tries: provider.requests.length, lines };
}

test("a transient failure, then an answer", async () => {
  const { seen, error, waits } = await play([busy(), text("ok")]);
  expect(error).toBeNull();
  expect(seen[0]).toEqual({ type: "text", text: "ok" });
  expect(waits).toEqual([1000]);
});

test("four tries, then the last error", async () => {
  const last = busy();
  const { error, waits, tries, lines } = await play([busy(), busy(), busy(), last]);
  expect(error).toBe(last);
  expect(waits).toEqual([1000, 2000, 4000]);
  expect(tries).toBe(4);
  expect(lines.filter((line) => line.includes("tried again"))).toHaveLength(3);
});

test("what will not pass is not repeated", async () => {
  const { tries } = await play([new ProviderError("PROVIDER_AUTH", "no"), text("ok")]);
  expect(tries).toBe(1);
  expect((await play([busy({ isTransient: false }), text("ok")])).tries).toBe(1);
});

test("a wait the provider asks for is kept exactly, and a long one is not begun", async () => {
  expect((await play([busy({ retryAfterMs: 7 }), text("ok")])).waits).toEqual([7]);
  expect((await play([busy({ retryAfterMs: 60_000 }), text("ok")])).waits).toEqual([60_000]);
  const tooLong = busy({ retryAfterMs: 60_001 });
  expect(await play([tooLong, text("ok")])).toMatchObject({ error: tooLong, waits: [], tries: 1 });
});

test.each<ProviderEvent>([
  { type: "text", text: "a" },
  { type: "reasoning", text: "a" },
  { type: "tool_call", call: { id: "1", name: "f", arguments: "{}" } },
])("nothing is repeated once $type was seen", async (event) => {
  const failing = async function* (): AsyncGenerator<ProviderEvent> {
    yield event;
    throw busy();
  };
  const { seen, error, tries } = await play([failing, text("ok")]);
  expect(seen).toEqual([event]);
  expect(error).toMatchObject({ code: "PROVIDER_RATE_LIMITED" });
  expect(tries).toBe(1);
});

test("an abort ends a wait at once, with its reason", async () => {
  const controller = new AbortController();
  const reason = new Error("stopped");
  const retrying = withRetries(scripted(busy(), text("ok")), {
    delaysMs: [60_000],
    logger: quietLogger(),
    sleep: (durationMs, signal) => {
      queueMicrotask(() => controller.abort(reason));
      return sleepMs(durationMs, signal);
    },
  });
  const request = { model: "m", messages: [], tools: [], toolChoice: "auto" as const, maxOutputTokens: 1 };
  const first = retrying.stream(request, controller.signal)[Symbol.asyncIterator]().next();
  await expect(first).rejects.toBe(reason);
});

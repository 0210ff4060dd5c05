/**
 * Fallback models: when the next one is asked and when never, the first one's breaker, and what is logged.
 */
import { describe, expect, test } from "vitest";
import { withFallbacks } from "../../../src/agent/providers/fallback.js";
import { ProviderError, type ProviderErrorCode, type ProviderEvent } from "../../../src/agent/providers/provider.js";
import type { Providers, ResolvedModel } from "../../../src/agent/providers/registry.js";
import { ERROR_ADVICE } from "../../../src/errors.js";
import { ManualClock } from "../../fakes/manual-clock.js";
import { quietLogger } from "../run-helpers.js";
import { type Script, type ScriptedProvider, scripted, text } from "../scripted-provider.js";

const fails = (code: ProviderErrorCode) => new ProviderError(code, code, { detail: "its own words" });
/** A failure that is not tried again, so that one call is one try. */
const refused = () => fails("PROVIDER_AUTH");

interface Chain {
  models: Record<string, ScriptedProvider>;
  lines: string[];
  clock: ManualClock;
  waits: number[];
  providers: Providers;
  /** One call of the first model; what was seen, and how it ended. */
  call(signal?: AbortSignal): Promise<{ seen: ProviderEvent[]; error: unknown }>;
}

/** A chain of the scripts' names in order; each model is called `m-<name>` at its provider. */
function chainOf(scripts: Record<string, Script[]>, names = Object.keys(scripts).slice(1)): Chain {
  const models = Object.fromEntries(Object.entries(scripts).map(([name, answers]) => [name, scripted(...answers)]));
  const lines: string[] = [];
  const waits: number[] = [];
  const clock = new ManualClock();
  const first = Object.keys(scripts)[0] ?? "";
  const bare: Providers = {
    resolve(name = first): ResolvedModel {
      const provider = models[name];
      if (provider === undefined) throw new ProviderError("PROVIDER_MODEL_UNKNOWN", `nobody serves ${name}`);
      return { provider, model: `m-${name}`, label: name };
    },
  };
  const logger = quietLogger(lines);
  const sleep = async (durationMs: number) => void waits.push(durationMs);
  const retries = { delaysMs: [1000, 2000], logger, sleep };
  const providers = withFallbacks(bare, { names, retries, logger, nowMs: () => clock.nowMs() });
  const call: Chain["call"] = async (signal = new AbortController().signal) => {
    const { provider, model } = providers.resolve();
    const request = { model, messages: [], tools: [], toolChoice: "auto" as const, maxOutputTokens: 1 };
    const seen: ProviderEvent[] = [];
    try {
      for await (const event of provider.stream(request, signal)) seen.push(event);
      return { seen, error: null };
    } catch (error) {
      return { seen, error };
    }
  };
  return { models, lines, clock, waits, providers, call };
}

const asked = ({ models }: Chain) => Object.values(models).map(({ requests }) => requests.length);
const gaveUp = ({ lines }: Chain) => lines.filter((line) => line.includes("gave up"));
const textOf = (events: readonly ProviderEvent[]) => events.map((event) => (event.type === "text" ? event.text : ""));

describe("going on", () => {
  const goesOn: ProviderErrorCode[] = [
    "PROVIDER_AUTH",
    "PROVIDER_INCOMPLETE",
    "PROVIDER_NO_KEY",
    "PROVIDER_QUOTA",
    "PROVIDER_RATE_LIMITED",
    "PROVIDER_SERVER",
    "PROVIDER_TIMEOUT",
    "PROVIDER_UNREACHABLE",
  ];
  const all = Object.keys(ERROR_ADVICE).filter((code) => code.startsWith("PROVIDER_")) as ProviderErrorCode[];

  test.each(all)("%s", async (code) => {
    const failing = Array.from({ length: 3 }, () => fails(code));
    const chain = chainOf({ first: failing, second: [text("ok")] });
    const { seen, error } = await chain.call();
    expect(seen.length > 0).toBe(goesOn.includes(code));
    if (goesOn.includes(code)) {
      expect(textOf(seen)[0]).toBe("ok");
      expect(gaveUp(chain)).toEqual([]);
    } else {
      expect(error).toMatchObject({ code });
      expect(asked(chain)).toEqual([1, 0]);
      expect(gaveUp(chain)).toHaveLength(1);
    }
  });

  test("each model has its own retries and is asked by its own name, in order", async () => {
    const busy = () => fails("PROVIDER_SERVER");
    const chain = chainOf({ a: [busy(), busy(), busy()], b: [busy(), busy(), busy()], c: [busy(), text("ok")] });
    expect((await chain.call()).error).toBeNull();
    expect(asked(chain)).toEqual([3, 3, 2]);
    expect(chain.waits).toEqual([1000, 2000, 1000, 2000, 1000]);
    expect(Object.values(chain.models).map(({ requests }) => requests[0]?.model)).toEqual(["m-a", "m-b", "m-c"]);
  });

  test("all fail: the last error, and one line that says it gave up", async () => {
    const chain = chainOf({ a: [refused()], b: [fails("PROVIDER_QUOTA")] });
    expect((await chain.call()).error).toMatchObject({ code: "PROVIDER_QUOTA" });
    expect(gaveUp(chain)).toHaveLength(1);
    expect(gaveUp(chain)[0]).toContain("its own words");
  });

  test("one model alone: its error, and the same one line", async () => {
    const chain = chainOf({ a: [refused()] });
    expect((await chain.call()).error).toMatchObject({ code: "PROVIDER_AUTH" });
    expect(gaveUp(chain)).toHaveLength(1);
  });

  test.each<ProviderEvent>([
    { type: "text", text: "a" },
    { type: "reasoning", text: "a" },
    { type: "tool_call", call: { id: "1", name: "f", arguments: "{}" } },
  ])("never once $type was seen", async (event) => {
    const breaks = async function* (): AsyncGenerator<ProviderEvent> {
      yield event;
      throw fails("PROVIDER_INCOMPLETE");
    };
    const chain = chainOf({ a: [breaks], b: [text("ok")] });
    const { seen, error } = await chain.call();
    expect(seen).toEqual([event]);
    expect(error).toMatchObject({ code: "PROVIDER_INCOMPLETE" });
    expect(asked(chain)).toEqual([1, 0]);
    expect(gaveUp(chain)).toHaveLength(1);
  });

  test("never after an abort, nor after an error that is not the provider's", async () => {
    const controller = new AbortController();
    const reason = new Error("stopped");
    const stops: Script = () => {
      controller.abort(reason);
      throw reason;
    };
    const chain = chainOf({ a: [stops, new TypeError("a bug")], b: [text("ok")] });
    expect((await chain.call(controller.signal)).error).toBe(reason);
    expect((await chain.call()).error).toBeInstanceOf(TypeError);
    expect(asked(chain)).toEqual([2, 0]);
  });
});

describe("the first model's breaker", () => {
  const broken = () => Array.from({ length: 9 }, refused);
  const fine = () => Array.from({ length: 9 }, () => text("second"));

  test("after three failures it is left out for a minute; then one probe, whose success brings it back", async () => {
    const chain = chainOf({ a: [refused(), refused(), refused(), text("first"), text("first")], b: fine() });
    for (let i = 0; i < 5; i += 1) expect(textOf((await chain.call()).seen)[0]).toBe("second");
    expect(asked(chain)).toEqual([3, 5]);
    chain.clock.stall(60_000);
    expect(textOf((await chain.call()).seen)[0]).toBe("first");
    expect(textOf((await chain.call()).seen)[0]).toBe("first");
    expect(asked(chain)).toEqual([5, 5]);
  });

  test("a probe that fails leaves it out again", async () => {
    const chain = chainOf({ a: broken(), b: fine() });
    for (let i = 0; i < 4; i += 1) await chain.call();
    chain.clock.stall(60_000);
    for (let i = 0; i < 3; i += 1) await chain.call();
    expect(asked(chain)).toEqual([4, 7]);
  });

  test("a request that is refused, or one nobody waited for, says nothing about the model", async () => {
    const refusals = Array.from({ length: 4 }, () => fails("PROVIDER_INVALID"));
    const chain = chainOf({ a: [...refusals, ...Array.from({ length: 5 }, () => text("a", "b"))], b: fine() });
    for (let i = 0; i < 4; i += 1) await chain.call();
    const { provider } = chain.providers.resolve();
    const request = { model: "m", messages: [], tools: [], toolChoice: "auto" as const, maxOutputTokens: 1 };
    for (let i = 0; i < 4; i += 1) {
      for await (const _event of provider.stream(request, new AbortController().signal)) break;
    }
    await chain.call();
    expect(asked(chain)).toEqual([9, 0]);
  });

  test("a model that breaks off in the middle counts as failing", async () => {
    const breaks: Script = async function* (): AsyncGenerator<ProviderEvent> {
      yield { type: "text", text: "x" };
      throw fails("PROVIDER_INCOMPLETE");
    };
    const chain = chainOf({ a: [breaks, breaks, breaks], b: fine() });
    for (let i = 0; i < 4; i += 1) await chain.call();
    expect(asked(chain)).toEqual([3, 1]);
  });

  test("a model without fallbacks is always asked", async () => {
    const chain = chainOf({ a: broken() });
    for (let i = 0; i < 6; i += 1) await chain.call();
    expect(asked(chain)).toEqual([6]);
  });
});

describe("which models", () => {
  test("one that cannot be resolved is skipped, with one warning; one that is named twice is asked once", async () => {
    const chain = chainOf({ a: [refused(), refused()], b: [refused(), text("ok")] }, ["nope", "a", "b", "b"]);
    expect((await chain.call()).error).toMatchObject({ code: "PROVIDER_AUTH" });
    expect(textOf((await chain.call()).seen)[0]).toBe("ok");
    expect(asked(chain)).toEqual([2, 2]);
    const warnings = chain.lines.filter((line) => line.includes("is skipped"));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("nope");
  });

  test("a first model that cannot be resolved is an error, and a name resolves to one chain for ever", () => {
    const { providers } = chainOf({ a: [], b: [] });
    expect(() => providers.resolve("nope")).toThrowError(/nobody serves nope/);
    expect(providers.resolve("b")).toBe(providers.resolve("b"));
    expect(providers.resolve()).toMatchObject({ model: "m-a", label: "a" });
  });
});

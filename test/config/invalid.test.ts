/**
 * What is wrong is named by path, kind and what is allowed, and no value ever stands in an error: checked over every
 * setting there is.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fromEnvironment } from "../../src/config/fields.js";
import { loadConfig } from "../../src/config/load.js";
import { defaultConfig } from "../../src/config/schema.js";
import { fillTemplates, isBranch, mergeTrees, unknownKeys, valueAt } from "../../src/config/tree.js";
import { NanogateError } from "../../src/errors.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nanogate-invalid-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function messageFor(settings: unknown, env: Record<string, string> = {}): Promise<string> {
  const file = path.join(folder, "config.json");
  await writeFile(file, JSON.stringify(settings));
  const outcome = await loadConfig({ file, cwd: folder, env: { NANOGATE_HOME: folder, ...env } }).catch(
    (e: unknown) => e,
  );
  if (outcome instanceof NanogateError && outcome.code === "CONFIG_INVALID") return outcome.message;
  throw new Error("it was not refused as invalid", { cause: outcome });
}

function leaves(tree: unknown, at: readonly string[] = []): string[][] {
  if (!isBranch(tree)) return [[...at]];
  return Object.entries(tree).flatMap(([key, value]) => leaves(value, [...at, key]));
}

const nest = (at: readonly string[], value: unknown): unknown =>
  at.reduceRight((inner: unknown, key) => ({ [key]: inner }), value);

describe("wrong values", () => {
  it.each(leaves(defaultConfig()).map((at) => [at.join("."), at] as const))(
    "%s: what it cannot be is refused with path and kind",
    async (name, at) => {
      const isList = Array.isArray(valueAt(defaultConfig(), at));
      const [wrong, kind] = isList ? [{ a: "hush" }, "an object"] : [["hush"], "a list"];
      expect(await messageFor(nest(at, wrong))).toContain(`${name}: found ${kind}; allowed is `);
    },
  );

  it.each([
    [{ gateway: { leaseMs: 299 } }, "gateway.leaseMs: found a number; allowed is a number of milliseconds from 300"],
    [{ gateway: { port: "8765" } }, "gateway.port: found a text; allowed is a whole number from 0 to 65535"],
    [{ gateway: { concurrency: 1.5 } }, "gateway.concurrency: found a number; allowed is a whole number"],
    [{ gateway: { token: "" } }, 'gateway.token: found an empty text; allowed is a text, "auto", or null'],
    [{ agent: { queueMode: "collect" } }, 'agent.queueMode: found a text; allowed is "steer" or "followup"'],
    [{ agent: { model: "gpt" } }, 'agent.model: found a text; allowed is "auto", "demo", or provider/model'],
    [
      { agent: { model: "nobody/x" } },
      "agent.model: found a text; allowed is a model of a configured provider (anthropic, ",
    ],
    [{ agent: { model: "toString/x" } }, "agent.model: found a text"],
    [
      { agent: { maxOutputTokens: 9000, contextWindow: 8000 } },
      "agent.maxOutputTokens: found a number; allowed is less",
    ],
    [{ agent: { streamIdleTimeoutMs: 400_000 } }, "agent.streamIdleTimeoutMs: found a number; allowed is at most"],
    [{ providers: { x: {} } }, "providers.x.baseUrl: found nothing; allowed is an http:// or https:// URL"],
    [
      { providers: { x: { kind: "anthropic", baseUrl: "x" } } },
      "providers.x.baseUrl: found a text; allowed is an http",
    ],
    [
      { agent: { fallbackModels: ["demo", "auto"] } },
      'agent.fallbackModels.1: found a text; allowed is "demo", or prov',
    ],
    [{ agent: { fallbackModels: "demo" } }, "agent.fallbackModels: found a text; allowed is a list of models"],
    [{ providers: { "a b": { baseUrl: "http://x" } } }, "providers.a b: found an object; allowed is a name of letters"],
    [
      { providers: { x: { baseUrl: "http://x", kind: "other" } } },
      'providers.x.kind: found a text; allowed is "openai" or "anthropic"',
    ],
    [{ channels: null }, "channels: found null; allowed is an object"],
    [[], "the whole file: found a list; allowed is an object"],
  ])("%j", async (settings, sentence) => {
    expect(await messageFor(settings)).toContain(sentence);
  });

  it("are all named at once", async () => {
    const message = await messageFor({ gateway: { port: -1, drainMs: "x" }, session: { fsync: 1 } });
    expect(message).toContain("3 wrong settings");
    for (const name of ["gateway.port", "gateway.drainMs", "session.fsync"]) expect(message).toContain(name);
  });

  it("of the environment are named by their variable", async () => {
    expect(await messageFor({}, { REDIS_URL: "http://hush" })).toContain(
      "REDIS_URL: found a text; allowed is a redis://",
    );
    expect(await messageFor({}, { LOG_LEVEL: "hush" })).toContain("LOG_LEVEL: found a text; allowed is trace, debug");
  });

  it("never stand in the message, wherever they are and wherever they came from", async () => {
    for (const at of leaves(defaultConfig())) {
      const settings = mergeTrees(nest(at, "s3cr3t value \u0000"), { gateway: { port: "s3cr3t" } });
      expect(await messageFor(settings)).not.toContain("s3cr3t");
      const fromVariable = mergeTrees(nest(at, `${fromEnvironment("MINE")} `), { gateway: { port: "x" } });
      expect(await messageFor(fromVariable, { MINE: "s3cr3t" })).not.toContain("s3cr3t");
    }
  });
});

describe("trees", () => {
  const tree = fc.jsonValue({ maxDepth: 4 });

  it("merge without losing what stands above and without touching what was given", () => {
    fc.assert(
      fc.property(tree, tree, (below, above) => {
        const before = JSON.stringify([below, above]);
        const merged = mergeTrees(below, above);
        expect(unknownKeys(above, merged)).toEqual([]);
        expect(mergeTrees(merged, above)).toEqual(merged);
        expect(JSON.stringify([below, above])).toBe(before);
      }),
    );
  });

  it("come out of filling as they went in when they have no template", () => {
    fc.assert(
      fc.property(tree, (value) => {
        fc.pre(!JSON.stringify(value).includes("${"));
        expect(fillTemplates(value, {}, {})).toEqual({ tree: value, missing: [] });
      }),
    );
  });
});

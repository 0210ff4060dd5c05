/**
 * What `auto` means at start: a key is never waited for, then an Ollama, else the demo model.
 */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadConfig } from "../src/config/load.js";
import { assembleModels, modelLabelOf, settleModel } from "../src/gateway-models.js";
import { noMetrics } from "../src/metrics.js";
import { quietLogger } from "./agent/run-helpers.js";

let folder: string;
let server: Server;
let asked: Array<string | undefined>;
let handler: RequestListener;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nanogate-models-"));
  asked = [];
  handler = (_request, response) => response.end(JSON.stringify({ models: [{ name: "qwen3:8b" }] }));
  server = createServer((request, response) => {
    asked.push(request.url);
    handler(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

const port = () => (server.address() as AddressInfo).port;

async function settle(env: Record<string, string> = {}, settings: unknown = {}) {
  const file = path.join(folder, "config.json");
  await writeFile(file, JSON.stringify(settings));
  const own = { NANOGATE_HOME: folder, OLLAMA_HOST: `127.0.0.1:${port()}`, ...env };
  const loaded = await loadConfig({ file, cwd: folder, env: own });
  const lines: string[] = [];
  const settled = await settleModel({ loaded, logger: quietLogger(lines) });
  return { loaded, settled, lines, label: modelLabelOf(settled.config) };
}

describe("auto", () => {
  test("without any key: the first model of the Ollama that OLLAMA_HOST names, asked once", async () => {
    const { settled, label } = await settle();
    expect(label).toBe("ollama/qwen3:8b");
    expect(settled.config.providers.ollama).toMatchObject({ kind: "openai", baseUrl: `http://127.0.0.1:${port()}/v1` });
    expect(settled.config.providers.openai).toBeDefined();
    expect(asked).toEqual(["/api/tags"]);
  });

  test("an Ollama that the config describes is asked where it is, and stays as it is described", async () => {
    const ollama = { baseUrl: `http://127.0.0.1:${port()}/v1`, apiKey: "mine" };
    const { settled, label } = await settle({ OLLAMA_HOST: "127.0.0.1:1" }, { providers: { ollama } });
    expect(label).toBe("ollama/qwen3:8b");
    expect(settled.config.providers.ollama).toMatchObject(ollama);
  });

  test("nobody there, or nothing to answer with: the demo model, and the log knows why", async () => {
    const { label, lines, loaded, settled } = await settle({ OLLAMA_HOST: "127.0.0.1:1" });
    expect(label).toBe("demo");
    expect(settled).toBe(loaded);
    expect(lines.join()).toContain("no Ollama answers");
    handler = (_request, response) => response.end('{"models":[]}');
    expect((await settle()).label).toBe("demo");
  });

  test.each([
    [{ ANTHROPIC_API_KEY: "k", OPENAI_API_KEY: "k" }, {}, "anthropic/claude-sonnet-5"],
    [{ OPENAI_API_KEY: "k", OPENROUTER_API_KEY: "k" }, {}, "openai/gpt-5-mini"],
    [{ OPENROUTER_API_KEY: "k" }, {}, "openrouter/openai/gpt-5-mini"],
    [{}, { agent: { model: "demo" } }, "demo"],
    [{}, { agent: { model: "openai/x" } }, "openai/x"],
  ])("%o %o: nobody is asked", async (env, settings, expected) => {
    const { loaded, settled, label } = await settle(env, settings);
    expect(label).toBe(expected);
    expect(settled).toBe(loaded);
    expect(asked).toEqual([]);
  });

  test("an OLLAMA_HOST that is no address is named in a warning, and nobody is asked", async () => {
    const { loaded, label } = await settle({ OLLAMA_HOST: "ftp://s3cret@x" });
    expect(label).toBe("demo");
    expect(loaded.warnings.join()).toContain("OLLAMA_HOST");
    expect(loaded.warnings.join()).not.toContain("s3cret");
  });
});

test("a fallback whose provider is not configured is a warning at assembly, and the model stands", async () => {
  const { settled } = await settle({}, { agent: { model: "demo", fallbackModels: ["nobody/x"] } });
  const lines: string[] = [];
  expect(assembleModels(settled.config, quietLogger(lines), noMetrics).resolve().label).toBe("demo");
  expect(lines.filter((line) => line.includes("nobody/x"))).toHaveLength(1);
});

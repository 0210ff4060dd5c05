/**
 * Loading: files, environment, templates, precedence. Every test has its own folder and its own environment; nothing
 * of the process' own reaches them.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.js";
import { NanogateError } from "../../src/errors.js";

let folder: string;
let home: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nanogate-config-"));
  home = path.join(folder, "home");
  await mkdir(home);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function load(env: Record<string, string> = {}, request: Parameters<typeof loadConfig>[0] = {}) {
  return loadConfig({ cwd: folder, env: { NANOGATE_HOME: home, ...env }, ...request });
}

async function write(name: string, settings: unknown): Promise<string> {
  const file = path.join(folder, name);
  await writeFile(file, typeof settings === "string" ? settings : JSON.stringify(settings));
  return file;
}

async function failure(loading: Promise<unknown>): Promise<NanogateError> {
  const error = await loading.then(
    () => new Error("it loaded"),
    (reason: unknown) => reason,
  );
  if (error instanceof NanogateError) return error;
  throw error;
}

const template = (name: string) => `\${${name}}`;

describe("without a file", () => {
  it("takes the defaults, and keys that are not set are absent", async () => {
    const { config, file, warnings, fault, logLevel, secrets } = await load();
    expect({ file, warnings, fault, logLevel, secrets }).toEqual({
      file: null,
      warnings: [],
      fault: null,
      logLevel: "info",
      secrets: [],
    });
    expect(config.gateway).toMatchObject({ host: "127.0.0.1", port: 8765, token: null, leaseMs: 15_000 });
    expect(config.redis.url).toBeNull();
    expect(config.providers.openai).toEqual({
      kind: "openai",
      apiKey: null,
      baseUrl: "https://api.openai.com/v1",
    });
    expect(config.workspace).toBe(path.join(home, "workspace"));
  });

  it("applies the well-known variables and lists what is secret in them", async () => {
    const { config, secrets, logLevel } = await load({
      REDIS_URL: "redis://:pa%40ss@db:6379/1",
      OPENAI_API_KEY: "key-one",
      OPENROUTER_API_KEY: "key-two",
      ANTHROPIC_API_KEY: "key-three",
      NANOGATE_TOKEN: "a-token-of-some-length",
      LOG_LEVEL: "DEBUG",
    });
    expect(config.redis.url).toBe("redis://:pa%40ss@db:6379/1");
    expect(config.providers.openai?.apiKey).toBe("key-one");
    expect(config.providers.openrouter?.apiKey).toBe("key-two");
    expect(config.providers.anthropic).toEqual({
      kind: "anthropic",
      apiKey: "key-three",
      baseUrl: "https://api.anthropic.com",
    });
    expect(config.gateway.token).toBe("a-token-of-some-length");
    expect(logLevel).toBe("debug");
    expect([...secrets].sort()).toEqual([
      "a-token-of-some-length",
      "key-one",
      "key-three",
      "key-two",
      "pa%40ss",
      "pa@ss",
    ]);
  });

  it("takes an empty variable for one that is not set", async () => {
    const { config } = await load({ REDIS_URL: "", OPENAI_API_KEY: "", NANOGATE_TOKEN: "", LOG_LEVEL: "" });
    expect([config.redis.url, config.providers.openai?.apiKey, config.gateway.token]).toEqual([null, null, null]);
  });

  it("reads .env of the working folder below the environment", async () => {
    await write(".env", "OPENAI_API_KEY=from-file\nNANOGATE_TOKEN=from-file-too\n");
    const { config } = await load({ NANOGATE_TOKEN: "from-environment" });
    expect(config.providers.openai?.apiKey).toBe("from-file");
    expect(config.gateway.token).toBe("from-environment");
    expect(process.env.OPENAI_API_KEY).not.toBe("from-file");
  });

  it("takes a folder called .env for none", async () => {
    await mkdir(path.join(folder, ".env"));
    expect((await load()).file).toBeNull();
  });
});

describe("the file", () => {
  it("is the one of the command line, else the named one, else the one in the home", async () => {
    await write("home/config.json", { agent: { maxIterations: 1 } });
    const named = await write("named.json", { agent: { maxIterations: 2 } });
    const given = await write("given.json", { agent: { maxIterations: 3 } });
    const read = async (...request: Parameters<typeof load>) => (await load(...request)).config.agent.maxIterations;
    expect(await read()).toBe(1);
    expect(await read({ NANOGATE_CONFIG: named })).toBe(2);
    expect(await read({ NANOGATE_CONFIG: named }, { file: given })).toBe(3);
    expect(await read({}, { file: "given.json" })).toBe(3);
  });

  it("may be JSON5, and is laid over the defaults", async () => {
    const file = await write(
      "a.json",
      "{ $schema: './x', /* why */ providers: { local: { baseUrl: 'http://127.0.0.1:1/v1' } }, gateway: { leaseMs: 1500.5, } }",
    );
    const { config, warnings } = await load({ OPENAI_API_KEY: "kept" }, { file });
    expect(warnings).toEqual([]);
    expect(Object.keys(config.providers)).toEqual(["anthropic", "openai", "openrouter", "local"]);
    expect(config.providers.local).toEqual({ kind: "openai", apiKey: null, baseUrl: "http://127.0.0.1:1/v1" });
    expect(config.providers.openai?.apiKey).toBe("kept");
    expect(config.gateway).toMatchObject({ leaseMs: 1500.5, port: 8765 });
  });

  it("is an error when it was named and is missing, and when it cannot be read", async () => {
    for (const file of ["missing.json", "home"]) {
      const error = await failure(load({}, { file }));
      expect(error.code).toBe("CONFIG_UNREADABLE");
      expect(error.message).toContain(path.join(folder, file));
    }
    expect((await failure(load({ NANOGATE_CONFIG: "missing.json" }))).code).toBe("CONFIG_UNREADABLE");
  });

  it("names the place of a syntax error and quotes nothing of the text", async () => {
    const file = await write("a.json", '{\n  "gateway": { "token": "hush-hush" oops }\n}');
    const error = await failure(load({}, { file }));
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toMatch(/line 2, column \d+/);
    expect(error.message).not.toContain("hush");
    expect(error.cause).toBeUndefined();
  });

  it("warns about unknown keys with their path", async () => {
    const file = await write("a.json", {
      heartbeat: { enabled: true },
      agent: { modle: "x" },
      channels: { pigeon: {} },
    });
    const { warnings } = await load({}, { file });
    expect(warnings.map((warning) => /setting (\S+)/.exec(warning)?.[1])).toEqual([
      "agent.modle",
      "channels.pigeon",
      "heartbeat",
    ]);
  });

  it("stands below the options of the command line, which are checked like it", async () => {
    const file = await write("a.json", { workspace: "./from-file", gateway: { host: "::1", port: 1 } });
    const { config } = await load({}, { file, workspace: "mine", port: 0 });
    expect(config.workspace).toBe(path.join(folder, "mine"));
    expect(config.gateway).toMatchObject({ host: "::1", port: 0 });
    expect((await load({}, { file })).config.workspace).toBe(path.join(folder, "from-file"));
    expect((await failure(load({}, { port: 70_000 }))).message).toContain("gateway.port");
  });

  it("stands above REDIS_URL and NANOGATE_TOKEN where it says something", async () => {
    const file = await write("a.json", { redis: { url: "/run/redis.sock" }, gateway: { token: null } });
    const { config } = await load({ REDIS_URL: "redis://other", NANOGATE_TOKEN: "other-token-of-length" }, { file });
    expect([config.redis.url, config.gateway.token]).toEqual(["/run/redis.sock", null]);
  });
});

describe("templates", () => {
  it("are replaced in texts, also in the middle of one", async () => {
    const file = await write("a.json", {
      providers: { mine: { baseUrl: `https://${template("HOST_NAME")}/v1`, apiKey: template("MY_KEY") } },
    });
    const { config, secrets } = await load({ HOST_NAME: "models.test", MY_KEY: "the-key" }, { file });
    expect(config.providers.mine).toMatchObject({ baseUrl: "https://models.test/v1", apiKey: "the-key" });
    expect(secrets).toEqual(["the-key"]);
  });

  it("name field and variable when it is missing, once", async () => {
    const file = await write("a.json", { providers: { mine: { baseUrl: "http://x/", apiKey: template("MY_KEY") } } });
    const error = await failure(load({}, { file }));
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message.match(/providers\.mine\.apiKey/g)).toHaveLength(1);
    expect(error.message).toContain("MY_KEY");
  });

  it("that repeat the built-in default mean absent, so that the default file can be copied", async () => {
    const file = await write("a.json", { providers: { openai: { apiKey: template("OPENAI_API_KEY") } } });
    expect((await load({}, { file })).config.providers.openai?.apiKey).toBeNull();
  });

  it("stay as they are in a part that is off", async () => {
    const file = await write("a.json", { channels: { websocket: { enabled: false, note: template("NOT_SET") } } });
    expect((await load({}, { file })).config.channels.websocket.enabled).toBe(false);
  });
});

describe("the rest", () => {
  it("moves ~/.nanogate with the home, and only that", async () => {
    const workspaceOf = async (workspace: string) => (await load({}, { workspace })).config.workspace;
    expect(await workspaceOf("~/.nanogate/other")).toBe(path.join(home, "other"));
    expect(await workspaceOf("~/.nanogate")).toBe(home);
    expect(await workspaceOf("~/.nanogates")).toBe(path.join(homedir(), ".nanogates"));
    expect(await workspaceOf("~")).toBe(homedir());
    const { home: relative, redisFolder } = await load({ NANOGATE_HOME: "elsewhere" });
    expect([relative, redisFolder]).toEqual([path.join(folder, "elsewhere"), path.join(folder, "elsewhere", "redis")]);
  });

  it("takes the token of the home folder when no variable has one", async () => {
    await write("home/token", "  token-in-the-home-folder\n");
    expect((await load()).config.gateway.token).toBe("token-in-the-home-folder");
    expect((await load({ NANOGATE_TOKEN: "token-in-the-variable" })).config.gateway.token).toBe(
      "token-in-the-variable",
    );
  });

  it("warns about a token that can be guessed, without naming it", async () => {
    const { warnings } = await load({ NANOGATE_TOKEN: "hunter2" });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).not.toContain("hunter2");
  });

  it("understands faults and refuses what it does not understand", async () => {
    const faultOf = async (text: string) => (await load({ NANOGATE_FAULT: text })).fault;
    expect(await faultOf("kill:settle.before#2")).toEqual({ action: "kill", point: "settle.before", nth: 2 });
    expect(await faultOf("stop:append.after")).toEqual({ action: "stop", point: "append.after", nth: 1 });
    for (const wrong of [
      "kill:nowhere",
      "hurt:append.after",
      "kill:append.after#0",
      "append.after",
      "kill:append.after ",
    ]) {
      expect((await failure(load({ NANOGATE_FAULT: wrong }))).code).toBe("CONFIG_INVALID");
    }
  });

  it("freezes everything", async () => {
    const loaded = await load();
    const isFrozen = (value: unknown): boolean =>
      typeof value !== "object" || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen));
    expect(isFrozen(loaded)).toBe(true);
  });
});

/** `token`, `config` and wrong usage: what is printed, what never is, and how it ends. */
import { existsSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Home } from "./support/command.js";

const SECRETS = ["sk-very-secret-0001", "redis-secret-0002", "token-secret-000003"];
const KEY_TEMPLATE = "$" + "{MY_KEY}";

let home: Home;
beforeEach(async () => {
  home = await Home.make();
});
afterEach(() => home.remove());

describe("token", () => {
  it("prints the token of the home folder and nothing else", async () => {
    await home.write("token", "kept-in-the-home-folder\n");
    expect(await home.run(["token"])).toEqual({ code: 0, out: "kept-in-the-home-folder\n", err: "" });
  });

  it("prints the configured one, as JSON if asked", async () => {
    await home.write("token", "kept-in-the-home-folder");
    const { code, out } = await home.run(["token", "--json"], { NANOGATE_TOKEN: "of-the-environment" });
    expect([code, JSON.parse(out)]).toEqual([0, { token: "of-the-environment" }]);
  });

  it("says what to do when there is none, and makes none", async () => {
    const { code, out, err } = await home.run(["token"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err.split("\n")).toEqual([
      expect.stringContaining("No gateway token"),
      expect.stringContaining("--ensure-token"),
      "",
    ]);
    expect(existsSync(path.join(home.folder, "token"))).toBe(false);
  });
});

describe("config", () => {
  it("validates a right file, with its warnings", async () => {
    const file = await home.write("config.json", { agent: { maxIterations: 3, modle: "demo" } });
    const { code, out, err } = await home.run(["config", "validate"]);
    expect([code, out]).toEqual([0, `${file} is valid.\n`]);
    expect(err).toContain("agent.modle");
  });

  it.each([
    [{ gateway: { leaseMs: "soon" } }, "gateway.leaseMs"],
    [{ agent: { model: "nobody/m" } }, "agent.model"],
    [{ providers: { openai: { apiKey: KEY_TEMPLATE } } }, "MY_KEY"],
    ["{ not json", "line 1"],
  ])("ends with 78 for %j and names what is wrong", async (config, named) => {
    const file = await home.write("other.json", config);
    const { code, out, err } = await home.run(["config", "validate", "-c", file]);
    expect([code, out]).toEqual([78, ""]);
    expect(err).toContain(named);
    expect(err).not.toMatch(/\n\s+at /);
    const asJson = await home.run(["config", "validate", "--json", "-c", file]);
    expect([asJson.code, asJson.err]).toEqual([78, ""]);
    expect(JSON.parse(asJson.out)).toMatchObject({ valid: false, problem: expect.stringContaining(named) });
  });

  it("never prints a secret that stands in a wrong file", async () => {
    await home.write("config.json", {
      gateway: { token: SECRETS[2], port: "x" },
      providers: { openai: { apiKey: [SECRETS[0]] } },
    });
    for (const command of [
      ["config", "validate"],
      ["config", "validate", "--json"],
      ["config", "show"],
      ["doctor"],
      ["status"],
    ]) {
      const { out, err } = await home.run(command);
      for (const secret of SECRETS) expect(out + err).not.toContain(secret);
    }
  });

  it("shows every value with where it comes from, secrets hidden", async () => {
    const url = `redis://:${SECRETS[1]}@127.0.0.1:1/0`;
    await home.write("config.json", {
      agent: { maxIterations: 7 },
      providers: { openai: { apiKey: KEY_TEMPLATE }, mine: { apiKey: SECRETS[0], baseUrl: "http://127.0.0.1:1/v1" } },
    });
    const env = { MY_KEY: SECRETS[0] ?? "", REDIS_URL: url, NANOGATE_TOKEN: SECRETS[2] ?? "" };
    const asJson = await home.run(["config", "show", "--json", "-w", "elsewhere"], env);
    const { settings } = JSON.parse(asJson.out) as { settings: Array<{ path: string; value: unknown; from: string }> };
    const found = Object.fromEntries(settings.map(({ path: name, ...rest }) => [name, rest]));
    expect(found["agent.maxIterations"]).toEqual({ value: 7, from: "file" });
    expect(found["agent.queueMode"]).toEqual({ value: "steer", from: "default" });
    expect(found["providers.openai.apiKey"]).toEqual({ value: "[hidden]", from: "environment (MY_KEY)" });
    expect(found["providers.mine.apiKey"]).toEqual({ value: "[hidden]", from: "file" });
    expect(found["providers.openrouter.apiKey"]).toEqual({ value: null, from: "default" });
    expect(found["redis.url"]).toEqual({ value: "redis://[redacted]@127.0.0.1:1/0", from: "environment (REDIS_URL)" });
    expect(found["gateway.token"]).toEqual({ value: "[hidden]", from: "environment (NANOGATE_TOKEN)" });
    expect(found.workspace).toEqual({ value: path.join(home.folder, "elsewhere"), from: "command line" });
    const { out, err } = await home.run(["config", "show"], env);
    for (const secret of SECRETS) expect(out + err + asJson.out + asJson.err).not.toContain(secret);
    expect(out).toMatch(/^agent\.maxIterations +7 +file$/m);
  });

  it("says that the token is the one of the home folder", async () => {
    await home.write("token", SECRETS[2]);
    const { out } = await home.run(["config", "show"]);
    expect(out).toMatch(/^gateway\.token +"\[hidden\]" +token file$/m);
  });

  it("prints the schema, and the path also of a file that is missing or wrong", async () => {
    expect(JSON.parse((await home.run(["config", "schema"])).out)).toMatchObject({ type: "object" });
    const file = path.join(home.folder, "config.json");
    expect(await home.run(["config", "path"])).toEqual({ code: 0, out: `${file}\n`, err: "" });
    await home.write("config.json", "{ broken");
    expect((await home.run(["config", "path"])).out).toBe(`${file}\n`);
    expect((await home.run(["config", "path"], { NANOGATE_CONFIG: "/somewhere/a.json" })).out).toBe(
      "/somewhere/a.json\n",
    );
  });
});

describe("wrong usage ends with 2", () => {
  it.each([
    [["stauts"], "status"],
    [["sessions", "improt", "a"], "import"],
    [["outbox", "rerty", "x"], "retry"],
  ])("%j names the nearest", async (args, nearest) => {
    const { code, out, err } = await home.run(args);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(`Did you mean ${nearest}?`);
  });

  it.each([
    [[]],
    [["config"]],
    [["sessions", "show"]],
    [["sessions", "import"]],
    [["status", "--nope"]],
    [["sessions", "show", ""]],
  ])("%j", async (args) => {
    const { code, err } = await home.run(args);
    expect(code).toBe(2);
    expect(err).not.toBe("");
    expect(err).not.toMatch(/\n\s+at /);
  });
});

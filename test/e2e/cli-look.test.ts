/** `status`, `doctor` and `channels status`: with nothing running, beside a gateway, and when something is wrong. */
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { type Ended, Home, run } from "./support/command.js";
import { GatewayProcess, MAIN, Stage } from "./support/stage.js";

interface Finding {
  check: string;
  state: string;
  found: string;
  advice?: string;
}

const findings = ({ out }: Ended): Record<string, Finding> => {
  const { findings: list } = JSON.parse(out) as { findings: Finding[] };
  return Object.fromEntries(list.map((each) => [each.check, each]));
};

describe("with nothing running", () => {
  let home: Home;
  beforeEach(async () => {
    home = await Home.make({ gateway: { port: 0 } });
  });
  afterEach(() => home.remove());

  it("status says so and neither starts a Redis nor makes a workspace", async () => {
    const { code, out, err } = await home.run(["status"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^redis +not running/m);
    expect(out).toMatch(/^model +demo$/m);
    expect(existsSync(home.redisFolder)).toBe(false);
    expect(existsSync(path.join(home.folder, "workspace"))).toBe(false);
  });

  it("status of a used home starts no Redis either", async () => {
    expect((await home.run(["agent", "-m", "hello"])).code).toBe(0);
    const { code, out } = await home.run(["status", "--json"]);
    expect([code, JSON.parse(out)]).toMatchObject([
      0,
      { isUsed: true, redis: { state: "not running" }, gateway: { state: "none" } },
    ]);
    expect(await home.hasRedis()).toBe(false);
  });

  it("doctor tries what a start would do, and leaves no Redis behind", async () => {
    const ended = await home.run(["doctor", "--json"]);
    expect(ended.code).toBe(0);
    const found = findings(ended);
    expect(Object.keys(found)).toEqual(["config", "access", "workspace", "redis", "port", "model"]);
    expect(found.redis).toMatchObject({ state: "ok", found: expect.stringContaining("embedded") });
    expect(found.model?.state).toBe("warning");
    expect(await home.hasRedis()).toBe(false);
    const { code, out } = await home.run(["doctor"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^ok +redis +/m);
    expect(out.trimEnd().split("\n").at(-1)).toBe("Nothing keeps the gateway from running.");
  });

  it("channels status says who may connect", async () => {
    const { code, out } = await home.run(["channels", "status"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^websocket +unknown: no gateway answers +Only this machine/m);
    const closed = await home.run(["channels", "status", "--json"], { NANOGATE_TOKEN: "a-token-of-some-length" });
    expect(JSON.parse(closed.out)).toEqual([
      {
        name: "websocket",
        enabled: true,
        policy: expect.stringContaining("gateway token"),
        health: { state: "unknown" },
      },
      ...["telegram", "discord"].map((name) => ({
        name,
        enabled: false,
        policy: "Off: it has no token.",
        health: { state: "off" },
      })),
    ]);
    expect(closed.out).not.toContain("a-token-of-some-length");
    await home.write("config.json", { channels: { websocket: { enabled: false } } });
    expect((await home.run(["channels", "status"])).out).toMatch(/^websocket +off +Off/m);
  });

  it("doctor names each problem with what to do, and ends with 1", async () => {
    const taken = createServer((_request, response) => response.end("somebody else"));
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as AddressInfo;
    const password = "redis-secret-0002";
    const noFolder = await home.write("a-file", "");
    await home.write("config.json", {
      gateway: { host: "0.0.0.0", port },
      redis: { url: `redis://:${password}@127.0.0.1:1` },
      agent: { model: "openai/gpt-5-mini" },
    });
    const ended = await home.run(["doctor", "--json"]);
    expect(ended.code).toBe(1);
    const found = findings(ended);
    const problems = Object.values(found).filter(({ state, advice }) => state === "problem" && advice !== undefined);
    expect(problems.map(({ check }) => check)).toEqual(["access", "redis", "port", "model"]);
    expect(found.redis?.found).toContain("ECONNREFUSED");
    expect(ended.out + ended.err).not.toContain(password);
    const inAFile = await home.run(["doctor", "--json", "-w", noFolder]);
    expect(findings(inAFile).workspace).toMatchObject({ state: "problem" });
    await home.write("config.json", { gateway: { port: "x" } });
    expect(findings(await home.run(["doctor", "--json"]))).toMatchObject({ config: { state: "problem" } });
    await new Promise((resolve) => taken.close(resolve));
  });

  it("a gateway that is stopped while it waits for Redis ends in order", async () => {
    const { PATH } = process.env;
    const env = { PATH, HOME: home.folder, NANOGATE_HOME: home.folder, REDIS_URL: "redis://127.0.0.1:1" };
    const gateway = new GatewayProcess([MAIN, "gateway"], { ...env, OLLAMA_HOST: "127.0.0.1:1" });
    await gateway.logged("Redis is not reachable");
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    expect(gateway.log).toContain("stopped while starting");
    expect(gateway.log).not.toMatch(/^ +at /m);
  });

  it("doctor says that Redis is missing", async () => {
    const { out, code } = await home.run(["doctor"], { PATH: home.folder });
    expect(code).toBe(1);
    expect(out).toMatch(/^problem +redis +No redis-server/m);
  });
});

describe("beside a gateway", () => {
  let stage: Stage;
  let gateway: GatewayProcess;
  afterEach(() => stage.close());

  /** Starts a gateway, and says in the configuration which port it got. */
  async function start(config: Record<string, unknown> = {}, redisArgs: readonly string[] = []): Promise<number> {
    stage = await Stage.open(config, redisArgs);
    gateway = await stage.gateway();
    const port = await gateway.ready;
    const written = JSON.parse(await readFile(stage.configFile, "utf8")) as { gateway: object };
    await writeFile(stage.configFile, JSON.stringify({ ...written, gateway: { ...written.gateway, port } }));
    return port;
  }

  const command = (...args: string[]) =>
    run([...args, "-c", stage.configFile, "-w", stage.workspace], { home: stage.home });

  it("the start-up log says of each channel who may use it", async () => {
    await start();
    const [said] = gateway.log.split("\n").filter((line) => line.includes("who may use a channel"));
    expect(JSON.parse(said ?? "{}")).toMatchObject({
      channel: "websocket",
      policy: expect.stringContaining("Only this machine"),
    });
  });

  it("status tells what runs and what waits", async () => {
    await start({ agent: { model: "peer/m", queueMode: "followup" }, gateway: { concurrency: 1 } });
    const release = stage.model.hold("first");
    const [one, two] = [new Client("c1"), new Client("c2")];
    await Promise.all([one.connect(await gateway.url("alice")), two.connect(await gateway.url("alice"))]);
    const asked = stage.model.arrival("first");
    await one.say("first", "m1");
    await asked;
    await two.say("second", "m2");
    const { code, out } = await command("status", "--json");
    const found = JSON.parse(out);
    expect(code).toBe(0);
    expect(found.gateway).toMatchObject({ state: "gateway", pid: gateway.pid, role: "all", problems: [] });
    expect(found.redis.processes).toEqual([{ pid: gateway.pid, isHere: true, isWorker: true }]);
    expect(found.redis.depths).toMatchObject({ running: 1, scheduled: 1, workers: 1 });
    expect(found.redis.depths.oldestScheduledMs).toBeGreaterThanOrEqual(0);
    const { out: text } = await command("status");
    expect(text).toMatch(/^sessions +1 running, 1 ready/m);
    expect(text).toMatch(/^waiting +1 session; the oldest for /m);
    expect(text).toMatch(new RegExp(`^processes +pid ${gateway.pid} \\(worker\\)$`, "m"));
    release();
    await Promise.all([one.end("m1"), two.end("m2")]);
    one.disconnect();
    two.disconnect();
  });

  it("doctor knows its own gateway from another's; channels are healthy", async () => {
    await start({}, ["--maxmemory-policy", "allkeys-lru"]);
    const own = findings(await command("doctor", "--json"));
    expect(own.port).toMatchObject({ state: "ok", found: expect.stringContaining(String(gateway.pid)) });
    expect(own.redis).toMatchObject({ state: "warning", advice: expect.stringContaining("noeviction") });
    expect(own.model).toEqual({ check: "model", state: "ok", found: "peer/m" });
    expect((await command("channels", "status")).out).toMatch(/^websocket +ok +/m);
    const other = path.join(stage.home, "other");
    const ended = await run(["doctor", "--json", "-c", stage.configFile, "-w", other], { home: stage.home });
    expect(ended.code).toBe(1);
    expect(findings(ended).port?.found).toContain("another workspace");
  });

  it("status names a Redis that is away, and ends with 1", async () => {
    await start();
    await stage.redis.kill();
    const { code, out, err } = await command("status");
    expect([code, err]).toEqual([1, ""]);
    expect(out).toMatch(/^redis +Redis at .* cannot be used: /m);
    expect(out).toMatch(/^gateway +not ready at /m);
  });
});

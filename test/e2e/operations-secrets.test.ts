/**
 * A token, a provider's key and a Redis password are led through every path that fails, and then looked for in everything
 * that a person or a machine can read: logs, routes, commands, frames, and Redis itself.
 */
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, it } from "vitest";
import { WebSocket } from "ws";
import { until } from "../support/bus-fixture.js";
import { run } from "./support/command.js";
import { type GatewayProcess, Stage } from "./support/stage.js";
import { openTcpRoad } from "./support/tcp-road.js";

/** Each of another shape, so that no pattern alone finds them all. */
const TOKEN = "plain.gateway.token.4711";
const KEY = "wholly-ordinary-provider-key";
const PASSWORD = "pass%2Fword4711";
const SECRETS = [TOKEN, KEY, PASSWORD, decodeURIComponent(PASSWORD), "wrong-password-0815", "guessed-token-0815"];

let stage: Stage;
let servers: Array<{ close(): unknown }>;
beforeEach(async () => {
  stage = await Stage.open();
  servers = [];
});
afterEach(async () => {
  for (const server of servers) server.close();
  await stage.close();
});

async function listening(server: Server): Promise<number> {
  servers.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

/** The stage's Redis behind a port and a password; a provider that quotes the key it refuses, one that is not there. */
async function withSecrets(): Promise<{ port: number; close(): void }> {
  const admin = stage.redis.client();
  await admin.config("SET", "requirepass", decodeURIComponent(PASSWORD));
  admin.disconnect();
  const road = await openTcpRoad(stage.redis.socketPath);
  servers.push(road);
  const refusing = await listening(
    createServer((request, response) => {
      const message = `Incorrect API key provided: ${KEY} (${request.headers.authorization})`;
      response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ error: { message } }));
    }),
  );
  const provider = (baseUrl: string) => ({ kind: "openai", apiKey: KEY, baseUrl });
  const config = JSON.parse(await readFile(stage.configFile, "utf8"));
  config.redis.url = `redis://:${PASSWORD}@127.0.0.1:${road.port}/0`;
  config.gateway.token = TOKEN;
  config.agent = { model: "refusing/m", fallbackModels: ["absent/m"] };
  config.providers = {
    refusing: provider(`http://127.0.0.1:${refusing}/v1`),
    absent: provider(`http://user:${KEY}@127.0.0.1:1/v1?key=${KEY}`),
  };
  await writeFile(stage.configFile, JSON.stringify(config));
  return road;
}

/** Everything a connection was told, until `text` came or it was closed; fails after 20 s. */
async function heard(url: string, frames: Array<string | Buffer>, text: string): Promise<string> {
  const socket = new WebSocket(url);
  let all = "";
  await new Promise<void>((resolve, reject) => {
    const limit = AbortSignal.timeout(20_000);
    limit.addEventListener("abort", () => reject(new Error(`"${text}" never came, but:\n${all}`)));
    socket.on("open", () => {
      for (const frame of frames) socket.send(frame);
    });
    socket.on("message", (data) => {
      all += `${String(data)}\n`;
      if (all.includes(text)) resolve();
    });
    socket.on("close", (code, reason) => {
      all += `${code} ${String(reason)}\n`;
      resolve();
    });
    socket.on("error", reject);
  });
  socket.terminate();
  return all;
}

async function routes(port: number): Promise<string[]> {
  const asked = ["/healthz", "/readyz", "/", "/page/info.json", "/nothing", `/nothing?token=${TOKEN}`];
  const bearers = [undefined, `Bearer ${TOKEN}`, "Bearer guessed-token-0815"];
  const requests = [
    ...asked.map((route) => ({ route, bearer: undefined })),
    ...bearers.map((bearer) => ({ route: "/metrics", bearer })),
  ];
  return Promise.all(
    requests.map(async ({ route, bearer }) => {
      const headers = bearer === undefined ? {} : { authorization: bearer };
      const response = await fetch(`http://127.0.0.1:${port}${route}`, { headers });
      const shown = JSON.stringify([...response.headers]);
      // What it does not know it names; only what nobody named before counts.
      return `${route.split("?")[0]} ${response.status} ${shown} ${(await response.text()).replaceAll(`?token=${TOKEN}`, "")}`;
    }),
  );
}

async function commands(env: Record<string, string> = {}): Promise<string[]> {
  const lines = ["status", "status --json", "doctor", "doctor --json", "config show", "config show --json"];
  lines.push("config validate", "channels status", "outbox list --json", "sessions list");
  const ended: string[] = [];
  for (const line of lines) {
    const { out, err } = await run([...line.split(" "), "-c", stage.configFile], {
      home: stage.home,
      env: { LOG_LEVEL: "debug", ...env },
    });
    ended.push(`${line}: ${out}${err}`);
  }
  return ended;
}

/** Keys and values of everything in Redis. */
async function stored(): Promise<string> {
  const admin = new Redis({ path: stage.redis.socketPath, password: decodeURIComponent(PASSWORD) });
  const keys = await admin.keys("*");
  const values = await Promise.all(
    keys.map(async (key) => `${key} ${(await admin.dumpBuffer(key))?.toString("latin1")}`),
  );
  admin.disconnect();
  return values.join("\n");
}

function expectClean(what: string, text: string): void {
  expect(text.length, what).toBeGreaterThan(0);
  for (const secret of SECRETS) expect(text.includes(secret), `${secret} stands in ${what}:\n${text}`).toBe(false);
}

/** A turn that fails for good: its session's file is a folder. */
async function giveUp(gateway: GatewayProcess, url: string): Promise<void> {
  await mkdir(path.join(stage.workspace, "sessions", "websocket_broken.jsonl"), { recursive: true });
  const frame = JSON.stringify({ type: "message", chat_id: "broken", content: "hello", id: "b1" });
  await heard(url, [frame], "message_accepted");
  await gateway.logged("a message was given up");
}

it("stand in nothing that anybody can read, whatever fails", async () => {
  const road = await withSecrets();
  const gateway = await stage.gateway();
  const port = await gateway.ready;
  const url = `ws://127.0.0.1:${port}/?client_id=alice&token=${TOKEN}`;
  const givingUp = giveUp(gateway, url);

  const ask = JSON.stringify({ type: "message", chat_id: "c1", content: "hello", id: "m1" });
  const attach = JSON.stringify({ type: "attach", chat_id: "c1", after: 0 });
  const frames = await Promise.all([
    heard(url, [attach, ask], "turn_end"),
    heard(url, ["{broken", '{"type":"nothing"}', '{"type":"attach","chat_id":"?"}'], "bad_chat_id"),
    heard(url, [Buffer.from([1, 2, 3])], "error"),
    heard(`ws://127.0.0.1:${port}/?token=guessed-token-0815`, [], "never"),
  ]);
  expect(frames[0]).toContain("turn_end");
  for (const [index, text] of frames.entries()) expectClean(`the frames of connection ${index}`, text);
  await givingUp;
  const agent = await stage.agent("hello");
  expectClean("the output of agent", agent.out + agent.err);
  for (const text of await routes(port)) expectClean("a route", text);
  for (const text of await commands()) expectClean("a command", text);
  expectClean("Redis", await stored());

  const wrong = { REDIS_URL: `redis://:wrong-password-0815@127.0.0.1:${road.port}/0` };
  const config = JSON.parse(await readFile(stage.configFile, "utf8"));
  await writeFile(stage.configFile, JSON.stringify({ ...config, redis: {} }));
  for (const text of await commands(wrong)) expectClean("a command with a wrong password", text);
  await writeFile(stage.configFile, JSON.stringify(config));

  await stage.redis.kill();
  road.close();
  await gateway.logged("Redis is not reachable");
  await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 503);
  for (const text of await routes(port)) expectClean("a route without Redis", text);
  await gateway.stop();
  for (const said of ["the model could not be used", "a message was given up"]) expect(gateway.log).toContain(said);
  expectClean("the log", gateway.log);
});

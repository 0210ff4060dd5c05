/** The HTTP server on real ports: health, readiness, the page, upgrades, and an end that does not wait for ever. */
import { once } from "node:events";
import { connect } from "node:net";
import pino from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { asSessionKey } from "../../src/bus/messages.js";
import { createWebSocketChannel, WEBSOCKET_LIMITS } from "../../src/channels/websocket/channel.js";
import { assertBindAllowed } from "../../src/http/bind.js";
import { createHttpServer, type HttpOptions, type HttpServer } from "../../src/http/server.js";
import { testContext } from "../fakes/channel-context.js";
import { MemoryChatLogs } from "../fakes/memory-chat-events.js";
import { MemoryTokens } from "../fakes/memory-tokens.js";
import { TestClient } from "../fakes/websocket-client.js";

const logger = pino({ level: "silent" });
const open: Array<() => Promise<void>> = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});

const NO_AUTH = { token: null, issue: () => Promise.reject(new Error("unreachable")), maxPerMinute: 1 };
const PAGE = { version: "1.2.3", model: "demo", isDemo: true };

async function start(options: Partial<HttpOptions> = {}): Promise<{ server: HttpServer; port: number; url: string }> {
  const defaults = { host: "127.0.0.1", port: 0, role: "all", version: "1.2.3", logger, client: null, metrics: null };
  const server = await createHttpServer({ ...defaults, readiness: async () => [], ...options });
  open.push(() => server.close(100));
  const { port } = await server.listen();
  return { server, port, url: `http://127.0.0.1:${port}` };
}

async function startWithChannel() {
  const channel = createWebSocketChannel({
    log: new MemoryChatLogs().process(),
    tokens: new MemoryTokens(),
    token: null,
    isStreaming: true,
    limits: WEBSOCKET_LIMITS,
  });
  const accept = async () => ({ status: "stored", sessionKey: asSessionKey("s"), turnId: "t" }) as const;
  await channel.start(testContext({ accept, logger }));
  open.push(() => channel.stop());
  const upgrade = channel.upgrade.bind(channel);
  return start({ client: { upgrade, page: PAGE, auth: NO_AUTH, webhook: () => null } });
}

describe("health", () => {
  it("answers while the process serves", async () => {
    const { url } = await start({ role: "worker" });
    const answer = await fetch(`${url}/healthz`);
    expect(answer.status).toBe(200);
    const uptimeMs = expect.any(Number);
    expect(await answer.json()).toEqual({ status: "ok", role: "worker", version: "1.2.3", pid: process.pid, uptimeMs });
  });

  it("is ready without problems, and names each problem otherwise", async () => {
    let problems = [{ part: "redis", problem: "It does not answer.", advice: "Start it." }];
    const { url } = await start({ readiness: async () => problems });
    const unready = await fetch(`${url}/readyz`);
    expect([unready.status, await unready.json()]).toEqual([503, { status: "not ready", role: "all", problems }]);
    problems = [];
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([200, { status: "ready", role: "all", problems: [] }]);
  });

  it("is not ready when the checks fail, and says nothing of why", async () => {
    const { url } = await start({ readiness: () => Promise.reject(new Error("password hunter2")) });
    const answer = await fetch(`${url}/readyz`);
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toContain("hunter2");
  });
});

describe("what is served", () => {
  it("is health only where there is no client", async () => {
    const { url, port } = await start();
    for (const path of ["/", "/page/app.js", "/page/info.json"]) expect((await fetch(url + path)).status).toBe(404);
    const client = new TestClient(`ws://127.0.0.1:${port}/`);
    expect(await client.closed()).toBe(1006);
  });

  it("is the page with a policy that lets nothing else run", async () => {
    const { url } = await startWithChannel();
    const page = await fetch(url);
    const html = await page.text();
    expect(page.headers.get("content-type")).toContain("text/html");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.headers.get("content-security-policy")).not.toContain("unsafe");
    const files = [...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path);
    expect(files).toEqual(["/page/style.css", "/page/entries.css", "/page/app.js"]);
    for (const path of [...files, "/page/chat.js"]) {
      const file = await fetch(`${url}${path}`);
      expect([path, file.status]).toEqual([path, 200]);
    }
    expect(await (await fetch(`${url}/page/info.json`)).json()).toEqual(PAGE);
    expect((await fetch(`${url}/page/..%2f..%2fserver.ts`)).status).toBe(404);
  });

  it.each(["/", "/ws", "/ws/", "/?client_id=a", "/ws?client_id=a"])("takes upgrades on %s", async (path) => {
    const { port } = await startWithChannel();
    const client = new TestClient(`ws://127.0.0.1:${port}${path}`);
    await client.frame("ready");
    client.socket.terminate();
  });

  it.each(["/other", "/ws/more", "/healthz"])("answers upgrades on %s with 404", async (path) => {
    const { port } = await startWithChannel();
    const client = new TestClient(`ws://127.0.0.1:${port}${path}`);
    const [, response] = await once(client.socket, "unexpected-response");
    expect(response.statusCode).toBe(404);
    client.socket.terminate();
  });
});

describe("listening", () => {
  it("names the port that is taken", async () => {
    const { port } = await start();
    const second = await createHttpServer({
      host: "127.0.0.1",
      port,
      role: "all",
      version: "1",
      logger,
      metrics: null,
      readiness: async () => [],
      client: null,
    });
    open.push(() => second.close(100));
    await expect(second.listen()).rejects.toMatchObject({
      code: "PORT_TAKEN",
      message: expect.stringContaining(`${port}`),
    });
  });

  it("names a host that is not here", async () => {
    const here = start({ host: "203.0.113.7" });
    await expect(here).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining("203.0.113.7"),
    });
  });

  it("beyond this machine needs a token", () => {
    for (const host of ["127.0.0.1", "127.9.9.9", "localhost", "::1"]) assertBindAllowed({ host, token: null });
    assertBindAllowed({ host: "0.0.0.0", token: "t" });
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com", ""]) {
      expect(() => assertBindAllowed({ host, token: null })).toThrow(
        expect.objectContaining({ code: "BIND_NEEDS_TOKEN" }),
      );
    }
    expect(() => assertBindAllowed({ host: "0.0.0.0", token: "" })).toThrow();
  });
});

it("closes within its limit, whatever still hangs on", async () => {
  const { server, port } = await start({
    client: {
      page: PAGE,
      auth: NO_AUTH,
      webhook: () => null,
      upgrade: (_request, socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    },
  });
  const silent = connect(port, "127.0.0.1");
  const upgraded = connect(port, "127.0.0.1");
  upgraded.write("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
  await once(upgraded, "data");
  const ended = Promise.all([silent, upgraded].map((socket) => once(socket.resume(), "close")));
  const startMs = performance.now();
  await Promise.all([server.close(200), server.close(200)]);
  expect(performance.now() - startMs).toBeLessThan(3_000);
  await ended;
});

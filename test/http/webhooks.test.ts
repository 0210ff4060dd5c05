/** The door for platforms that bring updates, on a real port: who is asked, with what, and what is answered. */
import pino from "pino";
import { afterEach, expect, test } from "vitest";
import { createHttpServer, type HttpServer } from "../../src/http/server.js";
import type { WebhookCall } from "../../src/http/webhooks.js";

const open: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close(100)));
});

async function start(answer: (call: WebhookCall) => Promise<number>): Promise<string> {
  const server = await createHttpServer({
    host: "127.0.0.1",
    port: 0,
    role: "all",
    version: "1",
    logger: pino({ level: "silent" }),
    readiness: async () => [],
    metrics: null,
    client: {
      upgrade: null,
      page: { version: "1", model: "demo", isDemo: true },
      auth: { token: "t", issue: () => Promise.reject(new Error("unreachable")), maxPerMinute: 1 },
      webhook: (channel) => (channel === "chat" ? answer : null),
    },
  });
  open.push(server);
  return `http://127.0.0.1:${(await server.listen()).port}`;
}

test("the channel gets the body as it came and its headers, and decides the status", async () => {
  const calls: WebhookCall[] = [];
  const url = await start(async (call) => {
    calls.push(call);
    return calls.length === 1 ? 200 : 503;
  });
  const post = (body: string) =>
    fetch(`${url}/chat/webhook`, { method: "POST", body, headers: { "content-type": "application/json", "x-s": "1" } });
  expect((await post('{"a":1}')).status).toBe(200);
  expect((await post("no json")).status).toBe(503);
  expect(calls.map(({ body, headers }) => [body, headers["x-s"]])).toEqual([
    ['{"a":1}', "1"],
    ["no json", "1"],
  ]);
});

test("no other channel has such a door, and a failure of the handler is no success", async () => {
  const url = await start(() => Promise.reject(new Error("secret")));
  expect((await fetch(`${url}/other/webhook`, { method: "POST" })).status).toBe(404);
  expect((await fetch(`${url}/chat/webhook`)).status).toBe(404);
  const failed = await fetch(`${url}/chat/webhook`, { method: "POST", body: "{}" });
  expect(failed.status).toBe(500);
});

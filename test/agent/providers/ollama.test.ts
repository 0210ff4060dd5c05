/**
 * Looking for an Ollama: what it lists, and every way in which it may not be there.
 */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { findOllamaModel } from "../../../src/agent/providers/ollama.js";

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function find(address: string) {
  const reasons: unknown[] = [];
  const model = await findOllamaModel({ address, onAbsent: (reason) => reasons.push(reason) });
  return { model, reasons };
}

test.each<[unknown, string | null]>([
  [{ models: [{ name: "qwen3:8b" }, { name: "llama3.2:latest" }] }, "qwen3:8b"],
  [{ models: [{ name: "nomic-embed-text:latest" }, { name: "qwen3:8b" }] }, "qwen3:8b"],
  [{ models: [{ name: "nomic-embed-text:latest" }] }, null],
  [{ models: [] }, null],
  [{ models: [null, 1, {}, { name: 1 }, { name: "two words" }] }, null],
  [{ models: "x" }, null],
  [[], null],
  [null, null],
])("%j: %j", async (listed, model) => {
  const paths: unknown[] = [];
  const address = await serve((request, response) => {
    paths.push(request.url);
    response.end(JSON.stringify(listed));
  });
  expect(await find(`${address}/v1`)).toEqual({ model, reasons: [] });
  expect(paths).toEqual(["/api/tags"]);
});

test("a server that says something else is none", async () => {
  const { model, reasons } = await find(await serve((_request, response) => response.end("<html>")));
  expect([model, reasons.length]).toEqual([null, 1]);
});

test("a port where nobody listens is none, at once", async () => {
  const address = await serve(() => undefined);
  await new Promise((resolve) => servers.pop()?.close(resolve));
  const { model, reasons } = await find(address);
  expect([model, reasons.length]).toEqual([null, 1]);
});

test.each([
  ["before its headers", () => undefined],
  ["in the middle of its list", (_request, response) => response.write('{"models":[')],
] as Array<[string, RequestListener]>)("a server that stays silent %s is not waited for", async (_name, handler) => {
  const begunMs = performance.now();
  const { model, reasons } = await find(await serve(handler));
  expect([model, reasons.length]).toEqual([null, 1]);
  const tookMs = performance.now() - begunMs;
  expect(tookMs).toBeGreaterThan(250);
  expect(tookMs).toBeLessThan(3000);
});

/**
 * What the benches share: a Redis and a home of their own, a gateway process, a model that answers at once or slowly, and
 * a table. Nothing here measures. Everything is bounded in count and time and ends with `close`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";

export const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

/** A folder of its own; removed by `close`. */
export async function openHome() {
  const home = await mkdtemp(path.join(tmpdir(), "ng-bench-"));
  return { home, close: () => rm(home, { recursive: true, force: true }) };
}

/** A Redis as the gateway would start it, on a unix socket. */
export async function openRedis(folder) {
  const socket = path.join(folder, "r.sock");
  const args = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "", "--appendonly", "yes"];
  const child = spawn("redis-server", args, { stdio: "ignore" });
  const probe = new Redis({ path: socket, retryStrategy: () => 20, maxRetriesPerRequest: null });
  probe.on("error", () => "not yet");
  await probe.ping();
  return {
    socket,
    probe,
    close: async () => {
      probe.disconnect();
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

/** `nanogate gateway` with this configuration; resolves when it is ready. */
export async function openGateway(home, config, args = []) {
  const file = path.join(home, "config.json");
  await writeFile(file, JSON.stringify(config));
  const env = { PATH: process.env.PATH, HOME: home, NANOGATE_HOME: home, LOG_LEVEL: "info" };
  const startedMs = performance.now();
  const child = spawn(process.execPath, [MAIN, "gateway", "-c", file, ...args], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  const port = await new Promise((resolve, reject) => {
    child.once("exit", () => reject(new Error(`the gateway ended:\n${log}`)));
    child.stderr.on("data", (text) => {
      if (log.length < 1_000_000) log += text;
      const ready = log.split("\n").find((line) => line.includes('"msg":"ready"'));
      if (ready !== undefined) resolve(JSON.parse(ready).port);
    });
  });
  return {
    port,
    pid: child.pid,
    readyMs: performance.now() - startedMs,
    close: async () => {
      child.removeAllListeners("exit");
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/**
 * A model on OpenAI's wire that streams `chunks` pieces, `gapMs` apart. `seen` maps the newest user text to when its request
 * was complete and when the last byte was written (ms).
 */
export async function openModel({ chunks, gapMs }) {
  const seen = new Map();
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const arrivedMs = performance.now();
    if (request.method !== "POST" || body === "") return response.writeHead(404).end();
    const text = JSON.parse(body).messages.findLast((row) => row.role === "user").content;
    const times = { arrivedMs, lastByteMs: 0 };
    seen.set(text, times);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (choice) =>
      response.write(`data: ${JSON.stringify({ id: "b", object: "chat.completion.chunk", choices: [choice] })}\n\n`);
    for (let i = 0; i < chunks; i += 1) {
      if (gapMs > 0) await new Promise((resolve) => setTimeout(resolve, gapMs));
      send({ index: 0, delta: { content: `word${i} ` } });
    }
    send({ index: 0, delta: {}, finish_reason: "stop" });
    times.lastByteMs = performance.now();
    response.end("data: [DONE]\n\n");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    seen,
    baseUrl: `http://127.0.0.1:${server.address().port}/v1`,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

/** Resident memory of a process, MiB. */
export async function memoryOf(pid) {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024;
}

export function percentile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

export const median = (values) => percentile(values, 0.5);

/** Prints rows of texts as a table. */
export function printTable(title, header, rows) {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => String(row[column] ?? "").length)));
  const line = (row) => `| ${row.map((cell, column) => String(cell ?? "").padEnd(widths[column])).join(" | ")} |`;
  console.log(`\n${title}\n`);
  console.log(line(header));
  console.log(`|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
  for (const row of rows) console.log(line(row));
}

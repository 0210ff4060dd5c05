/** What appending a turn costs in a session of 10 rows and in one of 50,000, taken in turns. */
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { createLogger } from "../dist/logger.js";
import { nodeIo } from "../dist/session/io.js";
import { SessionManager } from "../dist/session/manager.js";
import { median, openHome } from "./support.mjs";

const TURNS = 200;

function leaseOf(key, fence) {
  const { signal } = new AbortController();
  return { key, fence, signal, assertHeld: () => {}, raise: async () => {} };
}

export async function sessionAppend() {
  const { home, close } = await openHome();
  const folder = path.join(home, "sessions");
  await mkdir(folder);
  const tools = {
    io: nodeIo,
    faults: () => {},
    logger: createLogger({ level: "error", secrets: [] }),
    clock: Date.now,
  };
  const manager = new SessionManager({ folder, fsync: "exit", cacheSize: 8, tools });
  const guard = { check: async () => {}, commit: async () => {} };
  let fence = 1;
  const known = new Map();
  const turn = async (key, rows) => {
    fence += 1;
    const open = await manager.open(leaseOf(key, fence), known.get(key) ?? null, guard);
    const startedMs = performance.now();
    await open.append(rows);
    await open.sync();
    const ms = performance.now() - startedMs;
    known.set(key, open.state());
    await open.close();
    return ms;
  };
  const rowsOf = (count) =>
    Array.from({ length: count }, (_, i) => ({
      role: i % 2 === 0 ? "user" : "assistant",
      content: `row ${i} ${"x".repeat(200)}`,
    }));
  await turn("bench:short", rowsOf(10));
  for (let i = 0; i < 10; i += 1) await turn("bench:long", rowsOf(5000));
  const short = [];
  const long = [];
  for (let i = 0; i < TURNS; i += 1) {
    short.push(await turn("bench:short", rowsOf(2)));
    long.push(await turn("bench:long", rowsOf(2)));
  }
  await close();
  return [
    ["10 rows", median(short).toFixed(3), "1.00"],
    ["50,000 rows", median(long).toFixed(3), (median(long) / median(short)).toFixed(2)],
  ];
}

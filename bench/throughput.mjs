/**
 * No-op turns a second in one process: the bare bus (script, BullMQ, empty turn) and the whole line (session file, model
 * `demo`, events) with fsync off and on, over 100 sessions and over one, in the same run. Ratios count, not rates.
 */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { loadConfig } from "../dist/config/load.js";
import { createGateway } from "../dist/gateway.js";
import { createLogger } from "../dist/logger.js";
import { median, openHome, openRedis } from "./support.mjs";

const MESSAGES = 800;
const ROUNDS = 3;
const CONCURRENCY = 32;

function messageIn(chatId, text) {
  const route = { via: "events", account: "bench", channel: "bench", chatId, isStreaming: true };
  const base = {
    kind: "message",
    channel: "bench",
    senderId: "a",
    media: [],
    role: "user",
    isOwner: false,
    metadata: {},
  };
  return { ...base, id: randomUUID(), chatId, content: text, timestamp: new Date().toISOString(), route };
}

async function drained(redis, prefix) {
  for (;;) {
    const waiting = await redis.probe.keys(`${prefix}:*mb:*`);
    if (waiting.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Turns a second, after a round that is not counted: files are made, code is compiled. */
async function warmRate(line) {
  await rate(line);
  return rate(line);
}

async function rate({ redis, prefix, bus, sessions }) {
  const startedMs = performance.now();
  for (let i = 0; i < MESSAGES; i += 40) {
    const batch = Array.from({ length: 40 }, (_, j) => messageIn(`c${(i + j) % sessions}`, `m${i + j}`));
    await Promise.all(
      batch.map((message) => bus.publishInbound(message, { debounceMs: 0, joins: false, wakesParked: false })),
    );
  }
  await drained(redis, prefix);
  return (MESSAGES / (performance.now() - startedMs)) * 1000;
}

async function openLine(home, redis, { fsync, prefix }) {
  const file = path.join(home, `${prefix}.json`);
  const config = {
    workspace: path.join(home, prefix),
    redis: { url: redis.socket, prefix },
    gateway: { port: 0, concurrency: CONCURRENCY },
    agent: { model: "demo" },
    session: { fsync },
    channels: { websocket: { enabled: false } },
  };
  await writeFile(file, JSON.stringify(config));
  const loaded = await loadConfig({ file, env: { NANOGATE_HOME: home }, cwd: home });
  const logger = createLogger({ level: "error", secrets: [] });
  const { signal } = new AbortController();
  const gateway = await createGateway({ loaded, role: "all", logger, signal });
  return { gateway, loaded, logger };
}

/** The same scripts and queue, with a turn that only settles. */
async function openBare(redis, prefix) {
  const { connectRedisStack } = await import("../dist/redis/stack.js");
  const { Bus } = await import("../dist/bus/bus.js");
  const { noMetrics: metrics } = await import("../dist/metrics.js");
  const faults = () => {};
  const logger = createLogger({ level: "error", secrets: [] });
  const stack = await connectRedisStack(
    {
      address: { socketPath: redis.socket },
      clientName: "nanogate:bench",
      prefix,
      workspaceId: "bench",
      isWorker: true,
      leaseMs: 15_000,
      sweepMs: 3000,
      deadlineMs: 5000,
      maxTurns: null,
      maxMailbox: 10_000,
      maxTries: 3,
      giveUpNotice: "",
      onUnreachable: null,
      faults,
      logger,
      metrics,
    },
    AbortSignal.timeout(10_000),
  );
  const { intake, holding, ready, leases } = stack;
  const bus = new Bus({ intake, holding, ready, isUnified: false, faults, logger, metrics });
  const consumer = await ready.consume(CONCURRENCY, async (key, wake) => {
    const taken = await leases.open(key, wake);
    if (!taken.ok) return;
    const { fence } = taken.claim;
    for (let next = taken.claim.next?.message; next !== undefined; ) {
      const result = { outcome: "completed", text: "", turnId: `t${next.key}`, usage: null };
      const settled = [{ inboundKey: next.key, result }];
      const done = await bus.settle({
        key,
        fence,
        settled,
        outgoing: [],
        file: null,
        afterwards: "next",
        honoursStop: true,
      });
      next = done.kind === "next" ? done.message : undefined;
    }
  });
  return {
    bus,
    close: async () => {
      await consumer.close();
      await stack.close();
    },
  };
}

export async function throughput() {
  const { home, close } = await openHome();
  const redis = await openRedis(home);
  const rates = new Map();
  const note = (name, value) => rates.set(name, [...(rates.get(name) ?? []), value]);
  for (let round = 0; round < ROUNDS; round += 1) {
    const bare = await openBare(redis, `bare${round}`);
    note("bare bus, 100 sessions", await warmRate({ redis, prefix: `bare${round}`, bus: bare.bus, sessions: 100 }));
    note("bare bus, 1 session", await warmRate({ redis, prefix: `bare${round}`, bus: bare.bus, sessions: 1 }));
    await bare.close();
    for (const fsync of ["exit", "turn"]) {
      const prefix = `${fsync}${round}`;
      const { gateway } = await openLine(home, redis, { fsync, prefix });
      const label = fsync === "exit" ? "whole line, fsync off" : "whole line, fsync on";
      note(`${label}, 100 sessions`, await warmRate({ redis, prefix, bus: gateway.bus, sessions: 100 }));
      note(`${label}, 1 session`, await warmRate({ redis, prefix, bus: gateway.bus, sessions: 1 }));
      await gateway.stop();
    }
  }
  await redis.close();
  await close();
  const bareRate = median(rates.get("bare bus, 100 sessions"));
  return [...rates].map(([name, values]) => [name, median(values).toFixed(0), (median(values) / bareRate).toFixed(2)]);
}

/**
 * Delivery over a real Redis to a platform on a local socket: from an entry of the outbox to the platform's socket, one by one
 * and many chats at once; and 100 chats that stream at the same time: changes an interval and chat, memory. The channel is as
 * thin as one can be, so what is measured is ours.
 */
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import v8 from "node:v8";
import { runInNewContext } from "node:vm";
import { createSystemClock } from "../dist/channels/clock.js";
import { ChannelManager } from "../dist/channels/manager.js";
import { createLogger } from "../dist/logger.js";
import { noMetrics } from "../dist/metrics.js";
import { connectRedisStack } from "../dist/redis/stack.js";
import { openHome, openRedis, percentile } from "./support.mjs";

const ANSWERS = 400;
const FLOOD_CHATS = 100;
const STREAMING_CHATS = 100;
const ROUNDS = 6;
const ROUND_MS = 5_000;
const DELTA_EVERY_MS = 50;
const INTERVAL_MS = 1_000;
const ACCOUNT = "bench";

/** A platform that takes every call and notes when it arrived: `{ kind, chat, text, atMs }`. */
async function openPlatform() {
  const calls = [];
  const server = createServer(async (incoming, response) => {
    const atMs = performance.now();
    let body = "";
    for await (const piece of incoming) body += piece;
    calls.push({ ...JSON.parse(body), atMs });
    response.end(`{"id":"${calls.length}"}`);
  });
  // No connection ends by itself: that would be a failure of the bench.
  server.keepAliveTimeout = 0;
  await once(server.listen(0, "127.0.0.1"), "listening");
  const agent = new Agent({ keepAlive: true });
  const call = (what) =>
    new Promise((resolve, reject) => {
      const to = { port: server.address().port, host: "127.0.0.1", method: "POST", agent };
      const outgoing = request(to, async (response) => {
        let answer = "";
        for await (const piece of response) answer += piece;
        resolve(JSON.parse(answer).id);
      });
      outgoing.on("error", reject);
      outgoing.end(JSON.stringify(what));
    });
  return {
    calls,
    call,
    close: () => {
      agent.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}

function thinChannel(platform) {
  const textOf = ({ message, part }) => ({ chat: message.chatId, text: part.text });
  return {
    name: "bench",
    account: ACCOUNT,
    start: async () => {},
    stop: async () => {},
    health: () => ({ state: "running" }),
    parts: ({ content }) => [{ text: content }],
    send: async (call) => ({ platformId: await platform.call({ kind: "send", ...textOf(call) }) }),
    repeatableMs: 0,
    limits: ({ chatId }) => [
      { bucket: "bot", count: 1e6, perMs: 1000, cost: 1 },
      { bucket: `chat:${chatId}`, count: 1e6, perMs: 1000, cost: 1 },
    ],
    live: {
      workingEveryMs: 4000,
      way: () => "edits",
      intervalMs: () => INTERVAL_MS,
      edit: async (_, call) => void (await platform.call({ kind: "edit", ...textOf(call) })),
      draft: async () => {},
      remove: async () => {},
      working: async () => {},
    },
  };
}

async function openLine(home) {
  const logger = createLogger({ level: "error", secrets: [] });
  const redis = await openRedis(home);
  const common = { logger, metrics: noMetrics, faults: () => {} };
  const bus = { isWorker: false, leaseMs: 15_000, sweepMs: 3000, deadlineMs: 5000, maxTurns: null, maxMailbox: 1000 };
  const names = { clientName: "bench", prefix: "bench", workspaceId: "bench", address: { socketPath: redis.socket } };
  const rest = { maxTries: 3, giveUpNotice: "", onUnreachable: null };
  const stack = await connectRedisStack({ ...common, ...bus, ...names, ...rest }, AbortSignal.timeout(10_000));
  const platform = await openPlatform();
  const manager = new ChannelManager({
    ...common,
    channels: [thinChannel(platform)],
    outbox: stack.outbox,
    accept: async () => ({ status: "ignored" }),
    admit: async () => ({ kind: "refused", why: "a bench" }),
    media: {},
    memory: stack.accountMemory,
    limiter: stack.limiter,
    live: stack.liveEvents,
    clock: createSystemClock(),
    wallMs: Date.now,
    settings: { leaseMs: 15_000, drainMs: 5000, sendTimeoutMs: 60_000, watchMs: 1000 },
  });
  await manager.start();
  return {
    stack,
    platform,
    close: async () => {
      await manager.stop();
      platform.close();
      await stack.close();
      await redis.close();
    },
  };
}

let seq = 0;
function outgoing(chatId, content, event, turnId = `t${seq}`) {
  seq += 1;
  const route = { via: "outbox", account: ACCOUNT, channel: "bench", chatId, isStreaming: true };
  const fields = { media: [], buttons: [], metadata: {} };
  return {
    route,
    message: { id: `${turnId}.${seq}`, channel: "bench", chatId, content, event, turnId, seq, ...fields },
  };
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(condition) {
  const endMs = performance.now() + 20_000;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error("what the bench waits for did not come");
    await pause(1);
  }
}

/** ms from putting an answer into the outbox until its first byte is at the platform. */
async function toTheSocket({ stack, platform }) {
  const final = { type: "final", streamId: null };
  const times = [];
  for (let i = 0; i < ANSWERS; i += 1) {
    const answer = outgoing(`one-${i % 10}`, `answer ${i}`, final);
    const beganMs = performance.now();
    await stack.intake.reply([answer]);
    await until(() => platform.calls.length > i);
    if (i >= ANSWERS / 4) times.push(platform.calls[i].atMs - beganMs);
    await pause(2);
  }
  platform.calls.length = 0;
  const beganMs = performance.now();
  for (let i = 0; i < FLOOD_CHATS; i += 1) void stack.intake.reply([outgoing(`flood-${i}`, "answer", final)]);
  await until(() => platform.calls.length === FLOOD_CHATS);
  const flood = platform.calls.map(({ atMs }) => atMs - beganMs);
  platform.calls.length = 0;
  return { times, flood };
}

/** What is held in memory, MiB. */
function heapMb() {
  v8.setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().heapUsed / 1048576;
}

/** 100 chats stream at once, some rounds of it; what each chat saw, and what is left in memory after each round. */
async function streaming({ stack, platform }) {
  const chats = Array.from({ length: STREAMING_CHATS }, (_, at) => `stream-${at}`);
  const round = async (name, lastsMs) => {
    const offsets = new Map();
    const endMs = performance.now() + lastsMs;
    while (performance.now() < endMs) {
      const outs = chats.map((chat) => {
        const offset = offsets.get(chat) ?? 0;
        offsets.set(chat, offset + 6);
        return outgoing(chat, "words ", { type: "delta", streamId: `${name}.${chat}`, offset }, `${name}.${chat}`);
      });
      await stack.intake.reply(outs);
      await pause(DELTA_EVERY_MS);
    }
    const previews = platform.calls.splice(0);
    const finals = chats.map((chat) =>
      outgoing(chat, "whole", { type: "final", streamId: `${name}.${chat}` }, `${name}.${chat}`),
    );
    await stack.intake.reply(finals);
    await until(() => platform.calls.filter(({ text }) => text === "whole").length === chats.length);
    await pause(500);
    const answers = platform.calls.splice(0).filter(({ text }) => text === "whole");
    return { previews, answers };
  };
  const shown = { previews: 0, gaps: [], sent: 0, heap: [], cpu: 0 };
  const cpu = process.cpuUsage();
  for (let at = 0; at < ROUNDS; at += 1) {
    const { previews, answers } = await round(`round${at}`, ROUND_MS);
    shown.previews += previews.length;
    shown.sent += answers.filter(({ kind }) => kind === "send").length;
    for (const chat of chats) {
      const mine = previews.filter((call) => call.chat === chat).map(({ atMs }) => atMs);
      for (const [before, atMs] of mine.slice(1).entries()) shown.gaps.push(atMs - mine[before]);
    }
    shown.heap.push(heapMb());
  }
  const { user, system } = process.cpuUsage(cpu);
  shown.cpu = (user + system) / 10 / (ROUNDS * ROUND_MS);
  return shown;
}

export async function delivery() {
  const { home, close } = await openHome();
  const line = await openLine(home);
  const { times, flood } = await toTheSocket(line);
  const shown = await streaming(line);
  await line.close();
  await close();
  const tooClose = shown.gaps.filter((gap) => gap < INTERVAL_MS).length;
  return [
    ["outbox to the platform's socket, p50 (target 3)", percentile(times, 0.5).toFixed(2)],
    ["the same, p99", percentile(times, 0.99).toFixed(2)],
    [`the last of ${FLOOD_CHATS} chats answered at once`, Math.max(...flood).toFixed(1)],
    [`${STREAMING_CHATS} chats streaming: changes in ${(ROUNDS * ROUND_MS) / 1000} s`, String(shown.previews)],
    ["changes of a chat closer than its interval", String(tooClose)],
    ["least time between two changes of a chat", Math.min(...shown.gaps).toFixed(0)],
    ["answers sent anew instead of changed", String(shown.sent)],
    ["CPU while streaming (test included), %", shown.cpu.toFixed(0)],
    ["heap after each round, MiB", shown.heap.map((mib) => mib.toFixed(0)).join(", ")],
  ];
}

/** A bus over a real Redis with everything scaled down, and builders of messages. */
import { randomUUID } from "node:crypto";
import pino from "pino";
import { Bus } from "../../src/bus/bus.js";
import {
  asSessionKey,
  type InboundMessage,
  type OutboundEvent,
  type Outgoing,
  type Route,
  type TurnResult,
} from "../../src/bus/messages.js";
import { timingOf } from "../../src/config/timing.js";
import { noFaults } from "../../src/faults.js";
import { noMetrics } from "../../src/metrics.js";
import { connectRedisStack, type RedisStack, type RedisStackOptions } from "../../src/redis/stack.js";
import { SessionLock } from "../../src/session/lock.js";

export const silent = pino({ level: "silent" });
export const LEASE_MS = 600;

export interface BusFixture {
  stack: RedisStack;
  bus: Bus;
  lock: SessionLock;
  prefix: string;
  close(): Promise<void>;
}

/** Another process, as far as Redis can tell, on the same sessions when `prefix` is the same. */
export async function createBusFixture(
  address: { socketPath: string },
  overrides: Partial<RedisStackOptions> = {},
): Promise<BusFixture> {
  const prefix = overrides.prefix ?? `t${randomUUID().slice(0, 8)}`;
  const options: RedisStackOptions = {
    address,
    clientName: "nanogate:test",
    prefix,
    workspaceId: "ws",
    isWorker: true,
    leaseMs: LEASE_MS,
    sweepMs: 300,
    deadlineMs: 5000,
    maxTurns: null,
    maxMailbox: 1000,
    maxTries: 3,
    giveUpNotice: "Given up.",
    onUnreachable: null,
    faults: noFaults,
    logger: silent,
    metrics: noMetrics,
    ...overrides,
  };
  const stack = await connectRedisStack({ ...options, prefix }, AbortSignal.timeout(10_000));
  const { intake, holding, ready, leases } = stack;
  const bus = new Bus({
    intake,
    holding,
    ready,
    isUnified: false,
    faults: options.faults,
    logger: options.logger,
    metrics: options.metrics,
  });
  const lock = new SessionLock({
    leases,
    timing: timingOf(options.leaseMs),
    monotonicMs: () => performance.now(),
    schedule: (ready) => bus.schedule(ready),
    faults: options.faults,
    logger: options.logger,
    metrics: options.metrics,
  });
  return {
    stack,
    bus,
    lock,
    prefix,
    close: async () => {
      lock.stop();
      await stack.close();
    },
  };
}

export const eventsRoute = (chatId: string): Route => ({
  via: "events",
  account: "web",
  channel: "web",
  chatId,
  isStreaming: true,
});
export const outboxRoute = (chatId: string): Route => ({
  via: "outbox",
  account: "bot",
  channel: "chat",
  chatId,
  isStreaming: true,
});

/** A message of a person; its session is `<channel>:<chat>`. */
export function inbound(content: string, overrides: Partial<InboundMessage> = {}): InboundMessage {
  const route = overrides.route ?? eventsRoute("c1");
  return {
    id: randomUUID(),
    kind: "message",
    channel: route.channel,
    senderId: "alice",
    chatId: route.chatId,
    content,
    timestamp: new Date(0).toISOString(),
    media: [],
    role: "user",
    isOwner: false,
    route,
    metadata: {},
    ...overrides,
  };
}

export const sessionKey = (text: string) => asSessionKey(text);

/** An outgoing message of a turn. */
export function outgoing(route: Route, id: string, content: string, event: OutboundEvent): Outgoing {
  const { channel, chatId } = route;
  const message = { id, channel, chatId, content, media: [], buttons: [], event, turnId: "t", seq: 0, metadata: {} };
  return { route, message };
}

export const completed = (text: string): TurnResult => ({ outcome: "completed", text, turnId: "t", usage: null });

/** How a plain message of a person is published. */
export const PLAIN = { debounceMs: 0, joins: true, wakesParked: false };

/** Waits until a condition holds, looking often; fails after ten seconds. */
export async function until<T>(
  probe: () => Promise<T | null | false | undefined> | T | null | false | undefined,
): Promise<T> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const value = await probe();
    if (value !== null && value !== false && value !== undefined) return value;
    if (performance.now() > deadline) throw new Error("the condition did not come true within ten seconds");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

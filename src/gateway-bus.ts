/**
 * Half of the composition root: Redis (a server named by a URL, or the embedded one), the bus, and the leases. It starts
 * nothing but connections. Invariant: an embedded server is left properly, also when a later part fails to start.
 */
import { GIVE_UP_NOTICE } from "./agent/apology.js";
import { Bus } from "./bus/bus.js";
import { LocalFirst } from "./bus/local-first.js";
import { timingOf } from "./config/timing.js";
import type { FaultHook } from "./faults.js";
import type { GatewayOptions } from "./gateway-options.js";
import type { Metrics } from "./metrics.js";
import type { RedisAddress } from "./redis/client.js";
import { ensureEmbeddedRedis, leaveEmbeddedRedis } from "./redis/embedded.js";
import { clientName } from "./redis/embedded-probe.js";
import { connectRedisStack, type RedisStack } from "./redis/stack.js";
import { SessionLock } from "./session/lock.js";

/** Messages that may wait in one session. */
const MAX_MAILBOX = 1000;
/** Tries of a message before it is given up. */
const MAX_TRIES = 3;
/** How long intake waits for a Redis that is away before it refuses, ms. */
const INTAKE_DEADLINE_MS = 5000;

export interface BusParts {
  stack: RedisStack;
  bus: Bus;
  /** What this process schedules with and works from. */
  ready: LocalFirst;
  lock: SessionLock;
  close(): Promise<void>;
}

/** The server to use, and how to leave it. */
export interface Server {
  address: RedisAddress;
  onUnreachable: (() => Promise<void>) | null;
  leave: () => Promise<unknown>;
}

/** Runs one at a time; who calls meanwhile waits for the same. */
function singleFlight(work: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | null = null;
  return () => {
    current ??= work().finally(() => {
      current = null;
    });
    return current;
  };
}

/** The configured server, or the embedded one, started if need be. Throws `REDIS_MISSING`, `REDIS_UNREACHABLE`. */
export async function findServer({ loaded, logger, signal }: Omit<GatewayOptions, "role">): Promise<Server> {
  const { url, fsync } = loaded.config.redis;
  if (url !== null) {
    const address = url.startsWith("/") ? { socketPath: url } : { url };
    return { address, onUnreachable: null, leave: async () => {} };
  }
  const folder = loaded.redisFolder;
  const { socketPath } = await ensureEmbeddedRedis({ folder, fsync, logger, signal });
  const again = async () =>
    void (await ensureEmbeddedRedis({ folder, fsync, logger, signal: AbortSignal.timeout(60_000) }));
  return {
    address: { socketPath },
    onUnreachable: singleFlight(again),
    leave: () => leaveEmbeddedRedis({ folder, logger, signal: AbortSignal.timeout(15_000) }),
  };
}

/** Connects and builds the bus. Throws `REDIS_MISSING`, `REDIS_TOO_OLD`, or the signal's reason. */
export async function assembleBus(
  options: GatewayOptions & { workspaceId: string; faults: FaultHook; metrics: Metrics },
): Promise<BusParts> {
  const { loaded, role, logger, faults, metrics, workspaceId, signal } = options;
  const { config } = loaded;
  const { leaseMs, maxTurns } = config.gateway;
  const timing = timingOf(leaseMs);
  const server = await findServer(options);
  const { address, onUnreachable } = server;
  const stack = await connectRedisStack(
    {
      address,
      clientName: clientName(),
      prefix: config.redis.prefix,
      workspaceId,
      isWorker: role === "all" || role === "worker",
      leaseMs,
      sweepMs: timing.sweepAfterMs,
      deadlineMs: INTAKE_DEADLINE_MS,
      maxTurns,
      maxMailbox: MAX_MAILBOX,
      maxTries: MAX_TRIES,
      giveUpNotice: GIVE_UP_NOTICE,
      onUnreachable,
      faults,
      logger,
      metrics,
    },
    signal,
  ).catch(async (error: unknown) => {
    await server.leave();
    throw error;
  });
  const { intake, holding, leases } = stack;
  const ready = new LocalFirst(stack.ready);
  const bus = new Bus({ intake, holding, ready, isUnified: config.agent.unifiedSession, faults, logger, metrics });
  const lock = new SessionLock({
    leases,
    timing,
    monotonicMs: () => performance.now(),
    schedule: (wakes) => bus.schedule(wakes),
    faults,
    logger,
    metrics,
  });
  return {
    stack,
    bus,
    ready,
    lock,
    close: async () => {
      await stack.close();
      await server.leave();
    },
  };
}

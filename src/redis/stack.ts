/**
 * Puts the room together: one connection, the scripts, and every port that this room implements. The composition root
 * calls it once. It starts nothing but the connection. Invariant: what had been acknowledged is repeated before anything
 * else reaches a server that lives a new life.
 */
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import { RedisAccountMemory } from "./account-memory.js";
import { countBacklog } from "./backlog.js";
import { RedisBotBudget } from "./bot-budget.js";
import { RedisChatEvents } from "./chat-events.js";
import { type RedisAddress, RedisClient } from "./client.js";
import { Feed } from "./feed.js";
import { RedisHolding } from "./holding.js";
import { HostLease } from "./host-lease.js";
import { RedisIntake } from "./intake.js";
import { Journal } from "./journal.js";
import { createKeys, type Keys } from "./keys.js";
import { RedisLeases } from "./leases.js";
import { RedisRateLimiter } from "./limiter.js";
import { RedisLive, RedisResults } from "./live.js";
import { RedisOutbox } from "./outbox.js";
import { PAIRING_LIMITS, type PairingLimits, RedisPairings } from "./pairings.js";
import { MemoryPressure } from "./pressure.js";
import { createOwner, hostId } from "./processes.js";
import { BullReadyQueue } from "./ready-queue.js";
import { Scripts } from "./scripts.js";
import { RedisTokens, TOKEN_LIMITS } from "./tokens.js";
import { RedisUpkeep } from "./upkeep.js";

export interface RedisStackOptions {
  address: RedisAddress;
  clientName: string;
  prefix: string;
  workspaceId: string;
  isWorker: boolean;
  leaseMs: number;
  sweepMs: number;
  /** How long intake and reads wait for a Redis that is away, ms. */
  deadlineMs: number;
  /** Turns over all processes; null for no bound. */
  maxTurns: number | null;
  maxMailbox: number;
  maxTries: number;
  giveUpNotice: string;
  onUnreachable: (() => Promise<void>) | null;
  faults: FaultHook;
  logger: Logger;
  metrics: Metrics;
}

/** Connects (waiting for a server that is away) and builds the ports. Throws `REDIS_TOO_OLD`. */
export async function connectRedisStack(options: RedisStackOptions, signal: AbortSignal): Promise<RedisStack> {
  const { address, clientName, onUnreachable, logger, metrics } = options;
  const client = new RedisClient({
    address,
    name: clientName,
    commandTimeoutMs: options.deadlineMs,
    onUnreachable,
    logger,
    metrics,
  });
  try {
    await client.connect(signal);
  } catch (error) {
    await client.close();
    throw error;
  }
  const keys = createKeys(options.prefix, options.workspaceId);
  const ready = await BullReadyQueue.connect({ client, keys, faults: options.faults, logger }, signal);
  return buildStack({ client, keys, ready }, options);
}

interface Connected {
  client: RedisClient;
  keys: Keys;
  ready: BullReadyQueue;
}

function buildStack({ client, keys, ready }: Connected, options: RedisStackOptions) {
  const { leaseMs, deadlineMs, maxTries, giveUpNotice, isWorker, sweepMs, logger, metrics } = options;
  const defaults = { owner: createOwner(), leaseMs, maxTries, giveUpNotice, maxTurns: options.maxTurns ?? 0 };
  // A round that fails is followed by the next.
  const upkeepDeadlineMs = Math.min(leaseMs, deadlineMs);
  const scripts = new Scripts({ client, keys, defaults, deadlineMs, metrics });
  const journal = new Journal({ scripts, client, logger, metrics });
  client.onNewLife(() => journal.replay());
  const feed = new Feed({ client, logger, deadlineMs });
  const pressure = new MemoryPressure({ client, deadlineMs: upkeepDeadlineMs, logger, metrics });
  const outbox = new RedisOutbox({ client, scripts, keys, deadlineMs });
  const live = { client, feed, keys, deadlineMs };
  return {
    client,
    intake: new RedisIntake({
      scripts,
      journal,
      limits: { maxMailbox: options.maxMailbox },
      isUnderPressure: () => pressure.isHigh,
    }),
    leases: new RedisLeases({ scripts, isWorker, renewDeadlineMs: leaseMs / 3 }),
    holding: new RedisHolding({ scripts, deadlineMs: leaseMs }),
    upkeep: new RedisUpkeep({ client, scripts, keys, sweepMs, deadlineMs: upkeepDeadlineMs, metrics }),
    ready,
    outbox,
    pressure,
    backlog: (accounts: readonly string[]) => countBacklog({ client, keys, deadlineMs: upkeepDeadlineMs }, accounts),
    hostLease: new HostLease({ scripts, leaseMs, host: hostId(), logger }),
    chatEvents: new RedisChatEvents({ client, scripts, feed, keys, deadlineMs }),
    signals: new RedisLive(live),
    liveEvents: new RedisLive(live),
    limiter: new RedisRateLimiter(scripts),
    /** What an account must know again after a restart. */
    accountMemory: (account: string) => new RedisAccountMemory({ client, keys, deadlineMs }, account),
    results: new RedisResults(live),
    tokens: new RedisTokens({ scripts, limits: TOKEN_LIMITS }),
    /** `hasOwners`: owners are configured, so nobody becomes one by being paired first. */
    pairings: (hasOwners: boolean, limits: PairingLimits = PAIRING_LIMITS) =>
      new RedisPairings({
        run: (name, args, isRefused) => journal.run(name, args, isRefused),
        ...{ client, keys, deadlineMs, limits, hasOwners },
      }),
    botBudget: new RedisBotBudget(scripts),
    close: async () => {
      await ready.close();
      outbox.close();
      feed.close();
      await client.close();
    },
  };
}

/** Every port of this room, and how to end them. */
export type RedisStack = ReturnType<typeof buildStack>;

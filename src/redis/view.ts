/**
 * What a command sees of a workspace in Redis: who runs, how much waits, what failed for good, who is paired. One connection,
 * no queue, no listening. It takes no lease and changes nothing, but for dead letters and pairings that a person decides
 * about. Invariant: looking leaves no key behind.
 */
import type { Depths } from "../bus/ports.js";
import type { Logger } from "../logger.js";
import { noMetrics } from "../metrics.js";
import { countBacklog } from "./backlog.js";
import { type RedisAddress, RedisClient } from "./client.js";
import { createKeys, type Keys } from "./keys.js";
import { RedisOutbox } from "./outbox.js";
import { PAIRING_LIMITS, RedisPairings } from "./pairings.js";
import { createOwner, hostId } from "./processes.js";
import { Scripts } from "./scripts.js";
import type { ServerFacts } from "./server-facts.js";
import { RedisUpkeep } from "./upkeep.js";

export interface RedisViewOptions {
  address: RedisAddress;
  clientName: string;
  prefix: string;
  workspaceId: string;
  /** How long a command waits for a server that went away, ms. */
  deadlineMs: number;
  logger: Logger;
}

/** A process that may hold sessions. */
export interface LiveProcess {
  pid: number;
  /** Whether it runs where this command runs. */
  isHere: boolean;
  isWorker: boolean;
}

/** What waits for delivery in a channel account. */
export interface AccountView {
  account: string;
  waiting: number;
  /** Age of the oldest entry, ms; null when nothing waits. */
  oldestMs: number | null;
  /** Whether a process owns it now. */
  isOwned: boolean;
}

export interface RedisView {
  facts: ServerFacts;
  outbox: RedisOutbox;
  /** `hasOwners`: owners are configured, so nobody becomes one by being paired first. */
  pairings(hasOwners: boolean): RedisPairings;
  depths(): Promise<Depths>;
  processes(): Promise<LiveProcess[]>;
  accounts(): Promise<AccountView[]>;
  /** How many messages and deliveries were given up. */
  deadLetterCounts(): Promise<{ inbound: number; outbound: number }>;
  close(): Promise<void>;
}

interface Parts {
  client: RedisClient;
  keys: Keys;
  deadlineMs: number;
}

/** Connects. Throws `REDIS_TOO_OLD`, or the signal's reason while the server is away. */
export async function connectRedisView(options: RedisViewOptions, signal: AbortSignal): Promise<RedisView> {
  const { address, clientName, deadlineMs, logger } = options;
  const client = new RedisClient({
    address,
    name: clientName,
    commandTimeoutMs: deadlineMs,
    onUnreachable: null,
    logger,
    metrics: noMetrics,
  });
  const keys = createKeys(options.prefix, options.workspaceId);
  try {
    return build({ client, keys, deadlineMs }, await client.connect(signal));
  } catch (error) {
    await client.close();
    throw error;
  }
}

function build(parts: Parts, facts: ServerFacts): RedisView {
  const { client, keys, deadlineMs } = parts;
  // Scripts that look or tend dead letters read none of these.
  const defaults = { owner: createOwner(), leaseMs: 0, maxTries: 0, giveUpNotice: "", maxTurns: 0 };
  const scripts = new Scripts({ client, keys, defaults, deadlineMs, metrics: noMetrics });
  const upkeep = new RedisUpkeep({ client, scripts, keys, sweepMs: 0, deadlineMs, metrics: noMetrics });
  const outbox = new RedisOutbox({ client, scripts, keys, deadlineMs });
  return {
    facts,
    outbox,
    pairings: (hasOwners) =>
      new RedisPairings({
        run: (name, args) => scripts.run(name, args),
        ...{ client, keys, deadlineMs, limits: PAIRING_LIMITS, hasOwners },
      }),
    depths: () => upkeep.depths(),
    processes: () => processesOf(parts),
    accounts: () => accountsOf(parts),
    deadLetterCounts: async () => (await countBacklog(parts, [])).deadLetters,
    close: async () => {
      outbox.close();
      await client.close();
    },
  };
}

/** The server's clock, since that is what its scripts write, ms. */
async function nowMs({ client, deadlineMs }: Parts): Promise<number> {
  const [seconds, micros] = await client.attempt((redis) => redis.time(), deadlineMs);
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

async function processesOf(parts: Parts): Promise<LiveProcess[]> {
  const { client, keys, deadlineMs } = parts;
  const now = Math.floor(await nowMs(parts));
  const alive = (name: "owners" | "workers") =>
    client.attempt((redis) => redis.zrangebyscore(keys.of(name), now, "+inf"), deadlineMs);
  const [owners, workers] = await Promise.all([alive("owners"), alive("workers")]);
  const here = hostId();
  return owners.map((owner) => {
    const [host, pid] = owner.split("/");
    return { pid: Number(pid), isHere: host === here, isWorker: workers.includes(owner) };
  });
}

async function accountsOf(parts: Parts): Promise<AccountView[]> {
  const { client, keys, deadlineMs } = parts;
  const now = await nowMs(parts);
  const names = await Promise.all([namesBelow(parts, keys.of("outbox")), namesBelow(parts, keys.of("accountOwner"))]);
  // What begins with "#" is kept by the same script and is no account.
  const accounts = [...new Set(names.flat())].filter((account) => !account.startsWith("#")).sort();
  return Promise.all(
    accounts.map((account) =>
      client.attempt(async (redis) => {
        const key = keys.of("outbox", account);
        const [waiting, [oldest], until] = await Promise.all([
          redis.xlen(key),
          redis.xrange(key, "-", "+", "COUNT", 1),
          redis.hget(keys.of("accountOwner", account), "until"),
        ]);
        const oldestMs = oldest === undefined ? null : Math.max(0, now - Number.parseInt(oldest[0], 10));
        return { account, waiting, oldestMs, isOwned: Number(until ?? 0) >= now };
      }, deadlineMs),
    ),
  );
}

/** What follows a key's name, for every key of that name. There is no list of accounts; a person can wait for a scan. */
async function namesBelow({ client, deadlineMs }: Parts, start: string): Promise<string[]> {
  const found: string[] = [];
  let cursor = "0";
  do {
    const from = cursor;
    const [next, keys] = await client.attempt(
      (redis) => redis.scan(from, "MATCH", `${start}*`, "COUNT", 1000),
      deadlineMs,
    );
    found.push(...keys.map((key) => key.slice(start.length)));
    cursor = next;
  } while (cursor !== "0");
  return found;
}

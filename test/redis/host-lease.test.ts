/** Two hosts and one workspace on a file system whose appends are not atomic between them. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { noMetrics } from "../../src/metrics.js";
import { RedisClient } from "../../src/redis/client.js";
import { HostLease } from "../../src/redis/host-lease.js";
import { createKeys } from "../../src/redis/keys.js";
import { Scripts } from "../../src/redis/scripts.js";
import { silent, until } from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";

const LEASE_MS = 300;
let redis: TestRedis;
let client: RedisClient;

beforeAll(async () => {
  redis = await TestRedis.start();
  const { address } = redis;
  client = new RedisClient({
    address,
    name: "t",
    commandTimeoutMs: 5000,
    onUnreachable: null,
    logger: silent,
    metrics: noMetrics,
  });
  await client.connect(AbortSignal.timeout(10_000));
});
afterAll(async () => {
  await client.close();
  await redis.stop();
});

function host(name: string, prefix: string): HostLease {
  const defaults = { owner: `${name}/1/1/x`, leaseMs: LEASE_MS, maxTries: 3, giveUpNotice: "", maxTurns: 0 };
  const scripts = new Scripts({
    client,
    keys: createKeys(prefix, "w"),
    defaults,
    deadlineMs: 1000,
    metrics: noMetrics,
  });
  return new HostLease({ scripts, leaseMs: LEASE_MS, host: name, logger: silent });
}

const never = () => {
  throw new Error("lost");
};

it("refuses a second host, lets a second process of the first one in", async () => {
  const [first, again, other] = [host("a", "h1"), host("a", "h1"), host("b", "h1")];
  await first.take(never);
  await again.take(never);
  await expect(other.take(never)).rejects.toMatchObject({ code: "WORKSPACE_UNUSABLE" });
  first.release();
  again.release();
});

it("tells a host that was away for too long", async () => {
  const [first, other] = [host("a", "h2"), host("b", "h2")];
  const lost = new Promise<void>((resolve) => void first.take(resolve));
  const entry = createKeys("h2", "w").of("accountOwner", "#host");
  await until(async () => {
    // As if the first host slept: its entry ends, and the other comes before it wakes.
    await client.raw.hset(entry, "until", "1");
    return other.take(never).then(
      () => true,
      () => false,
    );
  });
  await lost;
  other.release();
});

/**
 * How much waits for delivery, and how much was given up. It only counts, by names it is given: it looks for no account.
 * Invariant: a count costs Redis the same however much there is to count.
 */
import type { RedisClient } from "./client.js";
import type { Keys } from "./keys.js";

export interface Backlog {
  /** Account → deliveries in its outbox. */
  waiting: Map<string, number>;
  /** Messages and deliveries that were given up. */
  deadLetters: { inbound: number; outbound: number };
}

/** Counts. Throws `BUS_UNAVAILABLE`. */
export async function countBacklog(
  { client, keys, deadlineMs }: { client: RedisClient; keys: Keys; deadlineMs: number },
  accounts: readonly string[],
): Promise<Backlog> {
  return client.attempt(async (redis) => {
    const [inbound, outbound, ...lengths] = await Promise.all([
      redis.hlen(keys.of("deadIn")),
      redis.hlen(keys.of("deadOut")),
      ...accounts.map((account) => redis.xlen(keys.of("outbox", account))),
    ]);
    const waiting = new Map(accounts.map((account, index) => [account, lengths[index] ?? 0]));
    return { waiting, deadLetters: { inbound, outbound } };
  }, deadlineMs);
}

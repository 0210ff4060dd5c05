/**
 * Part of the composition root: what only others can tell about how much waits and runs, asked when metrics are read.
 * Invariant: while Redis is away it says so and waits for nothing.
 */
import type { Sampler } from "./gateway-metrics.js";
import type { Metrics } from "./metrics.js";
import type { RedisStack } from "./redis/stack.js";

/** What is asked; `stack` is null until Redis was reached. */
export interface Sampled {
  stack: Pick<RedisStack, "client" | "upkeep" | "backlog"> | null;
  /** Channel accounts with an outbox that this process serves. */
  accounts: readonly string[];
}

/** Asks Redis once for everything. */
export function samplerOf(asked: () => Sampled): Sampler {
  return async (metrics) => {
    const { stack, accounts } = asked();
    const isUp = stack?.client.isReady === true;
    metrics.set("redis_up", {}, isUp ? 1 : 0);
    if (stack === null || !isUp) return;
    try {
      await sample(metrics, stack, accounts);
    } catch (error) {
      metrics.set("redis_up", {}, 0);
      throw error;
    }
  };
}

async function sample(
  metrics: Metrics,
  stack: NonNullable<Sampled["stack"]>,
  accounts: readonly string[],
): Promise<void> {
  const [depths, backlog] = await Promise.all([stack.upkeep.depths(), stack.backlog(accounts)]);
  const { scheduled, running, parked, waitingForSlot, workers, oldestScheduledMs } = depths;
  for (const [state, value] of Object.entries({ scheduled, running, parked, waiting_for_slot: waitingForSlot }))
    metrics.set("sessions", { state }, value);
  metrics.set("workers", {}, workers);
  metrics.set("oldest_waiting_seconds", {}, (oldestScheduledMs ?? 0) / 1000);
  for (const [account, value] of backlog.waiting) metrics.set("outbox_waiting", { account }, value);
  const { inbound, outbound } = backlog.deadLetters;
  metrics.set("dead_letters", { direction: "inbound" }, inbound);
  metrics.set("dead_letters", { direction: "outbound" }, outbound);
}

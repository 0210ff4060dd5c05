/**
 * Part of the composition root: can this process do its work? What counts is progress, not connections: a connected
 * consumer that fetches nothing is not ready. It only asks. Invariant: a process that is merely busy is ready.
 */

import type { Consumer } from "./bus/ports.js";
import type { UpkeepLoop } from "./bus/upkeep-loop.js";
import type { ChannelManager } from "./channels/manager.js";
import type { Role } from "./gateway-options.js";
import type { Problem } from "./http/health.js";
import type { RedisStack } from "./redis/stack.js";

/** What is asked; null for what has not started yet. */
export interface Readiness {
  stack: RedisStack | null;
  upkeep: UpkeepLoop | null;
  worker: { consumer: Consumer; isBusy: () => boolean } | null;
  channels: ChannelManager | null;
}

const REDIS_AWAY: Problem = {
  part: "redis",
  problem: "Redis does not answer.",
  advice: "Check that it runs; the gateway goes on by itself.",
};
const STARTING: Problem = { part: "start", problem: "The start goes on.", advice: "Wait, or look at the log." };
const NO_UPKEEP: Problem = {
  part: "upkeep",
  problem: "Lost wake-ups and sessions of dead processes are not looked for.",
  advice: "The log has the reason; start the process anew if it stays.",
};
const NOTHING_FETCHED: Problem = {
  part: "worker",
  problem: "Sessions are ready, this process is free, and no turn is fetched.",
  advice: "Look at the log; start the process anew if it stays.",
};

/** Why this process cannot do its work; empty when it can. `stuckAfterMs`: without progress for so long it is stuck. */
export async function readinessOf(asked: Readiness, role: Role, stuckAfterMs: number): Promise<Problem[]> {
  const { stack, upkeep, channels } = asked;
  if (stack === null) return [REDIS_AWAY];
  const problems: Problem[] = [];
  const silentMs = performance.now() - stack.client.lastAliveMs;
  if (!stack.client.isReady || silentMs > stuckAfterMs) problems.push(REDIS_AWAY);
  else if (upkeep === null) problems.push(STARTING);
  else if (upkeep.silentForMs > stuckAfterMs) problems.push(NO_UPKEEP);
  else if (role === "all" || role === "worker") problems.push(...(await workerProblems(asked, stack, stuckAfterMs)));
  for (const [name, health] of channels?.health() ?? []) {
    if (health.state === "failed") problems.push({ part: name, problem: health.problem, advice: health.advice });
  }
  return problems;
}

async function workerProblems({ worker }: Readiness, stack: RedisStack, stuckAfterMs: number): Promise<Problem[]> {
  if (worker === null) return [STARTING];
  if (!worker.consumer.isRunning()) return [NOTHING_FETCHED];
  if (worker.isBusy()) return [];
  const { oldestScheduledMs, waitingForSlot } = await stack.upkeep.depths();
  const isLate = oldestScheduledMs !== null && oldestScheduledMs > stuckAfterMs;
  return isLate && waitingForSlot === 0 ? [NOTHING_FETCHED] : [];
}

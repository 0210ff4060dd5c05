/**
 * Upkeep over Redis: taking sessions from processes that are gone and finding wake-ups that were lost. Run by every
 * process from time to time; it adds no job. Invariant: a session is taken by raising its fence first, so its old
 * holder is out before the next one is in.
 */
import type { SessionKey } from "../bus/messages.js";
import type { Depths, Upkeep, Wake } from "../bus/ports.js";
import type { Metrics } from "../metrics.js";
import type { RedisClient } from "./client.js";
import { wakesFrom } from "./intake.js";
import type { Keys } from "./keys.js";
import { deadOwners } from "./processes.js";
import { integer, list, text } from "./reply.js";
import type { Scripts } from "./scripts.js";

export interface UpkeepDeps {
  client: RedisClient;
  scripts: Scripts;
  keys: Keys;
  /** A session that is due for longer than this and was not opened is looked at, ms. */
  sweepMs: number;
  /** Calls are not repeated for longer than this: the next round comes anyway. */
  deadlineMs: number;
  metrics: Metrics;
}

export class RedisUpkeep implements Upkeep {
  readonly #deps: UpkeepDeps;

  constructor(deps: UpkeepDeps) {
    this.#deps = deps;
  }

  async reap(): Promise<Wake[]> {
    const { client, scripts, keys, deadlineMs, metrics } = this.#deps;
    const owners = await client.attempt((redis) => redis.zrange(keys.of("owners"), "0", "-1"), deadlineMs);
    const reply = list(await scripts.run("reap", { dead: deadOwners(owners) }, deadlineMs));
    metrics.count("reaped_sessions_total", {}, list(reply[1]).length);
    return wakesFrom(reply[0]);
  }

  async sweep(jobWaits: (wake: Wake) => Promise<boolean>): Promise<Wake[]> {
    const { scripts, sweepMs, deadlineMs, metrics } = this.#deps;
    const overdue = list(await scripts.run("overdue", { sweepMs, limit: 200 }, deadlineMs));
    const wakes: Wake[] = [];
    for (const row of overdue) {
      const [key, wake] = list(row);
      const seen = { key: text(key) as SessionKey, wake: integer(wake), delayMs: 0 };
      if (await jobWaits(seen)) continue;
      const reply = list(await scripts.run("rewake", { session: seen.key, wake: seen.wake }, deadlineMs));
      wakes.push(...wakesFrom(reply[0]));
    }
    metrics.count("swept_sessions_total", {}, wakes.length);
    return wakes;
  }

  async depths(): Promise<Depths> {
    const reply = list(await this.#deps.scripts.run("depths", {}, this.#deps.deadlineMs)).map(integer);
    const [scheduled = 0, running = 0, parked = 0, waitingForSlot = 0, workers = 0, oldest = -1] = reply;
    return { scheduled, running, parked, waitingForSlot, workers, oldestScheduledMs: oldest < 0 ? null : oldest };
  }
}

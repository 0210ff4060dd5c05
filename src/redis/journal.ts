/**
 * What this process had acknowledged in the last seconds, so that it can be repeated when Redis comes back having lost
 * its newest moments (`everysec` may lose one, a hung disk five). It repeats; it does not decide what is lost: every
 * script in it is harmless where its first run survived. Invariant: repeats keep the order of acknowledgement, and what
 * was refused is never among them.
 */
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { RedisClient } from "./client.js";
import { isOutage } from "./outage.js";
import type { ScriptName, Scripts } from "./scripts.js";

interface Entry {
  at: number;
  script: ScriptName;
  args: object;
}

/** How far back before the end of its life a roll-back of Redis is covered, ms. */
export const REPLAY_WINDOW_MS = 15_000;

export interface JournalDeps {
  scripts: Scripts;
  client: RedisClient;
  logger: Logger;
  metrics: Metrics;
}

export class Journal {
  readonly #deps: JournalDeps;
  #entries: Entry[] = [];

  constructor(deps: JournalDeps) {
    this.#deps = deps;
  }

  /** Runs a script and remembers it once it is acknowledged; `isRefused`: its reply says that nothing was done. */
  async run(script: ScriptName, args: object, isRefused: (reply: unknown) => boolean = () => false): Promise<unknown> {
    const reply = await this.#deps.scripts.run(script, args);
    if (isRefused(reply)) return reply;
    const { lastAliveMs } = this.#deps.client;
    this.#entries.push({ at: lastAliveMs, script, args });
    const oldest = this.#entries[0];
    if (oldest !== undefined && oldest.at < lastAliveMs - 2 * REPLAY_WINDOW_MS) this.#forget();
    return reply;
  }

  /**
   * Repeats what was acknowledged in the window before the server was last seen alive, oldest first. What it repeats
   * counts as acknowledged anew: this life may end as suddenly as the last one. Throws when the server is gone again.
   */
  async replay(): Promise<void> {
    this.#forget();
    const entries = [...this.#entries];
    for (const { script, args } of entries) await this.#repeat(script, args);
    const now = performance.now();
    for (const entry of entries) entry.at = now;
    this.#deps.metrics.count("replayed_entries_total", {}, entries.length);
  }

  /** One that the server cannot carry out must not keep the others, and everything after them, out. */
  async #repeat(script: ScriptName, args: object): Promise<void> {
    try {
      await this.#deps.scripts.repeatNow(script, args);
    } catch (error) {
      if (isOutage(error)) throw error;
      this.#deps.logger.error({ err: error, script }, "something acknowledged could not be repeated");
    }
  }

  #forget(): void {
    const since = this.#deps.client.lastAliveMs - REPLAY_WINDOW_MS;
    this.#entries = this.#entries.filter((entry) => entry.at >= since);
  }
}

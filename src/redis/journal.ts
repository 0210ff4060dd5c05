/**
 * What this process had acknowledged in the last seconds, so that it can be repeated when Redis comes back having lost
 * its newest moments (`everysec` may lose one, a hung disk five). It repeats; it does not decide what is lost: every
 * script in it is harmless where its first run survived. Invariant: repeats keep the order of acknowledgement.
 */
import type { RedisClient } from "./client.js";
import type { ScriptName, Scripts } from "./scripts.js";

interface Entry {
  at: number;
  script: ScriptName;
  args: object;
}

/** How far back before the end of its life a roll-back of Redis is covered, ms. */
export const REPLAY_WINDOW_MS = 15_000;

export class Journal {
  readonly #scripts: Scripts;
  readonly #client: RedisClient;
  #entries: Entry[] = [];

  constructor(deps: { scripts: Scripts; client: RedisClient }) {
    this.#scripts = deps.scripts;
    this.#client = deps.client;
  }

  /** Runs a script and remembers it once it is acknowledged. */
  async run(script: ScriptName, args: object): Promise<unknown> {
    const reply = await this.#scripts.run(script, args);
    this.#entries.push({ at: this.#client.lastAliveMs, script, args });
    const oldest = this.#entries[0];
    if (oldest !== undefined && oldest.at < this.#client.lastAliveMs - 2 * REPLAY_WINDOW_MS) this.#forget();
    return reply;
  }

  /** Repeats what was acknowledged in the window before the server was last seen alive, oldest first. */
  async replay(): Promise<void> {
    this.#forget();
    for (const entry of [...this.#entries]) await this.#scripts.runNow(entry.script, entry.args);
  }

  #forget(): void {
    const since = this.#client.lastAliveMs - REPLAY_WINDOW_MS;
    this.#entries = this.#entries.filter((entry) => entry.at >= since);
  }
}

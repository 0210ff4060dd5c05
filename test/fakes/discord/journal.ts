/**
 * Every call that the fake Discord got over REST, in order of arrival, and how it ended. It judges nothing. Invariant: a
 * call stands here from the moment it arrived, whether it was ever answered or not.
 */

export interface JournalEntry {
  /** `POST /channels/:channel/messages`; the bare path where no route fits. */
  call: string;
  path: string;
  /** The channel or other thing its limit is counted for. */
  major: string;
  body: unknown;
  /** Names of uploaded files. */
  files: readonly string[];
  arrivedMs: number;
  /** Null while it waits, or when the connection was cut. */
  status: number | null;
  /** Discord's error code; null when it went right. */
  code: number | null;
}

export class Journal {
  readonly entries: JournalEntry[] = [];
  /** Calls that no client should ever make: unknown routes, no user agent, another version. */
  readonly strange: string[] = [];
  readonly #watchers = new Set<() => void>();

  add(entry: JournalEntry): JournalEntry {
    this.entries.push(entry);
    this.changed();
    return entry;
  }

  changed(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** The calls of one route; of one channel where it says so. */
  calls(call: string, major?: string): JournalEntry[] {
    return this.entries.filter((entry) => entry.call === call && (major === undefined || entry.major === major));
  }

  /** Calls `watcher` after each change, until the returned function is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }
}

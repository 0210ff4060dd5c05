/**
 * Every call that the fake Telegram got, in order of arrival, and how it ended; and what no client should ever do. It judges
 * nothing. Invariant: a call stands here from the moment it arrived, whether it was ever answered or not; no token does.
 */

export interface JournalEntry {
  method: string;
  params: Readonly<Record<string, unknown>>;
  /** The chat it is about; null for none. */
  chatId: number | null;
  /** Names of uploaded files. */
  files: readonly string[];
  /** `performance.now()`. */
  atMs: number;
  endMs: number | null;
  /** `open`: not yet answered; `cut`: the connection ended before the answer. */
  outcome: "open" | "ok" | "refused" | "cut";
  /** HTTP status of the answer; null while there is none. */
  code: number | null;
  description: string | null;
}

/** Something that a well-behaved client never does. */
export interface Violation {
  kind: "bot_rate" | "chat_rate" | "group_rate" | "during_wait" | "unseen_confirmed" | "strange";
  what: string;
  atMs: number;
}

export class Journal {
  readonly entries: JournalEntry[] = [];
  readonly violations: Violation[] = [];
  readonly #watchers = new Set<() => void>();

  add(entry: JournalEntry): JournalEntry {
    this.entries.push(entry);
    this.changed();
    return entry;
  }

  violated(kind: Violation["kind"], what: string): void {
    this.violations.push({ kind, what, atMs: performance.now() });
  }

  /** Tells all watchers that something has changed. */
  changed(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** The calls of one method; into one chat where it says so. */
  calls(method: string, chatId?: number): JournalEntry[] {
    return this.entries.filter((entry) => entry.method === method && (chatId === undefined || entry.chatId === chatId));
  }

  /** Calls that were refused with this code. */
  refused(code: number): JournalEntry[] {
    return this.entries.filter((entry) => entry.outcome === "refused" && entry.code === code);
  }

  /** Calls `watcher` after each change, until the returned function is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }
}

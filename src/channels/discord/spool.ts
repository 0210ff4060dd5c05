/**
 * Events that could not be stored yet, in a file: Discord cannot be asked again. One line an entry, one line for each that is
 * done; empty again as soon as all are. It replays nothing by itself. Invariants: an entry is on the disk when `add` returns;
 * order is that of adding; a torn or foreign line costs only itself.
 */
import { type FileHandle, mkdir, open, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "../../logger.js";

/** An event as the gateway told it. */
export interface SpooledEvent {
  t: string;
  channelId: string;
  d: unknown;
}

export interface SpoolEntry {
  n: number;
  event: SpooledEvent;
}

export interface SpoolDeps {
  folder: string;
  /** The file's name, without its ending. */
  name: string;
  logger: Logger;
}

const MOST_ENTRIES = 20_000;
const MOST_BYTES = 64_000_000;

export class Spool {
  readonly #file: FileHandle;
  readonly #waiting: Set<number>;
  #next: number;
  #bytes: number;
  /** Everything that is written, in turn. */
  #writes: Promise<unknown> = Promise.resolve();

  private constructor(file: FileHandle, entries: readonly SpoolEntry[], bytes: number) {
    this.#file = file;
    this.#waiting = new Set(entries.map(({ n }) => n));
    this.#next = Math.max(0, ...entries.map(({ n }) => n)) + 1;
    this.#bytes = bytes;
  }

  /** Opens it, with what waits in it, oldest first. Throws errors of the file system. */
  static async open({ folder, name, logger }: SpoolDeps): Promise<{ spool: Spool; entries: SpoolEntry[] }> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const target = path.join(folder, `${name.replaceAll(/[^\w.-]/g, "-")}.jsonl`);
    const entries = entriesOf(await textOf(target), logger);
    const text = entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
    await writeFile(`${target}.new`, text, { mode: 0o600, flush: true });
    await rename(`${target}.new`, target);
    return { spool: new Spool(await open(target, "a", 0o600), entries, Buffer.byteLength(text)), entries };
  }

  /** Keeps an event. Null: it is full, and the event is not kept. Throws errors of the file system. */
  add(event: SpooledEvent): Promise<number | null> {
    const n = this.#next;
    const line = `${JSON.stringify({ n, event })}\n`;
    const bytes = Buffer.byteLength(line);
    if (this.#waiting.size >= MOST_ENTRIES || this.#bytes + bytes > MOST_BYTES) return Promise.resolve(null);
    this.#next += 1;
    this.#bytes += bytes;
    this.#waiting.add(n);
    return this.#inTurn(async () => {
      await this.#file.appendFile(line);
      await this.#file.sync();
      return n;
    });
  }

  /** An entry is stored elsewhere now. */
  done(n: number): Promise<void> {
    return this.#inTurn(async () => {
      this.#waiting.delete(n);
      if (this.#waiting.size > 0) return this.#file.appendFile(`${JSON.stringify({ done: n })}\n`);
      await this.#file.truncate(0);
      this.#bytes = 0;
    });
  }

  close(): Promise<void> {
    return this.#inTurn(() => this.#file.close());
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#writes.then(work);
    // A write that failed is its caller's; the next one goes on.
    this.#writes = done.catch(() => undefined);
    return done;
  }
}

async function textOf(target: string): Promise<string> {
  try {
    return await readFile(target, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

function entriesOf(text: string, logger: Logger): SpoolEntry[] {
  const entries = new Map<number, SpoolEntry>();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const read = readLine(line);
    if (read === null) logger.warn({}, "a line of the spool file could not be read and is left out");
    else if ("done" in read) entries.delete(read.done);
    else entries.set(read.n, read);
  }
  return [...entries.values()];
}

function readLine(line: string): SpoolEntry | { done: number } | null {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null) return null;
    if ("done" in value && typeof value.done === "number") return { done: value.done };
    if (!("n" in value) || typeof value.n !== "number" || !("event" in value)) return null;
    const { event } = value;
    if (typeof event !== "object" || event === null || !("t" in event) || !("channelId" in event) || !("d" in event))
      return null;
    const { t, channelId, d } = event;
    return typeof t === "string" && typeof channelId === "string" ? { n: value.n, event: { t, channelId, d } } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

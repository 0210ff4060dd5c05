/**
 * A session file, open under a lease: fenced first, then read, then appended to. It does not know what rows mean, and
 * whether a file must be repaired is decided by its caller.
 *
 * Invariant: what `content` holds is what a reload of the file would give, after every write and also after a failed one.
 * Nothing is written without asking the lease in the same breath. Writes happen one after another.
 */
import { type FileHandle, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { NanogateError } from "../errors.js";
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import { type SessionIo, syncFolder, unreadable, unwritable } from "./io.js";
import type { SessionReader } from "./jsonl.js";
import type { FileState, Lease } from "./ports.js";
import { readRange } from "./repair.js";
import { type RewriteGuard, replaceFile } from "./rewrite.js";

/** What every session file of a manager is handed. */
export interface FileTools {
  io: SessionIo;
  faults: FaultHook;
  logger: Logger;
  /** Epoch ms. */
  clock: () => number;
}

/** An open file and what is known of it. */
export interface OpenedFile {
  path: string;
  lease: Lease;
  handle: FileHandle;
  inode: string;
  content: SessionReader;
  /** Its name is not yet known to be on the disk. */
  isNew: boolean;
}

/** `error` as ours: what is ours already stays, what the system said becomes `SESSION_UNWRITABLE`. */
export function asUnwritable(path: string, error: unknown): NanogateError {
  return error instanceof NanogateError ? error : unwritable(path, error);
}

/** `{"_type":"fence",…}`: rows of smaller fences behind it do not count. */
export function fenceLine(fence: number): string {
  return JSON.stringify({ _type: "fence", fence });
}

export class SessionFile {
  readonly path: string;
  readonly #lease: Lease;
  readonly #tools: FileTools;
  #handle: FileHandle;
  #inode: string;
  #content: SessionReader;
  #isNew: boolean;
  /** What stands on the disk behind our last good write is not known. */
  #isUnclear = false;
  /** A rewrite did not end well: which file will be the session's is for the next holder to see. */
  #isUnusable = false;
  #last: Promise<void> = Promise.resolve();

  constructor(opened: OpenedFile, tools: FileTools) {
    this.path = opened.path;
    this.#lease = opened.lease;
    this.#handle = opened.handle;
    this.#inode = opened.inode;
    this.#content = opened.content;
    this.#isNew = opened.isNew;
    this.#tools = tools;
  }

  get content(): SessionReader {
    return this.#content;
  }

  /** The file as this holder knows it, for the bus to remember. */
  state(): FileState {
    return { inode: this.#inode, bytes: this.#content.bytes, fence: this.#lease.fence };
  }

  /**
   * Appends whole lines by one write. Throws `LEASE_LOST` before anything is written, or `SESSION_UNWRITABLE`; after the
   * latter the lines that did get to the disk are in `content`, and the next write begins with a newline.
   */
  append(text: string, what: "rows" | "metadata"): Promise<void> {
    return this.#inTurn(async () => {
      const { faults } = this.#tools;
      const before = this.#isUnclear || this.#content.hasTornTail ? "\n" : "";
      const { written, bytes } = await this.#write(before + text, () => what === "rows" && faults("append.before"));
      this.#content.feed(bytes.subarray(0, written));
      this.#assertWhole(written, bytes);
      if (what === "rows") faults("append.after");
    });
  }

  /** Appends without taking it into `content`: what others wrote before it must be read first, by `readTail`. */
  appendUnread(text: string): Promise<void> {
    return this.#inTurn(async () => {
      const { written, bytes } = await this.#write(text, () => undefined);
      this.#assertWhole(written, bytes);
      this.#tools.faults("session.fenced");
    });
  }

  /** Reads what stands in the file behind the bytes seen so far. */
  readTail(): Promise<void> {
    return this.#inTurn(async () => {
      try {
        const end = Number((await this.#handle.stat({ bigint: true })).size);
        for await (const piece of readRange(this.#handle, this.#content.bytes, end)) this.#content.feed(piece);
      } catch (error) {
        throw unreadable(this.path, error);
      }
    });
  }

  /** Flushes the file, and its name where that is new. */
  sync(): Promise<void> {
    return this.#inTurn(async () => {
      try {
        await this.#tools.io.sync(this.#handle);
        if (this.#isNew) await syncFolder(dirname(this.path), this.#tools.io);
        this.#isNew = false;
      } catch (error) {
        throw unwritable(this.path, error);
      }
    });
  }

  /** Throws `SESSION_UNWRITABLE` when the name leads to another file now: what was appended would not be found again. */
  async assertInPlace(): Promise<void> {
    try {
      if (String((await stat(this.path, { bigint: true })).ino) === this.#inode) return;
    } catch (error) {
      throw unwritable(this.path, error);
    }
    throw unwritable(this.path, new Error("the file was replaced while it was in use"));
  }

  /** Replaces the file by one with this text, which must give the rows that `content` holds, one metadata, one fence line. */
  replace(text: string, guard: RewriteGuard): Promise<void> {
    return this.#inTurn(async () => {
      const bytes = Buffer.from(text);
      const { io, faults } = this.#tools;
      try {
        const request = { path: this.path, bytes, lease: this.#lease, guard, io, faults };
        const { handle, inode } = await replaceFile(request);
        const old = this.#handle;
        this.#handle = handle;
        this.#inode = inode;
        this.#content.rebase(bytes.length, this.#lease.fence);
        this.#isUnclear = false;
        await old.close();
      } catch (error) {
        this.#isUnusable = true;
        throw asUnwritable(this.path, error);
      }
    });
  }

  /** Closes it; returns the file's identity if `content` is exactly what it holds, so that it may be kept. Never throws. */
  close(): Promise<string | null> {
    return this.#inTurn(async () => {
      try {
        const stats = await this.#handle.stat({ bigint: true });
        await this.#handle.close();
        const isSure = !this.#isUnclear && !this.#isUnusable && Number(stats.size) === this.#content.bytes;
        return isSure ? identityOf(stats) : null;
      } catch (error) {
        this.#tools.logger.warn({ err: error, session: this.#lease.key }, "a session file could not be closed");
        return null;
      }
    });
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#last.then(step);
    // The caller has the failure; the next step must come after this one, not fail with it.
    this.#last = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }

  async #write(text: string, before: () => void): Promise<{ written: number; bytes: Buffer }> {
    if (this.#isUnusable) throw unwritable(this.path, new Error("a rewrite of the file did not end"));
    const bytes = Buffer.from(text);
    this.#lease.assertHeld();
    before();
    const written = await this.#tools.io.append(this.#handle, bytes).catch((error: unknown) => {
      this.#isUnclear = true;
      throw unwritable(this.path, error);
    });
    return { written, bytes };
  }

  #assertWhole(written: number, bytes: Buffer): void {
    if (written === bytes.length) return;
    throw unwritable(this.path, new Error(`only ${written} of ${bytes.length} bytes were written`));
  }
}

/** File systems give the number of a deleted file to the next one; the time of birth tells them apart. */
function identityOf(stats: { ino: bigint; birthtimeNs: bigint }): string {
  return `${stats.ino}:${stats.birthtimeNs}`;
}

/** A file just opened, before anything was written or read. */
export interface FreshHandle {
  handle: FileHandle;
  size: number;
  inode: string;
  identity: string;
}

/** Opens a file for reading and appending; makes it where there is none. */
export async function openForAppend(path: string): Promise<FreshHandle> {
  try {
    const handle = await open(path, "a+", 0o600);
    const stats = await handle.stat({ bigint: true });
    return { handle, size: Number(stats.size), inode: String(stats.ino), identity: identityOf(stats) };
  } catch (error) {
    throw unwritable(path, error);
  }
}

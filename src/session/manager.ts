/**
 * The sessions of one workspace: opens them for their holders, shows them to anyone, lists, deletes and flushes them. It
 * takes no leases and keeps no session of another workspace.
 *
 * Invariant: the cache only saves reading; every opening compares it with the file. Each object in it has one user.
 */
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { SessionKey } from "../bus/messages.js";
import { LruCache } from "./cache.js";
import { asUnwritable, type FileTools } from "./file.js";
import { isSystemError, syncFolder, syncPath } from "./io.js";
import { sessionFileName } from "./keys.js";
import { filesOf } from "./leftovers.js";
import { listSessions, type SessionSummary, type SessionView, viewSession } from "./listing.js";
import { type CachedSession, OpenSession } from "./open-session.js";
import { openSessionFile } from "./opening.js";
import type { FileState, Lease } from "./ports.js";
import type { RewriteGuard } from "./rewrite.js";

export interface SessionManagerDeps {
  /** The workspace's `sessions` folder; it must exist. */
  folder: string;
  /** When files are flushed: before each settlement, or only by `flushAll`. */
  fsync: "turn" | "exit";
  /** How many closed sessions are kept in memory. */
  cacheSize: number;
  tools: FileTools;
}

export class SessionManager {
  readonly #deps: SessionManagerDeps;
  readonly #cache: LruCache<SessionKey, CachedSession>;
  readonly #unflushed = new Set<string>();
  /** Who has a session open; an opening that `invalidate` came after is no longer here and puts nothing back. */
  readonly #inUse = new Map<SessionKey, Set<OpenSession>>();

  constructor(deps: SessionManagerDeps) {
    this.#deps = deps;
    this.#cache = new LruCache(deps.cacheSize);
  }

  /** How many closed sessions are in memory. */
  get cachedCount(): number {
    return this.#cache.size;
  }

  isCached(key: SessionKey): boolean {
    return this.#cache.has(key);
  }

  /**
   * Opens a session for its holder, made anew where there is none; fences, repairs and compacts its file.
   * `known` is the file at the last settlement. Throws `SESSION_UNREADABLE`, `SESSION_UNWRITABLE`, `LEASE_LOST`.
   */
  async open(lease: Lease, known: FileState | null, guard: RewriteGuard): Promise<OpenSession> {
    const { key } = lease;
    const { tools, fsync } = this.#deps;
    const cached = this.#cache.take(key);
    const opening = { path: this.#pathOf(key), lease, known, cached, guard, tools };
    const file = await openSessionFile(opening);
    const opened: OpenSession = new OpenSession({
      opening,
      file,
      session: cached?.session ?? null,
      fsync,
      onFlush: (path, isFlushed) => void (isFlushed ? this.#unflushed.delete(path) : this.#unflushed.add(path)),
      onClose: (content) => this.#putBack(key, opened, content),
    });
    this.#inUse.set(key, (this.#inUse.get(key) ?? new Set()).add(opened));
    return opened;
  }

  /** The session as its file holds it now, for display; null when there is none. Throws `SESSION_UNREADABLE`. */
  async readSessionFile(key: SessionKey): Promise<SessionView | null> {
    return await viewSession(this.#pathOf(key), key, this.#deps.tools.clock());
  }

  /** Every session in short, newest first. */
  async list(): Promise<SessionSummary[]> {
    return await listSessions(this.#deps.folder, this.#deps.tools.logger);
  }

  /**
   * Deletes a session with everything kept beside its file. Returns whether there was one. The lease must afterwards be
   * given back with no file known. Throws `LEASE_LOST` or `SESSION_UNWRITABLE`.
   */
  async delete(lease: Lease): Promise<boolean> {
    const path = this.#pathOf(lease.key);
    this.invalidate(lease.key);
    lease.assertHeld();
    try {
      const files = await filesOf(path);
      for (const file of files) await rm(file, { force: true });
      if (files.length > 0) await syncFolder(this.#deps.folder, this.#deps.tools.io);
      this.#unflushed.delete(path);
      return files.includes(path);
    } catch (error) {
      throw asUnwritable(path, error);
    }
  }

  /** Forgets what is cached of a session; whoever has it open goes on, and its copy is not kept. */
  invalidate(key: SessionKey): void {
    this.#cache.take(key);
    this.#inUse.delete(key);
  }

  /**
   * Flushes every file written since it was last flushed, and the folder. Goes on past failures, which are logged and
   * tried again by the next call; returns how many files were flushed. [SES-17]
   */
  async flushAll(): Promise<number> {
    const { folder, tools } = this.#deps;
    let flushed = 0;
    for (const path of [...this.#unflushed]) {
      this.#unflushed.delete(path);
      try {
        await syncPath(path, tools.io);
        flushed += 1;
      } catch (error) {
        // Deleted by another process: nothing is left to flush.
        if (isSystemError(error, "ENOENT")) continue;
        this.#unflushed.add(path);
        tools.logger.error({ err: error, file: basename(path) }, "a session file could not be flushed");
      }
    }
    try {
      if (flushed > 0) await syncFolder(folder, tools.io);
    } catch (error) {
      tools.logger.error({ err: error }, "the sessions folder could not be flushed");
    }
    return flushed;
  }

  #pathOf(key: SessionKey): string {
    return join(this.#deps.folder, sessionFileName(key));
  }

  #putBack(key: SessionKey, opened: OpenSession, content: CachedSession | null): void {
    const users = this.#inUse.get(key);
    if (users?.delete(opened) !== true) return;
    if (users.size === 0) this.#inUse.delete(key);
    if (content !== null) this.#cache.put(key, content);
  }
}

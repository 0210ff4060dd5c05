/**
 * A session in the hands of its holder: the session as it is known, and the few ways to change it, each of which is in
 * the file before it returns. It holds no lease itself and does not settle.
 *
 * Invariant: `session` shows exactly what the file holds; the cost of a change does not depend on the session's length.
 */
import type { SessionFile } from "./file.js";
import type { CachedContent, Opening } from "./opening.js";
import { rewriteSessionFile } from "./opening.js";
import type { FileState } from "./ports.js";
import type { Row } from "./row.js";
import { createSession, metadataLine, type Session, type SessionState, sessionState } from "./session.js";
import { storableRows } from "./storable.js";

/** A cached session: its file's content and the object that stands for it. */
export interface CachedSession extends CachedContent {
  session: Session;
}

export interface OpenSessionDeps {
  opening: Opening;
  file: SessionFile;
  /** The object that stood for this session before, if its content is still in use. */
  session: Session | null;
  fsync: "turn" | "exit";
  /** Told that the file has bytes, or a name, that no flush has covered; and that a flush has. */
  onFlush: (path: string, isFlushed: boolean) => void;
  onClose: (cached: CachedSession | null) => void;
}

/** What may be changed beside rows; fields left out stay. */
export interface MetadataChange {
  /** Merged into the session's metadata; a field set to `undefined` leaves it. */
  metadata?: Record<string, unknown>;
  lastConsolidated?: number;
}

export class OpenSession {
  readonly #deps: OpenSessionDeps;
  readonly #session: Session;
  #isClosed = false;

  constructor(deps: OpenSessionDeps) {
    this.#deps = deps;
    const fresh = createSession(this.#source());
    this.#session = deps.session?.messages === fresh.messages ? Object.assign(deps.session, fresh) : fresh;
    deps.onFlush(deps.file.path, false);
  }

  get session(): Session {
    return this.#session;
  }

  /** Ids of tool calls that have no result yet; a call with a `wait` row is among them. */
  get openCalls(): ReadonlySet<string> {
    return this.#deps.file.content.openCalls;
  }

  /**
   * Appends rows by one write, each with this holder's fence and a timestamp. Rows that would break later replay are
   * left out, with a log line. Throws `LEASE_LOST` (nothing written) or `SESSION_UNWRITABLE`.
   */
  async append(batch: readonly Row[]): Promise<void> {
    const { lease, tools } = this.#deps.opening;
    const { rows, dropped } = storableRows(batch, this.openCalls);
    for (const { row, why } of dropped) {
      tools.logger.warn({ session: lease.key, role: row.role, turn: row.turn_id, why }, "a row was not stored");
    }
    if (rows.length === 0) return;
    const timestamp = this.#now();
    const lines = rows.map((row) => JSON.stringify({ timestamp, ...row, fence: lease.fence }));
    await this.#write(`${lines.join("\n")}\n`, "rows");
  }

  /** Appends a metadata line with these changes. Throws a `RangeError` for an index beyond the rows. */
  async setMetadata(change: MetadataChange): Promise<void> {
    const { metadata, lastConsolidated = this.#session.lastConsolidated } = change;
    const rows = this.#session.messages.length;
    if (!Number.isInteger(lastConsolidated) || lastConsolidated < 0 || lastConsolidated > rows) {
      throw new RangeError(`lastConsolidated must be a whole number from 0 to ${rows}`);
    }
    await this.#save({ metadata: { ...this.#session.metadata, ...metadata }, lastConsolidated });
  }

  /**
   * Begins anew, as `/new` asks: history starts behind the present rows, which stay in the file, and the summary of what
   * was before is dropped. [SES-4]
   */
  async clear(): Promise<void> {
    const { _last_summary, ...metadata } = this.#session.metadata;
    const rows = this.#session.messages.length;
    await this.#save({ metadata, lastConsolidated: rows, clearedRows: rows });
  }

  /**
   * Makes this session, which must be empty, what another one is: its rows, times and metadata. Rows without a time get
   * the session's; those that would break replay are left out, and the indexes move with them. Throws `LEASE_LOST` or `SESSION_UNWRITABLE`.
   */
  async adopt(source: Session): Promise<void> {
    const kept = (end: number): number => storableRows(source.messages.slice(0, end), this.openCalls).rows.length;
    const [lastConsolidated, clearedRows] = [kept(source.lastConsolidated), kept(source.clearedRows)];
    const { createdAt, updatedAt, metadata } = source;
    await this.append(source.messages.map((row) => ({ timestamp: updatedAt, ...row })));
    await this.#save({ createdAt, updatedAt, metadata, lastConsolidated, clearedRows });
  }

  /**
   * To be called before a settlement: makes the rows durable if this is so set, and makes sure that a later holder will
   * find them under the session's name. Throws `SESSION_UNWRITABLE`.
   */
  async sync(): Promise<void> {
    const { file, fsync, onFlush } = this.#deps;
    if (fsync === "turn") {
      await file.sync();
      onFlush(file.path, true);
    }
    await file.assertInPlace();
  }

  /** The file as it is now, for the settlement to store. */
  state(): FileState {
    return this.#deps.file.state();
  }

  /** Writes the file anew without stale metadata and fence lines; done by itself at opening when they outnumber rows. */
  async compact(): Promise<void> {
    await rewriteSessionFile(this.#deps.opening, this.#deps.file);
    this.#refresh();
  }

  /** Closes the file. Nothing is flushed and nothing thrown; a second call does nothing. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const identity = await this.#deps.file.close();
    const { content } = this.#deps.file;
    this.#deps.onClose(identity === null ? null : { identity, content, session: this.#session });
  }

  #now(): string {
    return new Date(this.#deps.opening.tools.clock()).toISOString();
  }

  #source() {
    const { content } = this.#deps.file;
    return { key: this.#deps.opening.lease.key, rows: content.rows, line: content.metadata, now: this.#now() };
  }

  #refresh(): void {
    Object.assign(this.#session, sessionState(this.#source()));
  }

  async #save(change: Partial<SessionState>): Promise<void> {
    const { lease } = this.#deps.opening;
    const { createdAt, metadata, lastConsolidated, clearedRows } = this.#session;
    const state = { createdAt, metadata, lastConsolidated, clearedRows, updatedAt: this.#now(), ...change };
    await this.#write(`${metadataLine(lease.key, state, lease.fence)}\n`, "metadata");
  }

  async #write(text: string, what: "rows" | "metadata"): Promise<void> {
    this.#deps.onFlush(this.#deps.file.path, false);
    try {
      await this.#deps.file.append(text, what);
    } finally {
      // After a write that failed half way, too: the session shows what the file holds.
      this.#refresh();
    }
  }
}

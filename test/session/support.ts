/**
 * Small honest stand-ins for what a session is handed: one lease authority in memory, a log that is kept, a clock that
 * stands still. Files are real and live in a temporary folder.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { appendFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { asSessionKey, type SessionKey } from "../../src/bus/messages.js";
import { NanogateError } from "../../src/errors.js";
import { type FaultPoint, noFaults } from "../../src/faults.js";
import { createLogger } from "../../src/logger.js";
import { nodeIo, type SessionIo } from "../../src/session/io.js";
import { sessionFileName } from "../../src/session/keys.js";
import { SessionManager } from "../../src/session/manager.js";
import type { OpenSession } from "../../src/session/open-session.js";
import type { FileState, Lease } from "../../src/session/ports.js";
import type { RewriteGuard } from "../../src/session/rewrite.js";
import type { Row } from "../../src/session/row.js";

export const KEY = asSessionKey("cli:direct");
export const NOW_MS = Date.parse("2026-03-01T12:00:00.000Z");

/** Says who holds a session, as Redis would: the newest fence holds, and the file state is kept by it. */
export class Authority {
  fence = 0;
  known: FileState | null = null;

  take(key: SessionKey = KEY, fence = this.fence + 1): TestLease {
    this.fence = fence;
    return new TestLease(key, this, fence);
  }
}

export class TestLease implements Lease {
  readonly signal = new AbortController().signal;
  /** A holder that was frozen: its own clock has not told it yet that it was fenced out. */
  isUnaware = false;

  constructor(
    readonly key: SessionKey,
    readonly authority: Authority,
    public fence: number,
  ) {}

  assertHeld(): void {
    if (!this.isUnaware) this.check();
  }

  async raise(atLeast: number): Promise<void> {
    this.check();
    this.fence = Math.max(this.fence, atLeast);
    this.authority.fence = this.fence;
  }

  /** What the bus itself would say. */
  check(): void {
    if (this.authority.fence !== this.fence) throw new NanogateError("LEASE_LOST", "The lease is lost.");
  }

  get guard(): RewriteGuard {
    return {
      check: async () => this.check(),
      commit: async (file) => {
        this.check();
        this.authority.known = file;
      },
    };
  }
}

export interface LogLine {
  level: number;
  msg: string;
  [field: string]: unknown;
}

export interface Stage {
  folder: string;
  path: string;
  authority: Authority;
  log: LogLine[];
  /** Called at fault points; replace it to act there. */
  hooks: { fault: (point: FaultPoint) => void };
  io: { -readonly [Name in keyof SessionIo]: SessionIo[Name] };
  manager(options?: { fsync?: "turn" | "exit"; cacheSize?: number }): SessionManager;
  /** Opens the session under a new lease, with what the authority knows. */
  open(manager: SessionManager, lease?: TestLease): Promise<OpenSession>;
  text(): Promise<string>;
  put(text: string | Buffer): Promise<void>;
  names(): Promise<string[]>;
}

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A fresh sessions folder with an authority beside it. */
export async function createStage(key: SessionKey = KEY): Promise<Stage> {
  const root = mkdtempSync(join(tmpdir(), "nanogate-session-"));
  folders.push(root);
  const folder = join(root, "sessions");
  await mkdir(folder);
  const log: LogLine[] = [];
  const logger = createLogger({
    level: "debug",
    secrets: [],
    destination: { write: (line) => log.push(JSON.parse(line)) },
  });
  const path = join(folder, sessionFileName(key));
  const stage: Stage = {
    folder,
    path,
    authority: new Authority(),
    log,
    hooks: { fault: noFaults },
    io: { ...nodeIo },
    manager: ({ fsync = "turn", cacheSize = 8 } = {}) => {
      const tools = {
        io: stage.io,
        faults: (point: FaultPoint) => stage.hooks.fault(point),
        logger,
        clock: () => NOW_MS,
      };
      return new SessionManager({ folder, fsync, cacheSize, tools });
    },
    open: (manager, lease = stage.authority.take(key)) => manager.open(lease, stage.authority.known, lease.guard),
    text: () => readFile(path, "utf8"),
    put: (text) => writeFile(path, text),
    names: async () => (await readdir(folder)).sort(),
  };
  return stage;
}

export const user = (content: string): Row => ({ role: "user", content });
export const assistant = (content: string): Row => ({ role: "assistant", content });

export function calling(...ids: string[]): Row {
  const calls = ids.map((id) => ({ id, type: "function" as const, function: { name: "list_dir", arguments: "{}" } }));
  return { role: "assistant", content: null, tool_calls: calls };
}

export const result = (id: string, content = "done"): Row => ({ role: "tool", tool_call_id: id, content });

/** What rows say, in short. */
export const said = (rows: readonly Row[]): string[] => rows.map((row) => `${row.role}:${String(row.content)}`);

export async function addLine(path: string, line: string): Promise<void> {
  await appendFile(path, line);
}

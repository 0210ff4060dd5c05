/**
 * `nanogate sessions delete|repair|import`: changing sessions, beside a running gateway or without one. Every change is
 * made under the session's lease, as a worker makes its own. Invariant: a session that somebody works on is left alone,
 * and so is one that an import would overwrite unasked.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { createRewriteGuard } from "../agent/rewrite-guard.js";
import type { Bus } from "../bus/bus.js";
import type { SessionKey } from "../bus/messages.js";
import { NanogateError } from "../errors.js";
import type { BusParts } from "../gateway-bus.js";
import type { Held } from "../session/lock.js";
import type { SessionManager } from "../session/manager.js";
import type { OpenSession } from "../session/open-session.js";
import { type ImportedSession, readImport } from "../session/transfer.js";
import { findWorkspace, openWorkspace } from "../workspace/workspace.js";
import { openConfig, sessionsOf } from "./open.js";
import { openBus } from "./open-redis.js";
import type { AnswerOptions } from "./options.js";
import { count, fail, note, oneLine, say, sayJson } from "./output.js";
import { keyFrom, noSession } from "./sessions.js";

interface Hands extends BusParts {
  sessions: SessionManager;
}

const BUSY_ADVICE = "Wait until its turn has ended, or stop it with /stop in its chat, and try again.";
const busyText = (key: SessionKey) => `The session ${oneLine(key)} is busy: a turn runs or waits for something.`;

/** Deletes a session. */
export async function sessionsDeleteCommand(text: string, options: AnswerOptions): Promise<number> {
  return changeOne(keyFrom(text), options, async (key, hands) => {
    const taken = await hands.lock.withLease(key, {}, async (held) => {
      const existed = await hands.sessions.delete(held.lease);
      held.file = null;
      return existed;
    });
    if (!taken.held) return fail(busyText(key), BUSY_ADVICE);
    if (!taken.result) return noSession(key);
    if (options.json === true) sayJson({ key, deleted: true });
    else say(`Deleted ${oneLine(key)}.`);
    return 0;
  });
}

/** Puts unusable lines of a session's file aside, and what former writers left in it. */
export async function sessionsRepairCommand(text: string, options: AnswerOptions): Promise<number> {
  return changeOne(keyFrom(text), options, async (key, hands) => {
    const before = await hands.sessions.readSessionFile(key);
    if (before === null) return noSession(key);
    const { badLines, fencedOut } = before;
    const taken = await hands.lock.withLease(key, {}, (held) =>
      withSession(hands, held, async (session) => {
        // Opening has put bad lines aside; rows that do not count are taken out by writing the file anew.
        if (fencedOut > 0 && badLines === 0) await session.compact();
        return session.session.messages.length;
      }),
    );
    if (!taken.held) return fail(busyText(key), BUSY_ADVICE);
    if (options.json === true) sayJson({ key, badLines, ignoredRows: fencedOut, rows: taken.result });
    else say(`${oneLine(key)}: ${repairText(badLines, fencedOut)}, ${count(taken.result, "row")} kept.`);
    return 0;
  });
}

function repairText(badLines: number, fencedOut: number): string {
  if (badLines === 0 && fencedOut === 0) return "nothing to repair";
  const parts = [
    ...(badLines > 0 ? [`${count(badLines, "unusable line")} kept aside`] : []),
    ...(fencedOut > 0 ? [`${count(fencedOut, "ignored row")} taken out`] : []),
  ];
  return parts.join(", ");
}

/** Changes a session of a workspace that must be there already. */
async function changeOne(
  key: SessionKey,
  options: AnswerOptions,
  change: (key: SessionKey, hands: Hands) => Promise<number>,
): Promise<number> {
  const opened = await openConfig(options);
  const workspace = await findWorkspace(opened.loaded.config.workspace);
  if (workspace === null) return noSession(key);
  const sessions = sessionsOf(opened, workspace.sessions);
  return openBus(opened, workspace.id, (parts) => change(key, { ...parts, sessions }));
}

/** A session in the hands of a holder; afterwards the bus knows its file as it then is. */
async function withSession<T>(
  { sessions, bus }: { sessions: SessionManager; bus: Bus },
  held: Held,
  work: (session: OpenSession) => Promise<T>,
): Promise<T> {
  const session = await sessions.open(held.lease, held.file, createRewriteGuard(bus, held.lease));
  try {
    const result = await work(session);
    await session.sync();
    return result;
  } finally {
    held.file = session.state();
    await session.close();
  }
}

/** What became of one file. */
interface ImportReport {
  file: string;
  key: string | null;
  imported: boolean;
  rows: number;
  /** Lines that were no rows, rows that did not count, rows that no replay could use. */
  skipped: number;
  problem: string | null;
}

/** Imports files, one session each; 1 when one of them could not be. */
export async function sessionsImportCommand(
  files: readonly string[],
  options: AnswerOptions & { force?: boolean },
): Promise<number> {
  const opened = await openConfig(options);
  const workspace = await openWorkspace(opened.loaded.config.workspace);
  const sessions = sessionsOf(opened, workspace.sessions);
  const reports: ImportReport[] = [];
  await openBus(opened, workspace.id, async (parts) => {
    for (const file of files) {
      const report = await importFile(file, { ...parts, sessions }, options.force === true);
      reports.push(report);
      if (options.json !== true) tell(report);
    }
  });
  if (options.json === true) sayJson(reports);
  return reports.every(({ imported }) => imported) ? 0 : 1;
}

function tell({ file, key, imported, rows, skipped, problem }: ImportReport): void {
  const left = skipped > 0 ? `, ${count(skipped, "line")} left out` : "";
  if (imported) say(`${oneLine(file)}: ${oneLine(key ?? "")}, ${count(rows, "row")}${left}`);
  else note(`${oneLine(file)}: not imported: ${problem}`);
}

async function importFile(file: string, hands: Hands, isForced: boolean): Promise<ImportReport> {
  const report = { file, key: null, imported: false, rows: 0, skipped: 0, problem: null };
  try {
    const read = readImport(await readFile(file), path.basename(file), new Date().toISOString());
    if (read === null) return { ...report, problem: "it is no session file, or says no session key" };
    const { key } = read.session;
    const taken = await hands.lock.withLease(key, {}, (held) => importUnder(held, hands, { ...read, isForced }));
    if (!taken.held) return { ...report, key, problem: `${busyText(key)} ${BUSY_ADVICE}` };
    if (taken.result === "exists")
      return { ...report, key, problem: `the session ${oneLine(key)} exists; --force overwrites it` };
    return { ...report, key, imported: true, ...taken.result };
  } catch (error) {
    return { ...report, problem: problemOf(error) };
  }
}

/** What a person can do something about is told, and the next file is tried; anything else ends the command. */
function problemOf(error: unknown): string {
  if (error instanceof NanogateError && error.code.startsWith("SESSION_")) return `${error.message} ${error.advice}`;
  if (error instanceof Error && "syscall" in error) return oneLine(error.message);
  throw error;
}

async function importUnder(
  held: Held,
  hands: Hands,
  { session: source, skipped, isForced }: ImportedSession & { isForced: boolean },
): Promise<"exists" | { rows: number; skipped: number }> {
  const { sessions } = hands;
  if ((await sessions.readSessionFile(source.key)) !== null) {
    if (!isForced) return "exists";
    await sessions.delete(held.lease);
  }
  held.file = null;
  return withSession(hands, held, async (session) => {
    await session.adopt(source);
    const rows = session.session.messages.length;
    return { rows, skipped: skipped + source.messages.length - rows };
  });
}

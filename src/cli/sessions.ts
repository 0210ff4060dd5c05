/**
 * `nanogate sessions list|show|export`: looking at the sessions of a workspace. It needs neither Redis nor a gateway and
 * takes no lease. Invariant: nothing is changed, and no workspace is made by looking for one.
 */
import { asSessionKey, type SessionKey } from "../bus/messages.js";
import { NanogateError } from "../errors.js";
import type { SessionSummary, SessionView } from "../session/listing.js";
import type { SessionManager } from "../session/manager.js";
import { type Row, textOf } from "../session/row.js";
import { exportText } from "../session/transfer.js";
import { findWorkspace } from "../workspace/workspace.js";
import { openConfig, sessionsOf } from "./open.js";
import type { AnswerOptions, CommonOptions } from "./options.js";
import { clip, count, fail, note, oneLine, plain, say, sayJson, sayTable } from "./output.js";

const PREVIEW_LENGTH = 60;

/** A key as a person wrote it. Throws `USAGE`. */
export function keyFrom(text: string): SessionKey {
  try {
    return asSessionKey(text);
  } catch (error) {
    throw new NanogateError("USAGE", "A session key has 1 to 512 characters.", { cause: error });
  }
}

/** Says that a session is not there; the exit code for that. */
export function noSession(key: SessionKey): 1 {
  return fail(`There is no session ${oneLine(key)}.`, "`nanogate sessions list` lists those there are.");
}

async function managerOf(options: CommonOptions): Promise<SessionManager | null> {
  const opened = await openConfig(options);
  const workspace = await findWorkspace(opened.loaded.config.workspace);
  return workspace === null ? null : sessionsOf(opened, workspace.sessions);
}

/** Prints every session in short, newest first. */
export async function sessionsListCommand(options: AnswerOptions): Promise<number> {
  const summaries = (await (await managerOf(options))?.list()) ?? [];
  if (options.json === true) sayJson(summaries);
  else if (summaries.length === 0) note("There are no sessions yet.");
  else sayTable([["SESSION", "UPDATED (UTC)", "ABOUT"], ...summaries.map(summaryRow)]);
  return 0;
}

function summaryRow({ key, updatedAt, title, preview }: SessionSummary): string[] {
  return [oneLine(key), minuteOf(updatedAt), clip(oneLine(title ?? preview), PREVIEW_LENGTH)];
}

function minuteOf(time: string): string {
  return new Date(time).toISOString().slice(0, 16).replace("T", " ");
}

/** Prints a whole session to be read. */
export async function sessionsShowCommand(text: string, options: AnswerOptions): Promise<number> {
  const key = keyFrom(text);
  const view = (await (await managerOf(options))?.readSessionFile(key)) ?? null;
  if (view === null) return noSession(key);
  if (options.json === true) sayJson(view);
  else for (const line of viewLines(view)) say(line);
  return 0;
}

function viewLines(view: SessionView): string[] {
  const { messages, badLines, fencedOut, lastConsolidated, clearedRows } = view;
  const notes = [
    ...(clearedRows > 0 ? [`${count(clearedRows, "row")} before /new`] : []),
    ...(lastConsolidated > clearedRows ? [`${count(lastConsolidated, "row")} summarised`] : []),
    ...(fencedOut > 0 ? [`${count(fencedOut, "row")} of former writers ignored`] : []),
    ...(badLines > 0 ? [`${count(badLines, "line")} not usable: \`nanogate sessions repair\` puts them aside`] : []),
  ];
  return [
    `Session ${oneLine(view.key)}`,
    `Created ${minuteOf(view.createdAt)}, updated ${minuteOf(view.updatedAt)} (UTC), ${count(messages.length, "row")}`,
    ...notes.map((each) => `Note: ${each}`),
    ...messages.flatMap((row) => ["", ...rowLines(row)]),
  ];
}

function rowLines(row: Row): string[] {
  const when = row.timestamp === undefined ? "" : `  ${oneLine(row.timestamp)}`;
  const name = row.role === "tool" && row.name !== undefined ? ` ${oneLine(row.name)}` : "";
  const calls = row.role === "assistant" ? (row.tool_calls ?? []) : [];
  const text = plain(textOf(row.content));
  return [
    `[${row.role}${name}]${when}`,
    ...(text === "" ? [] : [text]),
    ...calls.map((call) => `→ ${oneLine(call.function.name)} ${oneLine(call.function.arguments)}`),
  ];
}

/** Writes a session as JSONL, as `sessions import` reads it. */
export async function sessionsExportCommand(text: string, options: CommonOptions): Promise<number> {
  const key = keyFrom(text);
  const view = (await (await managerOf(options))?.readSessionFile(key)) ?? null;
  if (view === null) return noSession(key);
  process.stdout.write(exportText(view));
  return 0;
}

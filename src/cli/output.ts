/**
 * How commands print: aligned columns without colour, JSON for scripts, failures on standard error. It knows no command.
 * Invariant: what came from outside (names, texts, errors) cannot move the cursor or colour the terminal.
 */
import { redactText } from "../logger.js";

const GAP = "  ";
/** Escapes and other controls, and the marks that turn the direction of writing. */
const CONTROLS = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** A text from outside on one line. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(CONTROLS, "").trim();
}

/** A text from outside, its lines kept. */
export function plain(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(CONTROLS, (control) => (/[\n\t]/.test(control) ? control : ""));
}

/** The beginning of a text, with an ellipsis where it goes on. */
export function clip(text: string, length: number): string {
  const symbols = [...text];
  return symbols.length > length ? `${symbols.slice(0, length - 1).join("")}…` : text;
}

/** Prints one line to standard output. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Prints a note to standard error, which no script reads. */
export function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

export function sayJson(value: unknown): void {
  say(JSON.stringify(value, null, 2));
}

/** Columns aligned to their widest cell, the last one as long as it is. */
export function table(rows: ReadonlyArray<readonly string[]>): string[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, [...cell].length);
  return rows.map((row) =>
    row
      .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - [...cell].length))
      .join(GAP)
      .trimEnd(),
  );
}

export function sayTable(rows: ReadonlyArray<readonly string[]>): void {
  for (const line of table(rows)) say(line);
}

/** Says what failed and what to do about it; the exit code for that. */
export function fail(what: string, advice: string): 1 {
  note(`${redactText(what)}\n${advice}`);
  return 1;
}

/** A length of time in words that fit a column. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `1 row`, `2 rows`; `plural` where an s does not do. */
export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}

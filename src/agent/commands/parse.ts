/**
 * Reads a message as a command, and words a mistake with one. Pure. Invariant: a text that begins with `/` is a command or
 * is answered with the nearest one; it never reaches a model. [LOOP-26, LOOP-27]
 */
import type { InboundMessage } from "../../bus/messages.js";
import { COMMANDS, type CommandName } from "../../commands.js";
import { nearest } from "../tools/nearest.js";

/** Of a word that is no command, so much is repeated. */
const SHOWN_CHARS = 32;
const NAMES: readonly string[] = COMMANDS.map(({ name }) => name);

export type ParsedCommand =
  | { kind: "text" }
  | { kind: "command"; name: CommandName; args: string }
  /** `nearest` is null when nothing is near. */
  | { kind: "unknown"; word: string; nearest: CommandName | null }
  | { kind: "needless_arguments"; name: CommandName };

/** Reads a message as a command. The first word's `@bot` suffix and its case do not matter. [LOOP-26, LOOP-27] */
export function parseCommand(content: string): ParsedCommand {
  const text = content.trim();
  if (!text.startsWith("/")) return { kind: "text" };
  const [first = "", ...rest] = text.slice(1).split(/\s+/);
  const word = first.replace(/@\w+$/, "").toLowerCase();
  const args = rest.join(" ");
  const spec = COMMANDS.find(({ name }) => name === word);
  if (spec === undefined)
    return { kind: "unknown", word, nearest: COMMANDS.find(({ name }) => name === nearest(word, NAMES))?.name ?? null };
  if (args !== "" && spec.args === "") return { kind: "needless_arguments", name: spec.name };
  return { kind: "command", name: spec.name, args };
}

/** A message as a command; only what a person says can be one. */
export function readCommand({ role, content }: InboundMessage): ParsedCommand {
  return role === "user" ? parseCommand(content) : { kind: "text" };
}

function shortened(word: string): string {
  const cut = word.slice(0, SHOWN_CHARS).replace(/\p{Surrogate}$/u, "");
  return cut.length < word.length ? `${cut}…` : word;
}

/** What a person who made a mistake with a command is told. */
export function commandMistake(parsed: Extract<ParsedCommand, { kind: "unknown" | "needless_arguments" }>): string {
  if (parsed.kind === "needless_arguments") return `/${parsed.name} takes no arguments.`;
  const hint = parsed.nearest === null ? "" : ` Did you mean /${parsed.nearest}?`;
  return `There is no command /${shortened(parsed.word)}.${hint} /help lists them all.`;
}

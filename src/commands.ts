/**
 * The one table of slash commands: name, arguments, what it does, who may, and how it runs. It feeds `/help` and, later,
 * the platforms' menus. It carries nothing out. Invariant: a text that begins with `/` is a command or is answered with the
 * nearest one; it never reaches a model.
 */

/** `around`: carried out at once, beside the queue. `turn`: waits for its place in the session. */
export type CommandWay = "around" | "turn";

export interface CommandSpec {
  name: string;
  /** As shown to people; empty for none. */
  args: string;
  summary: string;
  way: CommandWay;
}

export const COMMANDS = [
  { name: "help", args: "", summary: "list the commands", way: "around" },
  { name: "status", args: "", summary: "show the model, this session and what runs", way: "around" },
  {
    name: "stop",
    args: "[all]",
    summary: "stop what runs and waits here; `all` (owners): everywhere in this session",
    way: "around",
  },
  { name: "new", args: "", summary: "stop, and begin a new conversation", way: "turn" },
] as const satisfies readonly CommandSpec[];

export type CommandName = (typeof COMMANDS)[number]["name"];

export type ParsedCommand =
  | { kind: "text" }
  | { kind: "command"; name: CommandName; args: string }
  /** `nearest` is null when nothing is near. */
  | { kind: "unknown"; word: string; nearest: CommandName | null }
  | { kind: "needless_arguments"; name: CommandName };

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The command a person probably meant: at least 0.6 alike. */
function nearestTo(word: string): CommandName | null {
  const scored = COMMANDS.map(({ name }) => ({
    name,
    alike: 1 - distance(word, name) / Math.max(word.length, name.length),
  }));
  const best = scored.reduce((a, b) => (b.alike > a.alike ? b : a));
  return best.alike >= 0.6 ? best.name : null;
}

/** Reads a message as a command. The first word's `@bot` suffix and its case do not matter. [LOOP-26, LOOP-27] */
export function parseCommand(content: string): ParsedCommand {
  const text = content.trim();
  if (!text.startsWith("/")) return { kind: "text" };
  const [first = "", ...rest] = text.slice(1).split(/\s+/);
  const word = first.replace(/@\w+$/, "").toLowerCase();
  const args = rest.join(" ");
  const spec = COMMANDS.find(({ name }) => name === word);
  if (spec === undefined) return { kind: "unknown", word, nearest: nearestTo(word) };
  if (args !== "" && spec.args === "") return { kind: "needless_arguments", name: spec.name };
  return { kind: "command", name: spec.name, args };
}

/** What a person who made a mistake with a command is told. */
export function commandMistake(parsed: Extract<ParsedCommand, { kind: "unknown" | "needless_arguments" }>): string {
  if (parsed.kind === "needless_arguments") return `/${parsed.name} takes no arguments.`;
  const hint = parsed.nearest === null ? "" : ` Did you mean /${parsed.nearest}?`;
  return `There is no command /${parsed.word}.${hint} /help lists them all.`;
}

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
    summary: "stop what runs and waits here; with all, for owners: everywhere in this session",
    way: "around",
  },
  { name: "new", args: "", summary: "stop, and begin a new conversation", way: "turn" },
] as const satisfies readonly CommandSpec[];

export type CommandName = (typeof COMMANDS)[number]["name"];

/**
 * The one table of slash commands: name, arguments, what it does, who may, and how it runs. It feeds `/help` and, later,
 * the platforms' menus. It carries nothing out. Invariant: a text that begins with `/` is a command or is answered with the
 * nearest one; it never reaches a model.
 */

/** `around`: carried out at once, beside the queue. `turn`: waits for its place in the session. */
export type CommandWay = "around" | "turn";
/** Whose it is: of everybody who is admitted, or of owners, who alone need see it. */
export type CommandRole = "anyone" | "owner";

export interface CommandSpec {
  name: string;
  /** As shown to people; empty for none. */
  args: string;
  summary: string;
  way: CommandWay;
  role: CommandRole;
}

export const COMMANDS = [
  { name: "help", args: "", summary: "list the commands", way: "around", role: "anyone" },
  { name: "status", args: "", summary: "show the model, this session and what runs", way: "around", role: "anyone" },
  {
    name: "stop",
    args: "[all]",
    summary: "stop what runs and waits here; with all, for owners: everywhere in this session",
    way: "around",
    role: "anyone",
  },
  { name: "new", args: "", summary: "stop, and begin a new conversation", way: "turn", role: "anyone" },
  {
    name: "pairing",
    args: "[list | approve CODE | deny CODE | revoke CHANNEL USER]",
    summary: "for owners: who waits to talk to the bot and who may",
    way: "around",
    role: "owner",
  },
] as const satisfies readonly CommandSpec[];

export type CommandName = (typeof COMMANDS)[number]["name"];

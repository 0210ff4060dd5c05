/**
 * The slash commands that Discord shows, made from the one table of commands. It carries none out. Invariant: nothing is
 * written when Discord has them already; owners' commands are shown in direct chats only.
 */
import type { CommandSpec } from "../../commands.js";
import type { Rest } from "./rest.js";
import { fieldsOf } from "./wire.js";

interface MenuEntry {
  name: string;
  description: string;
  type: 1;
  options: Array<{ type: 3; name: string; description: string; required: false }>;
  /** 0: servers, 1: direct chats with the bot. */
  contexts: number[];
}

/** The table as Discord wants it. */
export function menuOf(commands: readonly CommandSpec[]): MenuEntry[] {
  return commands.map(({ name, summary, args, role }) => ({
    name,
    description: shortened(summary),
    type: 1,
    options: args === "" ? [] : [{ type: 3, name: "args", description: shortened(args), required: false }],
    contexts: role === "owner" ? [1] : [0, 1],
  }));
}

function shortened(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 99).toWellFormed()}…`;
}

/** Registers the commands when Discord has others. True when it had. Throws `RestError`. */
export async function publishMenu(
  rest: Rest,
  applicationId: string,
  commands: readonly CommandSpec[],
): Promise<boolean> {
  const path = `applications/${applicationId}/commands`;
  const wanted = menuOf(commands);
  const there = await rest.call({ method: "GET", path });
  if (summaryOf(there) === summaryOf(wanted)) return false;
  await rest.call({ method: "PUT", path, body: wanted });
  return true;
}

/** What counts when two menus are compared: Discord adds ids, versions and defaults of its own. */
function summaryOf(commands: unknown): string {
  const list: unknown[] = Array.isArray(commands) ? commands : [];
  const lines = list.map((entry) => {
    const { name, description, options, contexts } = fieldsOf(entry);
    const arguments_ = (Array.isArray(options) ? options : []).map((option) => {
      const { name: optionName, description: words } = fieldsOf(option);
      return [optionName, words];
    });
    return JSON.stringify([name, description, arguments_, contexts ?? null]);
  });
  return lines.sort().join("\n");
}

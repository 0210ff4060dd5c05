/**
 * Whether a message is meant for the bot: mentions, answers to it, commands. Pure; whether that suffices is for others to
 * say. Invariant: a name that merely begins like the bot's is not the bot's.
 */
import { COMMANDS } from "../../commands.js";
import { answeredOf } from "./parse-text.js";
import type { Message } from "./wire.js";

/** Who the bot is on its platform. `username` without the `@`. */
export interface Me {
  id: number;
  username: string;
}

const COMMAND = /^\/([A-Za-z0-9_-]{1,64})(?:@([A-Za-z0-9_]+))?(?=\s|$)/;

/** A command's name as the platform's menus take it. */
export function menuName(name: string): string {
  return name.replaceAll("-", "_");
}

/** Whether the text or the caption names the bot. */
export function isMentioned(message: Message, me: Me): boolean {
  const text = message.text ?? message.caption ?? "";
  const entities = (message.text === undefined ? message.caption_entities : message.entities) ?? [];
  return entities.some(({ type, user }) => type === "text_mention" && user?.id === me.id) || hasHandle(text, me);
}

function hasHandle(text: string, { username }: Me): boolean {
  if (username === "") return false;
  const lower = text.toLowerCase();
  const handle = `@${username.toLowerCase()}`;
  const isWord = (character: string | undefined) => character !== undefined && /\w/.test(character);
  for (let at = lower.indexOf(handle); at >= 0; at = lower.indexOf(handle, at + 1))
    if (!isWord(lower[at - 1]) && !isWord(lower[at + handle.length])) return true;
  return false;
}

/** Whether it answers something that the bot said. */
export function isReplyTo(message: Message, me: Me): boolean {
  return answeredOf(message)?.from?.id === me.id;
}

/**
 * The text as the gateway knows its commands: without the bot's name, by their own names, `/start` as `/help`. `foreign`: a
 * command of another bot. `none`: no command of ours, the text unchanged.
 */
export function readCommand(text: string, me: Me): { kind: "own"; content: string } | { kind: "foreign" | "none" } {
  const bare = withoutMention(text, me);
  const [whole = "", name = "", bot] = COMMAND.exec(bare) ?? [];
  if (whole === "") return { kind: "none" };
  if (bot !== undefined && bot.toLowerCase() !== me.username.toLowerCase()) return { kind: "foreign" };
  const wanted = menuName(name.toLowerCase());
  if (wanted === "start") return { kind: "own", content: "/help" };
  const known = COMMANDS.find((command) => menuName(command.name) === wanted);
  // One that nobody knows may be meant for another bot, unless it names ours.
  if (known === undefined && bot === undefined && bare === text) return { kind: "none" };
  return { kind: "own", content: `/${known?.name ?? name}${bare.slice(whole.length)}` };
}

/** A command may stand behind the bot's name. */
function withoutMention(text: string, { username }: Me): string {
  const [first = ""] = /^\s*@\w+\s+(?=\/)/.exec(text) ?? [];
  return first.trim().toLowerCase() === `@${username.toLowerCase()}` ? text.slice(first.length) : text;
}

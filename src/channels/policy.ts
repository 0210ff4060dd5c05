/**
 * A bot channel's settings as a policy, and as a sentence for the operator. Pure; the rules themselves are in
 * `access-rules.ts`. Invariant: the sentence follows from the same settings as the rules, and holds neither a secret nor a
 * name.
 */
import type { AccessPolicy, GroupPolicy } from "./access-rules.js";

/** What every platform with a bot has in the configuration, as far as access goes. */
export interface BotSettings {
  /** "auto": when its token is there. */
  enabled: boolean | "auto";
  token: string | null;
  allowFrom: readonly string[];
  owners: readonly string[];
  groupPolicy: GroupPolicy;
  groupAllowFrom: readonly string[];
  allowBots: boolean;
  botBudget: { messages: number; perMs: number };
  allowChats?: readonly string[];
  allowChannels?: readonly string[];
  allowGuilds?: readonly string[];
}

/** Whether a bot is to be connected. */
export function isBotEnabled({ enabled, token }: Pick<BotSettings, "enabled" | "token">): boolean {
  return enabled === "auto" ? token !== null : enabled;
}

/**
 * Whether somebody owns an enabled bot by configuration, so that nobody becomes an owner by being paired first. Takes the
 * settings of all channels; those that are no bots have no owners.
 */
export function hasOwners(channels: object): boolean {
  const isBot = (settings: object): settings is BotSettings => "owners" in settings;
  return Object.values(channels).some((each: object) => isBot(each) && isBotEnabled(each) && namesOf(each.owners) > 0);
}

/** Entries that can name somebody; `*` makes nobody an owner. */
function namesOf(owners: readonly string[]): number {
  return owners.filter((owner) => owner !== "*").length;
}

/** The rules of a bot. */
export function botPolicyOf(bot: BotSettings): AccessPolicy {
  const { allowFrom, groupAllowFrom, owners, groupPolicy, allowBots, botBudget } = bot;
  const allowChats = [bot.allowChats ?? [], bot.allowChannels ?? [], bot.allowGuilds ?? []];
  return { allowFrom, groupAllowFrom, owners, groupPolicy, allowBots, botBudget, allowChats };
}

/** The effective policy in one sentence; also what an empty list means. */
export function describeBotPolicy(bot: BotSettings): string {
  if (!isBotEnabled(bot)) return bot.enabled === "auto" ? "Off: it has no token." : "Off: nobody can reach it.";
  return `${[directPart(bot), groupPart(bot), botPart(bot), ownerPart(bot)].join("; ")}.`;
}

function directPart({ allowFrom }: BotSettings): string {
  if (allowFrom.includes("*")) return "In direct chats everybody";
  const strangers = "strangers get a pairing code";
  if (allowFrom.length === 0)
    return `In direct chats nobody but people who were paired (allowFrom is empty), ${strangers}`;
  return `In direct chats ${counted(allowFrom.length, "listed person", "listed people")} and people who were paired, ${strangers}`;
}

function groupPart(bot: BotSettings): string {
  if (bot.groupPolicy === "off") return "groups are off";
  return `in ${groupsText(bot)} ${groupPeople(bot)}, ${readText(bot.groupPolicy)}`;
}

function groupsText({ allowChats = [], allowChannels = [], allowGuilds = [] }: BotSettings): string {
  const listed = [
    [allowChats, "listed group", "listed groups"],
    [allowChannels, "listed channel", "listed channels"],
    [allowGuilds, "listed server", "listed servers"],
  ] as const;
  const limits = listed.flatMap(([list, one, more]) => (list.length === 0 ? [] : [counted(list.length, one, more)]));
  return limits.length === 0 ? "every group" : limits.join(" of ");
}

function groupPeople({ allowFrom, groupAllowFrom }: BotSettings): string {
  if ([...allowFrom, ...groupAllowFrom].includes("*")) return "everybody";
  const more = groupAllowFrom.length;
  return more === 0 ? "the same people" : `the same people and ${more} more`;
}

function readText(policy: Exclude<GroupPolicy, "off">): string {
  switch (policy) {
    case "mention":
      return "when they mention or answer the bot or use a command";
    case "reply":
      return "when they answer the bot or use a command";
    case "open":
      return "whatever they write";
    default:
      return policy satisfies never;
  }
}

function botPart({ allowBots, botBudget: { messages, perMs } }: BotSettings): string {
  if (!allowBots) return "other bots are ignored";
  const within = `${counted(messages, "message", "messages")} a chat within ${timeText(perMs)}`;
  return `other bots only when a list lets them in, ${within} each`;
}

function ownerPart({ owners }: BotSettings): string {
  const count = namesOf(owners);
  return count === 0 ? "no owners but who was paired first of all" : counted(count, "owner", "owners");
}

function counted(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? one : more}`;
}

function timeText(ms: number): string {
  return ms % 60_000 === 0 ? counted(ms / 60_000, "minute", "minutes") : `${Number((ms / 1000).toFixed(1))} s`;
}

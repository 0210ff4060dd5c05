/**
 * The rules of access, as far as the configuration alone decides: a decision table without side effects. It knows no
 * pairing and no budget. Invariants: an empty list lets nobody in; no name that people may choose themselves can stand for
 * somebody else's id; what is refused here was refused before anything was looked up.
 */
import type { Knock } from "./channel.js";

/** What of a group the bot reads. mention: what mentions or answers it; reply: what answers it; open: all; off: nothing. */
export type GroupPolicy = "mention" | "reply" | "open" | "off";

/** Who may talk to one channel. Lists of people hold ids and user names, `*` for everybody. */
export interface AccessPolicy {
  allowFrom: readonly string[];
  /** Who else, in groups. */
  groupAllowFrom: readonly string[];
  /** Here `*` means nobody. */
  owners: readonly string[];
  groupPolicy: GroupPolicy;
  /** Lists of chats by id. A group must be known to each list that is not empty; direct chats are no matter of them. */
  allowChats: ReadonlyArray<readonly string[]>;
  /** Whether a bot that the lists let in may speak at all. */
  allowBots: boolean;
  /** What one bot may say in one chat: so many messages within any `perMs`. */
  botBudget: { messages: number; perMs: number };
}

export type Verdict =
  | { kind: "refused"; why: string }
  /** In the lists. */
  | { kind: "listed"; isOwner: boolean }
  /** In no list; only a pairing can help. */
  | { kind: "unlisted" };

/** What the configuration says about somebody who wants to speak. */
export function judge(knock: Knock, policy: AccessPolicy): Verdict {
  const { author, scene } = knock;
  if (author === "bot" && !policy.allowBots) return refused("other bots are not allowed");
  const silence = scene.kind === "group" ? whySilent(scene, policy) : null;
  if (silence !== null) return refused(silence);
  if (author === "person" && isNamed(knock, policy.owners)) return { kind: "listed", isOwner: true };
  const isListed = isIn(knock, policy.allowFrom) || (scene.kind === "group" && isIn(knock, policy.groupAllowFrom));
  if (isListed) return { kind: "listed", isOwner: false };
  return author === "bot" ? refused("this bot is in no list") : { kind: "unlisted" };
}

function refused(why: string): Verdict {
  return { kind: "refused", why };
}

/** Why a group gets no answer whoever speaks; null when it may. */
function whySilent(scene: Extract<Knock["scene"], { kind: "group" }>, policy: AccessPolicy): string | null {
  if (policy.groupPolicy === "off") return "groups are off";
  const knows = (chats: readonly string[]) => chats.length === 0 || scene.chatIds.some((id) => chats.includes(id));
  if (!policy.allowChats.every(knows)) return "this group is in no list";
  return isAddressed(scene, policy.groupPolicy) ? null : "the bot is not addressed";
}

function isAddressed(scene: Extract<Knock["scene"], { kind: "group" }>, groupPolicy: GroupPolicy): boolean {
  switch (groupPolicy) {
    case "open":
      return true;
    case "mention":
      return scene.isMentioned || scene.isReplyToBot || scene.isCommand;
    case "reply":
      return scene.isReplyToBot || scene.isCommand;
    case "off":
      return false;
    default:
      return groupPolicy satisfies never;
  }
}

function isIn(knock: Knock, people: readonly string[]): boolean {
  return people.includes("*") || isNamed(knock, people);
}

/** Whether one of these entries, `*` aside, names the sender. */
function isNamed({ senderId, aliases }: Knock, people: readonly string[]): boolean {
  return people.some((entry) => {
    if (entry === "" || entry === "*") return false;
    if (entry === senderId) return true;
    const isAlias = entry.startsWith("@");
    // A user name may look like somebody's id; it is one only where the entry says so.
    if (!isAlias && LIKE_AN_ID.test(entry)) return false;
    const wanted = bare(entry);
    return wanted !== "" && aliases.some((alias) => bare(alias) === wanted);
  });
}

const LIKE_AN_ID = /^[-+]?[\d\s]+$/;

/** A user name as it is compared. Only plain letters have one case: others fold into each other in surprising ways. */
function bare(name: string): string {
  return name.replace(/^@/, "").replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

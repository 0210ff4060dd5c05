/**
 * Who is mentioned in a text, and who of them is notified. Pure. Invariant: a mention that `allowed_mentions` leaves out is
 * still shown as one, but pings nobody.
 */
import type { Message, User } from "./model.js";

interface People {
  users: ReadonlyMap<string, User>;
}

const idsIn = (content: string, pattern: RegExp): string[] => [
  ...new Set([...content.matchAll(pattern)].map(([, id = ""]) => id)),
];

/** The mentions that stand in a text. */
export function mentionsIn(
  people: People,
  content: string,
): Pick<Message, "mentions" | "roleMentions" | "mentionsEveryone"> {
  const mentions = idsIn(content, /<@!?(\d+)>/g).flatMap((id) => people.users.get(id) ?? []);
  return { mentions, roleMentions: idsIn(content, /<@&(\d+)>/g), mentionsEveryone: /@(?:everyone|here)/.test(content) };
}

interface AllowedMentions {
  parse?: string[];
  users?: string[];
  roles?: string[];
  replied_user?: boolean;
}

/** Who is notified: user ids, role ids, `everyone`. */
export function pingsOf(message: Message, allowed: unknown): string[] {
  const { mentions, roleMentions, mentionsEveryone, reference } = message;
  const rules = (allowed ?? { parse: ["users", "roles", "everyone"], replied_user: true }) as AllowedMentions;
  const allows = (kind: "users" | "roles", id: string) => rules.parse?.includes(kind) || rules[kind]?.includes(id);
  return [
    ...mentions.map(({ id }) => id).filter((id) => allows("users", id)),
    ...roleMentions.filter((id) => allows("roles", id)),
    ...(mentionsEveryone && rules.parse?.includes("everyone") ? ["everyone"] : []),
    ...(reference?.type === 0 && rules.replied_user === true ? [reference.message.author.id] : []),
  ];
}

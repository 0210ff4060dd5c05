/** The rules of access: the whole decision table against a second telling of it, and names that people choose themselves. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { type AccessPolicy, type GroupPolicy, judge } from "../../src/channels/access-rules.js";
import type { Knock } from "../../src/channels/channel.js";
import { direct, inGroup, policy } from "./knocks.js";

const said = (knock: Knock, rules: AccessPolicy): string => {
  const verdict = judge(knock, rules);
  if (verdict.kind === "listed") return verdict.isOwner ? "owner" : "listed";
  return verdict.kind;
};

const LISTS = { empty: [], all: ["*"], id: ["1", "7"], name: ["@alice"], others: ["8", "bob"] } as const;
type ListName = keyof typeof LISTS;
const names = Object.keys(LISTS) as ListName[];
const holdsAlice = (name: ListName) => name === "all" || name === "id" || name === "name";

const POLICIES = ["mention", "reply", "open", "off"] as const;
const pairsOf = <A, B>(ones: readonly A[], others: readonly B[]): Array<[A, B]> =>
  ones.flatMap((one) => others.map((other): [A, B] => [one, other]));

describe("in direct chats", () => {
  const groupsDoNotMatter = POLICIES.map((groupPolicy) => ({
    groupPolicy,
    groupAllowFrom: ["*"],
    allowChats: [["-1"]],
  }));
  const settings = pairsOf(groupsDoNotMatter, [false, true]);

  it.each(pairsOf(names, names))("a person, allowFrom %s, owners %s", (allow, owners) => {
    const isOwner = owners === "id" || owners === "name";
    const expected = isOwner ? "owner" : holdsAlice(allow) ? "listed" : "unlisted";
    for (const [groups, allowBots] of settings) {
      const rules = policy({ ...groups, allowBots, allowFrom: LISTS[allow], owners: LISTS[owners] });
      expect(said(direct(), rules)).toBe(expected);
    }
  });

  it.each(pairsOf(names, names))("a bot, allowFrom %s, owners %s", (allow, owners) => {
    for (const [groups, allowBots] of settings) {
      const rules = policy({ ...groups, allowBots, allowFrom: LISTS[allow], owners: LISTS[owners] });
      expect(said(direct({ author: "bot" }), rules)).toBe(allowBots && holdsAlice(allow) ? "listed" : "refused");
    }
  });
});

describe("in groups", () => {
  const ADDRESSED: Readonly<Record<GroupPolicy, readonly string[]>> = {
    mention: ["isMentioned", "isReplyToBot", "isCommand"],
    reply: ["isReplyToBot", "isCommand"],
    open: ["isMentioned", "isReplyToBot", "isCommand", "nothing"],
    off: [],
  };
  const ways = ["isMentioned", "isReplyToBot", "isCommand", "nothing"] as const;
  const lists = pairsOf(pairsOf(names, names), [true, false]);

  /** What becomes of Alice where what she says is read. */
  const whoSheIs = (allow: ListName, more: ListName, isOwner: boolean) => {
    if (isOwner) return "owner";
    return holdsAlice(allow) || holdsAlice(more) ? "listed" : "unlisted";
  };

  it.each(pairsOf(POLICIES, ways))("policy %s, said with %s", (groupPolicy, way) => {
    const isRead = ADDRESSED[groupPolicy].includes(way);
    const scene = { isMentioned: false, [way]: true };
    for (const [[allow, more], isOwner] of lists) {
      const owners = isOwner ? ["7"] : [];
      const rules = policy({ groupPolicy, allowFrom: LISTS[allow], groupAllowFrom: LISTS[more], owners });
      expect(said(inGroup(scene), rules)).toBe(isRead ? whoSheIs(allow, more, isOwner) : "refused");
    }
  });

  it.each([
    ["no list", [], true],
    ["empty lists", [[], []], true],
    ["the group itself", [["-5"]], true],
    ["its parent", [["c1"]], true],
    ["another group", [["-6"]], false],
    ["the group, but another server", [["-5"], ["g2"]], false],
    ["group and server", [["-5"], ["g1"]], true],
    ["what only begins alike", [["-55", "-"]], false],
  ] as const)("a list of chats with %s", (_what, allowChats, isIn) => {
    const rules = policy({ allowFrom: ["*"], owners: ["7"], allowChats });
    expect(said(inGroup({ chatIds: ["-5", "c1", "g1"] }), rules)).toBe(isIn ? "owner" : "refused");
  });

  it.each([
    [false, ["*"], ["*"], "refused"],
    [true, [], [], "refused"],
    [true, ["7"], [], "listed"],
    [true, [], ["@alice"], "listed"],
  ] as const)(
    "another bot, allowed %s, allowFrom %j, groupAllowFrom %j",
    (allowBots, allowFrom, groupAllowFrom, expected) => {
      const rules = policy({ allowBots, allowFrom, groupAllowFrom, owners: ["7"] });
      expect(said(inGroup({}, { author: "bot" }), rules)).toBe(expected);
      expect(said(inGroup({ isMentioned: false }, { author: "bot" }), rules)).toBe("refused");
    },
  );
});

describe("an entry of a list", () => {
  it.each([
    ["alice", true],
    ["@ALICE", true],
    ["Alice", true],
    ["7", true],
    ["@7", false],
    ["", false],
    ["@", false],
    ["alic", false],
    ["alicee", false],
    [" 7", false],
    ["07", false],
    ["7|alice", false],
  ])("%j", (entry, isHer) => {
    const knock = direct({ aliases: ["Alice", ""] });
    expect(said(knock, policy({ allowFrom: [entry] }))).toBe(isHer ? "listed" : "unlisted");
    expect(said(knock, policy({ owners: [entry] }))).toBe(isHer ? "owner" : "unlisted");
  });

  test("`*` makes nobody an owner, also not who is called so", () => {
    expect(said(direct({ aliases: ["*"] }), policy({ owners: ["*"], allowFrom: ["*"] }))).toBe("listed");
    expect(said(direct({ aliases: ["*", "@*"] }), policy({ owners: ["*"] }))).toBe("unlisted");
  });

  test("nobody gets in by taking somebody's id as a name", () => {
    const id = fc.oneof(fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }).map(String), fc.constant("42"));
    fc.assert(
      fc.property(id, fc.constantFrom("", "@", " ", "+"), (theirs, mark) => {
        const thief = direct({ senderId: "x", aliases: [theirs, mark + theirs, `@${theirs}`, `${theirs} `] });
        expect(said(thief, policy({ owners: [theirs], allowFrom: [theirs] }))).toBe("unlisted");
      }),
    );
  });

  test("a user name of digits counts where the entry says that it is one", () => {
    const knock = direct({ senderId: "1", aliases: ["12345"] });
    expect(said(knock, policy({ allowFrom: ["@12345"] }))).toBe("listed");
    expect(said(direct({ senderId: "12345", aliases: [] }), policy({ allowFrom: ["@12345"] }))).toBe("unlisted");
  });

  test("names that only look the same are others", () => {
    // A Kelvin sign, a dotless i, a long s, full-width letters: lower-casing folds some of them into plain ones.
    for (const alias of ["\u212Aim", "k\u0131m", "ſam", "ｋim"])
      expect(said(direct({ aliases: [alias] }), policy({ allowFrom: ["kim", "sam"] }))).toBe("unlisted");
  });

  test("only an entry that names the sender lets in, whatever else is in the lists", () => {
    const entry = fc.oneof(fc.string(), fc.stringMatching(/^@?[A-Za-z0-9_]{1,6}$/));
    fc.assert(
      fc.property(fc.array(entry), fc.string({ minLength: 1 }), fc.array(fc.string()), (people, senderId, aliases) => {
        fc.pre(!people.includes("*"));
        const plain = (name: string) => name.replace(/^@/, "").toLowerCase();
        const isPossible = people.some(
          (each) => each === senderId || aliases.some((alias) => plain(alias) === plain(each)),
        );
        const verdict = said(direct({ senderId, aliases }), policy({ allowFrom: people }));
        if (!isPossible) expect(verdict).toBe("unlisted");
        if (people.includes(senderId) && senderId !== "") expect(verdict).toBe("listed");
      }),
    );
  });
});

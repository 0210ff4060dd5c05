/** A bot's settings as a policy and as a sentence: both say the same, and the sentence holds no name and no secret. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import {
  type BotSettings,
  botPolicyOf,
  describeBotPolicy,
  hasOwners,
  isBotEnabled,
} from "../../src/channels/policy.js";
import { defaultConfig } from "../../src/config/schema.js";

const bot = (overrides: Partial<BotSettings> = {}): BotSettings => ({
  enabled: "auto",
  token: "1:secret",
  allowFrom: [],
  owners: [],
  groupPolicy: "mention",
  groupAllowFrom: [],
  allowBots: false,
  botBudget: { messages: 10, perMs: 600_000 },
  ...overrides,
});

describe("the sentence", () => {
  it.each<[string, Partial<BotSettings>, RegExp]>([
    ["off without a token", { token: null }, /^Off: it has no token\.$/],
    ["off by setting", { enabled: false }, /^Off: nobody/],
    [
      "what an empty list means",
      {},
      /^In direct chats nobody but people who were paired \(allowFrom is empty\), strangers get a pairing code;/,
    ],
    ["everybody", { allowFrom: ["1", "*"] }, /^In direct chats everybody;/],
    ["a list", { allowFrom: ["1", "@bob"] }, /^In direct chats 2 listed people and people who were paired/],
    ["mentions", {}, /; in every group the same people, when they mention or answer the bot or use a command;/],
    ["answers", { groupPolicy: "reply" }, /when they answer the bot or use a command;/],
    ["open groups", { groupPolicy: "open", groupAllowFrom: ["*"] }, /; in every group everybody, whatever they write;/],
    ["no groups", { groupPolicy: "off" }, /; groups are off;/],
    ["more people in groups", { groupAllowFrom: ["5"] }, /; in every group the same people and 1 more,/],
    ["listed groups", { allowChats: ["-1"] }, /; in 1 listed group the same people,/],
    [
      "channels of servers",
      { allowChannels: ["1", "2"], allowGuilds: ["3"] },
      /; in 2 listed channels of 1 listed server the/,
    ],
    ["no bots", {}, /; other bots are ignored;/],
    [
      "bots",
      { allowBots: true },
      /; other bots only when a list lets them in, 10 messages a chat within 10 minutes each;/,
    ],
    ["no owners", { owners: ["*"] }, /; no owners but who was paired first of all\.$/],
    ["owners", { owners: ["1"] }, /; 1 owner\.$/],
  ])("says %s", (_what, settings, sentence) => {
    expect(describeBotPolicy(bot(settings))).toMatch(sentence);
  });

  test("names nobody and no secret, and stays one sentence", () => {
    const some = fc.array(fc.constantFrom("*", "4711", "@nobody_else"));
    const settings = fc.record({
      allowFrom: some,
      owners: some,
      groupAllowFrom: some,
      allowChats: some,
      groupPolicy: fc.constantFrom("mention" as const, "reply" as const, "open" as const, "off" as const),
      allowBots: fc.boolean(),
    });
    fc.assert(
      fc.property(settings, (given) => {
        const sentence = describeBotPolicy(bot(given));
        expect(sentence).not.toMatch(/4711|nobody_else|secret|\n/);
        expect(sentence).toMatch(/^[A-Z][^.]*\.$/);
      }),
    );
  });
});

test("both platforms' settings are taken as they are, each list of chats on its own", () => {
  const { telegram, discord } = defaultConfig().channels;
  expect(botPolicyOf({ ...telegram, allowChats: ["-5"] }).allowChats).toEqual([["-5"], [], []]);
  const both = { ...discord, allowChannels: ["c1"], allowGuilds: ["g1"] };
  expect(botPolicyOf(both).allowChats.filter((list) => list.length > 0)).toEqual([["c1"], ["g1"]]);
});

test("a bot is enabled by its token, or as it is set", () => {
  expect(isBotEnabled(bot())).toBe(true);
  expect(isBotEnabled(bot({ token: null }))).toBe(false);
  expect(isBotEnabled(bot({ enabled: false }))).toBe(false);
  expect(isBotEnabled(bot({ enabled: true, token: null }))).toBe(true);
});

test("owners are configured where an enabled bot names somebody", () => {
  const { websocket } = defaultConfig().channels;
  expect(hasOwners({ websocket, one: bot() })).toBe(false);
  expect(hasOwners({ one: bot({ owners: ["*"] }) })).toBe(false);
  expect(hasOwners({ one: bot(), two: bot({ owners: ["1"] }) })).toBe(true);
  expect(hasOwners({ one: bot({ owners: ["1"], enabled: false }) })).toBe(false);
});

/** Builders for tests of access: a person or a bot who knocks, and a policy that lets nobody in. */
import type { AccessPolicy } from "../../src/channels/access-rules.js";
import type { Knock } from "../../src/channels/channel.js";
import { outboxRoute } from "../support/bus-fixture.js";

/** A policy with everything at its default. */
export function policy(overrides: Partial<AccessPolicy> = {}): AccessPolicy {
  const budget = { messages: 10, perMs: 600_000 };
  const lists = { allowFrom: [], groupAllowFrom: [], owners: [], allowChats: [] };
  return { ...lists, groupPolicy: "mention", allowBots: false, botBudget: budget, ...overrides };
}

/** Alice (id 7, `@Alice`) alone with the bot. */
export function direct(overrides: Partial<Knock> = {}): Knock {
  return {
    senderId: "7",
    aliases: ["Alice"],
    author: "person",
    scene: { kind: "direct" },
    messageId: "m1",
    route: { ...outboxRoute("7"), messageId: "m1" },
    ...overrides,
  };
}

type Group = Extract<Knock["scene"], { kind: "group" }>;

/** Alice in group -5, who mentions the bot unless told otherwise. */
export function inGroup(scene: Partial<Group> = {}, overrides: Partial<Knock> = {}): Knock {
  const usual: Group = { kind: "group", chatIds: ["-5"], isMentioned: true, isReplyToBot: false, isCommand: false };
  return direct({ scene: { ...usual, ...scene }, route: outboxRoute("-5"), ...overrides });
}

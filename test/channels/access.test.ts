/**
 * The one check, over a real Redis and bus: who is let in, who is told what and how often, and that nothing is told or
 * let in while Redis is away.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it, test } from "vitest";
import type { OutboundMessage } from "../../src/bus/messages.js";
import { createAdmission } from "../../src/channels/access.js";
import type { PairingStore } from "../../src/channels/ports.js";
import { hasCode } from "../../src/errors.js";
import { createLogger } from "../../src/logger.js";
import { PAIRING_LIMITS, type PairingLimits } from "../../src/redis/pairings.js";
import { type BusFixture, createBusFixture, eventsRoute, outboxRoute, until } from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";
import { direct, inGroup, policy } from "./knocks.js";

let redis: TestRedis;
const open: BusFixture[] = [];
beforeAll(async () => {
  redis = await TestRedis.start();
});
afterEach(async () => {
  for (const fixture of open.splice(0)) await fixture.close();
});
afterAll(() => redis.stop());

async function door(limits: Partial<PairingLimits> = {}, deadlineMs = 5_000) {
  const fixture = await createBusFixture(redis.address, { deadlineMs });
  open.push(fixture);
  const { bus, stack } = fixture;
  const pairings: PairingStore = stack.pairings(false, { ...PAIRING_LIMITS, ...limits });
  const log: string[] = [];
  const logger = createLogger({ level: "info", secrets: [], destination: { write: (line) => log.push(line) } });
  const hooks = { failReply: false };
  const reply: typeof bus.reply = (outgoing) =>
    hooks.failReply ? Promise.reject(new Error("cut off")) : bus.reply(outgoing);
  const admit = createAdmission({ pairings, budget: stack.botBudget, reply, logger });
  const told = async (): Promise<OutboundMessage[]> =>
    (await stack.outbox.read("bot", "0", 1)).map(({ outgoing }) => outgoing.message);
  const approve = async (senderId: string) => {
    const waiting = (await pairings.pending()).find((each) => each.senderId === senderId);
    return pairings.decide({ verdict: "approve", code: waiting?.code ?? "", by: "t", call: senderId });
  };
  return { admit, told, approve, pairings, log, hooks };
}

const ADMITTED = { kind: "admitted", isOwner: false };
const OWNER = { kind: "admitted", isOwner: true };
const REFUSED = { kind: "refused", why: expect.any(String) };

describe("somebody who is", () => {
  it("in the list, an owner, or everybody gets in without a word", async () => {
    const { admit, told, log } = await door();
    expect(await admit(direct(), policy({ allowFrom: ["7"] }))).toEqual(ADMITTED);
    expect(await admit(direct(), policy({ allowFrom: ["*"] }))).toEqual(ADMITTED);
    expect(await admit(direct(), policy({ owners: ["@alice"] }))).toEqual(OWNER);
    expect(await admit(inGroup(), policy({ groupAllowFrom: ["*"] }))).toEqual(ADMITTED);
    expect([await told(), log]).toEqual([[], []]);
  });

  it("a stranger in a group gets silence", async () => {
    const { admit, told, pairings, log } = await door();
    expect(await admit(inGroup({ isCommand: true }), policy())).toEqual(REFUSED);
    expect([await told(), await pairings.pending(), log]).toEqual([[], [], []]);
  });

  it("paired gets in everywhere but past the rules of groups, the first one as an owner", async () => {
    const { admit, approve, told, pairings } = await door();
    for (const senderId of ["7", "8"]) {
      await admit(direct({ senderId }), policy());
      await approve(senderId);
    }
    expect((await told()).filter(({ content }) => content.startsWith("You are paired now"))).toHaveLength(2);
    expect(await admit(direct(), policy())).toEqual(OWNER);
    expect(await admit(direct({ senderId: "8" }), policy())).toEqual(ADMITTED);
    expect(await admit(inGroup(), policy())).toEqual(OWNER);
    expect(await admit(inGroup({ isMentioned: false }), policy())).toEqual(REFUSED);
    expect(await admit(inGroup(), policy({ groupPolicy: "off" }))).toEqual(REFUSED);
    // A list that knows the person as well takes nothing from them.
    expect(await admit(direct(), policy({ allowFrom: ["7"] }))).toEqual(OWNER);
    // A pairing is of one channel, and of an id, whatever the name.
    expect(await admit(direct({ senderId: "9", aliases: ["7", "Alice"] }), policy())).toEqual(REFUSED);
    expect(await admit(direct({ route: { ...outboxRoute("7"), channel: "other" } }), policy())).toEqual(REFUSED);
    await pairings.revoke("chat", "7");
    expect(await admit(direct(), policy())).toEqual(REFUSED);
  });
});

describe("a stranger alone with the bot", () => {
  it("is told the code, how it is approved and for how long, where the question came from", async () => {
    const { admit, told, pairings, log } = await door();
    const route = { ...outboxRoute("7"), threadId: "t3", messageId: "m1" };
    expect(await admit(direct({ route }), policy())).toEqual(REFUSED);
    const [waiting] = await pairings.pending();
    const [message, ...others] = await told();
    expect(others).toEqual([]);
    expect(message).toMatchObject({ chatId: "7", threadId: "t3", replyTo: "m1", event: { type: "notice" } });
    expect(message?.content).toContain(`Your pairing code is \`${waiting?.code}\`, valid for 10 more minutes.`);
    expect(message?.content).toContain(`nanogate pairing approve ${waiting?.code}`);
    expect(message?.content).toContain(`/pairing approve ${waiting?.code}`);
    expect(log.join()).toContain("a stranger asks to be paired");
    expect(message?.id + log.join()).not.toContain(waiting?.code);
  });

  it("is told once however often they write, and again after a minute, with what is left of it", async () => {
    const { admit, told, log } = await door({ ttlMs: 150_000, tellMs: 300 });
    const write = (n: number) => admit(direct({ messageId: `m${n}` }), policy());
    await Promise.all([1, 2, 3, 4].map(write));
    expect(await told()).toHaveLength(1);
    expect(log).toHaveLength(1);
    const again = await until(async () => {
      await write(5);
      const messages = await told();
      return messages.length > 1 && messages;
    });
    expect(new Set(again.map(({ id }) => id)).size).toBe(2);
    for (const { content } of again) expect(content).toMatch(/valid for [23] more minutes/);
  });

  it("is told in the end, when the first answer was cut off", async () => {
    const { admit, told, hooks } = await door();
    hooks.failReply = true;
    await expect(admit(direct(), policy())).rejects.toThrow("cut off");
    hooks.failReply = false;
    expect(await admit(direct(), policy())).toEqual(REFUSED);
    expect(await told()).toHaveLength(1);
  });

  it("beyond the third is asked to come back, once, and no code is made", async () => {
    const { admit, told, pairings } = await door();
    for (const senderId of ["1", "2", "3", "4", "4", "4"]) await admit(direct({ senderId }), policy());
    const messages = await told();
    expect(messages).toHaveLength(4);
    expect(messages[3]?.content).toMatch(/try again later/);
    expect(await pairings.pending()).toHaveLength(3);
  });

  it("who was denied hears nothing more", async () => {
    const { admit, told, pairings } = await door();
    await admit(direct(), policy());
    const [waiting] = await pairings.pending();
    await pairings.decide({ verdict: "deny", code: waiting?.code ?? "", by: "t", call: "c" });
    expect(await admit(direct({ messageId: "m2" }), policy())).toEqual({
      kind: "refused",
      why: "an owner said no",
    });
    expect(await told()).toHaveLength(1);
  });

  it("is welcomed in the same place, without quoting what asked long ago", async () => {
    const { admit, told, approve } = await door();
    await admit(direct({ route: { ...outboxRoute("7"), threadId: "t3", messageId: "m1" } }), policy());
    await approve("7");
    const welcome = (await told())[1];
    expect(welcome).toMatchObject({
      chatId: "7",
      threadId: "t3",
      content: expect.stringContaining("You are paired now"),
    });
    expect(welcome).not.toHaveProperty("replyTo");
  });
});

describe("other bots", () => {
  const rules = policy({ allowBots: true, groupAllowFrom: ["*"], botBudget: { messages: 2, perMs: 60_000 } });
  const bot = (messageId: string, senderId = "b1") => inGroup({}, { author: "bot", senderId, messageId });

  it("get in within their budget; then there is silence and one line in the log", async () => {
    const { admit, told, log } = await door();
    expect([await admit(bot("1"), rules), await admit(bot("2"), rules)]).toEqual([ADMITTED, ADMITTED]);
    for (const id of ["3", "4", "5"]) expect(await admit(bot(id), rules)).toEqual(REFUSED);
    expect(await admit(bot("2"), rules)).toEqual(ADMITTED);
    expect(await admit(bot("3", "b2"), rules)).toEqual(ADMITTED);
    expect(await told()).toEqual([]);
    expect(log.map((line) => JSON.parse(line).msg)).toEqual([expect.stringContaining("budget")]);
  });

  it("get no code, are no owners and never paired", async () => {
    const { admit, told, pairings } = await door();
    await admit(direct(), policy());
    const [waiting] = await pairings.pending();
    await pairings.decide({ verdict: "approve", code: waiting?.code ?? "", by: "t", call: "c" });
    const before = await told();
    const robot = direct({ author: "bot" });
    expect(await admit(robot, policy({ allowBots: true }))).toEqual(REFUSED);
    expect(await admit(robot, policy({ allowBots: true, owners: ["7"], allowFrom: ["*"] }))).toEqual(ADMITTED);
    expect(await told()).toEqual(before);
  });

  it("that are refused by the rules take nothing from their budget", async () => {
    const { admit } = await door();
    for (let i = 0; i < 5; i += 1)
      await admit(inGroup({ isMentioned: false }, { author: "bot", senderId: "b1", messageId: `x${i}` }), rules);
    expect(await admit(bot("1"), rules)).toEqual(ADMITTED);
  });
});

test("a place of another kind is answered where it is", async () => {
  const { admit, pairings } = await door();
  expect(await admit(direct({ route: eventsRoute("7") }), policy())).toEqual(REFUSED);
  expect(await pairings.pending()).toMatchObject([{ channel: "web", senderId: "7" }]);
});

test("while Redis is away nobody gets in by pairing and nobody is refused: the platform must ask again", async () => {
  const { admit, approve } = await door({}, 200);
  await admit(direct(), policy());
  await approve("7");
  await redis.kill();
  const isAway = (error: unknown) => hasCode(error, "BUS_UNAVAILABLE");
  await expect(admit(direct(), policy())).rejects.toSatisfy(isAway);
  await expect(admit(direct(), policy({ allowFrom: ["*"] }))).rejects.toSatisfy(isAway);
  await expect(admit(inGroup({}, { author: "bot" }), policy({ allowBots: true, allowFrom: ["*"] }))).rejects.toSatisfy(
    isAway,
  );
  expect(await admit(direct(), policy({ owners: ["7"] }))).toEqual(OWNER);
  await redis.up();
  await until(() =>
    admit(direct(), policy()).then(
      (it) => it.kind === "admitted",
      () => false,
    ),
  );
});

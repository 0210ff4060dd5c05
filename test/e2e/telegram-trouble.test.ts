/** Telegram refuses, is away, is taken: the channel says so with advice, others go on, it recovers; answers find a way. */
import { afterEach, expect, it } from "vitest";
import { ForeignPoller } from "../fakes/telegram/foreign-poller.js";
import { Client } from "./support/client.js";
import type { GatewayProcess } from "./support/stage.js";
import { TelegramStage, type TelegramStageOptions } from "./support/telegram.js";

let on: TelegramStage;
afterEach(() => on.close());

async function open(options: TelegramStageOptions = {}) {
  on = await TelegramStage.open({ ...options, telegram: { streaming: false, ...options.telegram } });
  return { fake: on.fake, alice: on.fake.person("alice"), model: on.stage.model };
}

/** Somebody on a WebSocket is answered. */
async function webGoesOn(gateway: GatewayProcess): Promise<void> {
  const client = new Client("c1");
  await client.connect(await gateway.url("alice"));
  await client.say("hello web", "m1");
  await client.end("m1");
  client.disconnect();
  expect(client.answers).toEqual(["re: hello web"]);
}

it("another program polls with the token: said with advice, not fought, others go on, it recovers by itself", async () => {
  const { fake, alice } = await open();
  const gateway = await on.polling();
  const foreign = new ForeignPoller(fake);
  await fake.until(() => fake.journal.refused(409).length > 0);
  const { problem, advice } = await on.problem(gateway);
  expect(`${problem} ${advice}`).toMatch(/another program|somebody else/i);
  await webGoesOn(gateway);
  await on.staysFailed(gateway, 5000);
  expect(foreign.conflicts).toBeLessThanOrEqual(1);
  await foreign.end();
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"], { withinMs: 60_000 });
  await on.recovered(gateway, 5000);
}, 90_000);

it("a revoked token: the channel has failed and says what to do, the token stands nowhere, others go on", async () => {
  const { fake } = await open();
  fake.revokeToken();
  const gateway = await on.gateway();
  const said = JSON.stringify(await on.problem(gateway));
  expect(said).toMatch(/token/i);
  expect(said).toMatch(/BotFather/i);
  expect(said).not.toContain(on.secret);
  await webGoesOn(gateway);
  const calls = fake.journal.entries.length;
  await expect(fake.until(() => fake.journal.entries.length > calls + 1, 3000)).rejects.toThrow("did not happen");
  expect(gateway.log).not.toContain(on.secret);
});

it("a token of the wrong shape is refused before use and never repeated", async () => {
  const { fake } = await open({ telegram: { token: "not-a-token-but-a-secret" } });
  const gateway = await on.gateway();
  const said = JSON.stringify(await on.problem(gateway));
  expect(said).toMatch(/token/i);
  await webGoesOn(gateway);
  expect(fake.journal.entries).toEqual([]);
  expect(said + gateway.log).not.toContain("not-a-token-but-a-secret");
});

it("429: the wait is kept to the millisecond, and only that chat waits", async () => {
  const { fake, alice } = await open();
  const bob = fake.person("bob");
  await on.polling();
  alice.dm("early");
  fake.flood(alice.chat, 3);
  await fake.until(() => fake.journal.refused(429).length === 1);
  bob.dm("hello");
  await on.answered(bob.chat, ["re: hello"], { withinMs: 2500 });
  expect(alice.chat.answers()).toEqual([]);
  await on.answered(alice.chat, ["re: early"]);
  const [first, second, ...more] = fake.journal.calls("sendMessage", alice.id);
  expect(more).toEqual([]);
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(2970);
});

it("a poll that is told to wait waits, and then goes on", async () => {
  const { fake, alice } = await open();
  fake.faults.order("getUpdates", {
    kind: "refuse",
    code: 429,
    description: "Too Many Requests: retry after 2",
    retryAfter: 2,
  });
  fake.faults.order("getUpdates", { kind: "gateway", status: 502, effect: "before" });
  await on.gateway();
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"]);
  const [first, second] = fake.journal.calls("getUpdates");
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(1990);
});

it("somebody blocked the bot: a dead letter that says so, others are answered", async () => {
  const { fake, alice, model } = await open();
  const bob = fake.person("bob");
  await on.polling();
  const release = model.hold("too late");
  alice.dm("too late");
  await fake.until(() => model.asked("too late") === 1);
  alice.blocks();
  release();
  await fake.until(() => fake.journal.refused(403).some(({ method }) => method === "sendMessage"));
  bob.dm("hello");
  await on.answered(bob.chat, ["re: hello"]);
  expect(await on.deadLetters()).toEqual([
    expect.objectContaining({
      chatId: String(alice.id),
      text: "re: too late",
      error: expect.stringMatching(/blocked/),
    }),
  ]);
  expect(fake.journal.calls("sendMessage", alice.id)).toHaveLength(1);
});

it("a topic that is gone: the answer goes to the chat without it", async () => {
  const { fake, alice, model } = await open({ telegram: { groupPolicy: "open" } });
  const forum = fake.forum();
  const topic = forum.topic("short-lived", alice.user);
  await on.polling();
  const release = model.hold("where to?");
  alice.says(forum, "where to?", { topic });
  await fake.until(() => model.asked("where to?") === 1);
  forum.topics.delete(topic.id);
  release();
  await on.answered(forum, ["re: where to?"], { thread: null });
});

it("a group that became a supergroup: the answer follows it", async () => {
  const { fake, alice, model } = await open({ telegram: { groupPolicy: "open" } });
  const group = fake.group();
  await on.polling();
  const release = model.hold("wait for me");
  alice.says(group, "wait for me");
  await fake.until(() => model.asked("wait for me") === 1);
  const moved = fake.upgrade(group, alice);
  release();
  await on.answered(moved, ["re: wait for me"]);
});

it.each(["before", "after"] as const)(
  "the connection is cut %s the effect: not repeated blindly, and listed",
  async (effect) => {
    const { fake, alice } = await open();
    await on.polling();
    fake.faults.order("sendMessage", { kind: "reset", effect }, { chatId: alice.id });
    alice.dm("one");
    alice.dm("two");
    const seen = effect === "after" ? ["re: one", "re: two"] : ["re: two"];
    await on.answered(alice.chat, seen);
    const [letter, ...more] = await on.deadLetters();
    expect([letter?.text, more]).toEqual(["re: one", []]);
    expect(letter?.error).toMatch(/unknown/);
    if (effect === "after") await on.outbox("drop", letter?.id ?? "");
    else {
      await on.outbox("retry", letter?.id ?? "");
      await on.answered(alice.chat, ["re: two", "re: one"]);
    }
    expect(await on.deadLetters()).toEqual([]);
  },
);

it("Telegram has trouble of its own: the answer is sent again and stands there once", async () => {
  const { fake, alice } = await open();
  await on.polling();
  fake.faults.order("sendMessage", { kind: "refuse", code: 500, description: "Internal Server Error" }, { times: 2 });
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"]);
  expect(await on.deadLetters()).toEqual([]);
});

it("Redis is away: nothing is confirmed meanwhile, all is answered in order when it is back", async () => {
  const { fake, alice } = await open();
  await on.polling();
  alice.dm("one");
  await on.answered(alice.chat, ["re: one"]);
  await on.stage.redis.kill();
  const said = ["two", "three"].map((text) => alice.dm(text));
  await fake.until(() => fake.updates.isGiven(said[0]?.updateId ?? 0));
  expect(said.map(({ updateId }) => fake.updates.isConfirmed(updateId))).toEqual([false, false]);
  await on.stage.redis.up();
  await on.answered(alice.chat, ["re: one", "re: two", "re: three"], { withinMs: 40_000 });
});

/** People talk to the bot on Discord: direct messages, servers, threads, commands; answers stand where they were asked for. */
import { afterEach, expect, it } from "vitest";
import { DiscordStage, type DiscordStageOptions } from "./support/discord.js";
import { historyFaults } from "./support/history.js";

let on: DiscordStage;
afterEach(() => on.close());

const TYPING = "POST /channels/:channel/typing";
const EDIT = "PATCH /channels/:channel/messages/:message";

async function open(options: DiscordStageOptions = {}) {
  on = await DiscordStage.open(options);
  const home = on.fake.guild();
  return { fake: on.fake, general: on.fake.text(home), home, alice: on.fake.person("alice") };
}

it("a direct message is answered, typing is shown meanwhile", async () => {
  const { fake, alice } = await open();
  await on.connected();
  const release = on.stage.model.hold("hello");
  alice.dm("hello");
  await fake.until(() => fake.journal.calls(TYPING, alice.chat.id).length > 0);
  expect(fake.answers(alice.chat)).toEqual([]);
  release();
  await on.answered(alice.chat, ["re: hello"]);
  alice.dm("and again");
  await on.answered(alice.chat, ["re: hello", "re: and again"]);
  const rows = await on.stage.rows(`discord:${alice.chat.id}`);
  expect(rows.filter(({ role }) => role === "user")).toHaveLength(2);
  expect(historyFaults(rows)).toEqual([]);
});

it("the token alone is enough to be there, and to tell a stranger how to be let in", async () => {
  const { fake, alice } = await open({ discord: { token: undefined, allowFrom: undefined } });
  await on.connected({ env: { DISCORD_BOT_TOKEN: fake.token } });
  const answer = await on.answerTo(alice.dm("hello"));
  expect(answer.content).toMatch(/[A-Z0-9]{4}-?[A-Z0-9]{4}/);
});

it("a stranger gets no answer of the model", async () => {
  const { alice } = await open({ discord: { allowFrom: [], groupAllowFrom: [] } });
  await on.connected();
  await on.answerTo(alice.dm("let me in"));
  expect(on.fake.answers(alice.chat).join()).not.toContain("re: ");
  expect(on.stage.model.asked("let me in")).toBe(0);
});

it("in a server it answers who mentions it or replies to it, where they are, and nobody else", async () => {
  const { fake, general, home, alice } = await open();
  const other = fake.text(home, "other");
  await on.connected();
  alice.says(general, "not for the bot");
  const asked = alice.says(general, `${fake.mention} what is it?`);
  const answer = await on.answerTo(asked);
  await fake.until(() => answer.content.endsWith("what is it?"));
  alice.says(other, "not for the bot either");
  const reply = alice.says(general, "and why?", { replyTo: answer, pings: false });
  const second = await on.answerTo(reply);
  await fake.until(() => second.content.includes("and why?"));
  expect(fake.answers(general)).toHaveLength(2);
  expect(fake.answers(other)).toEqual([]);
  expect(on.stage.model.asked("not for the bot")).toBe(0);
});

it("an answer is shown while it is made: one message, edited, never faster than the interval", async () => {
  const { fake, general, alice } = await open();
  await on.connected();
  const text = `slowly ${"word ".repeat(100).trim()}`;
  const answer = await on.answerTo(alice.says(general, `${fake.mention} ${text}`));
  await fake.until(() => answer.content.endsWith(text));
  const edits = fake.journal.calls(EDIT, general.id);
  expect(fake.answers(general)).toHaveLength(1);
  expect(edits.length).toBeGreaterThan(1);
  const gaps = edits.slice(1).map(({ arrivedMs }, at) => arrivedMs - (edits[at]?.arrivedMs ?? 0));
  // The last edit, the whole answer, need not wait for the interval.
  for (const gap of gaps.slice(0, -1)) expect(gap).toBeGreaterThan(120);
  expect(fake.buckets.violations).toEqual([]);
});

it("a thread is a conversation of its own, answered in the thread", async () => {
  const { fake, general, home, alice } = await open({ discord: { groupPolicy: "open" } });
  await on.connected();
  const thread = alice.startsThread(general, "talk");
  alice.says(thread, "in the thread");
  await on.answered(thread, ["re: in the thread"]);
  alice.says(general, "in the channel");
  await on.answered(general, ["re: in the channel"]);
  const { thread: post } = alice.posts(fake.forum(home), "question", "in the forum");
  await on.answered(post, ["re: in the forum"]);
  const keys = [`discord:${general.id}:thread:${thread.id}`, `discord:${general.id}`];
  for (const key of keys) expect(await on.stage.rows(key)).toHaveLength(2);
});

it("a slash command is deferred at once and answered, for its user only", async () => {
  const { fake, general, alice } = await open();
  await on.connected();
  await fake.until(() => fake.world.commands.has("status"));
  const inDirectChat = alice.runs(alice.chat, "status");
  const inServer = alice.runs(general, "status");
  for (const run of [inDirectChat, inServer]) {
    await fake.until(() => fake.answerTo(run) !== null && fake.answerTo(run) !== "");
    expect(run.isEphemeral).toBe(true);
  }
  expect(fake.visible(general)).toEqual([]);
});

it("a long answer comes in parts that Discord takes; joined they are the answer", async () => {
  const { fake, alice } = await open({ discord: { streaming: false } });
  await on.connected();
  const text = Array.from({ length: 390 }, (_, n) => `word${n}`).join(" ");
  alice.dm(text.slice(0, 3900));
  const joined = () => fake.answers(alice.chat).join(" ").replaceAll(/\s+/g, " ");
  await fake.until(() => joined() === `re: ${text.slice(0, 3900)}`);
  expect(fake.answers(alice.chat).length).toBeGreaterThan(1);
  expect(fake.journal.entries.filter(({ status }) => (status ?? 200) >= 400)).toEqual([]);
});

it("an edit of a waiting message replaces it; one message, one turn", async () => {
  const { fake, alice } = await open();
  await on.connected();
  const release = on.stage.model.hold("first");
  alice.dm("first");
  await fake.until(() => on.stage.model.asked("first") === 1);
  const waiting = alice.dm("secnod");
  alice.edits(waiting, "second");
  alice.dm("third");
  release();
  await fake.until(() => fake.answers(alice.chat).includes("re: third"));
  expect(fake.answers(alice.chat)).toEqual(["re: first", "re: second", "re: third"]);
});

it("itself, other bots, webhooks and Discord's own words get no answer", async () => {
  const { fake, general, alice } = await open({ discord: { groupPolicy: "open" } });
  await on.connected();
  fake.otherBot("other").says(general, `${fake.mention} hello`);
  fake.webhookSays(general, "hook", `${fake.mention} hello`);
  fake.systemMessage(general, alice, 7);
  const asked = alice.says(general, "a person");
  await on.answerTo(asked);
  await on.answered(general, ["re: a person"]);
});

/** People talk to the bot on Telegram: alone, in groups, in topics; it answers there, in the right place, while it thinks. */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, expect, it } from "vitest";
import { TelegramStage, type TelegramStageOptions } from "./support/telegram.js";

let on: TelegramStage;
afterEach(() => on.close());

async function open(options: TelegramStageOptions = {}) {
  on = await TelegramStage.open(options);
  await on.polling();
  return { fake: on.fake, alice: on.fake.person("alice"), model: on.stage.model };
}

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

it("a private question: the answer grows by edits of one message, and the last edit is the whole of it", async () => {
  const { alice } = await open();
  const question = `slowly ${"word ".repeat(400).trim()}`;
  alice.dm(question);
  await on.answered(alice.chat, [`re: ${question}`]);
  const [answer] = alice.chat.visible().filter(({ isBot }) => isBot);
  const versions = alice.chat.find(answer?.id ?? 0)?.shown ?? [];
  expect(versions.length).toBeGreaterThan(2);
  for (const { text } of versions) expect(`re: ${question}`.startsWith(text.replace(/\W+$/, ""))).toBe(true);
  const gaps = versions.slice(1).map(({ atMs }, at) => atMs - (versions[at]?.atMs ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThan(970);
  expect(alice.chat.typing.length).toBeGreaterThan(0);
});

it("a long answer: parts within the limit, in order, nothing lost or twice", async () => {
  const { alice } = await open();
  const words = Array.from({ length: 700 }, (_, n) => `👍🏽<&>${n};`);
  await writeFile(path.join(on.stage.workspace, "long.md"), words.join("\n"));
  alice.dm('call read_file {"path":"long.md"}');
  await on.answer(alice.chat, ({ text }) => text.includes("end of file"));
  const parts = alice.chat.visible().filter(({ isBot }) => isBot);
  expect(parts.length).toBeGreaterThan(2);
  expect(parts.flatMap(({ text }) => text.match(/👍🏽<&>\d+;/g) ?? [])).toEqual(words);
  const refused = on.fake.journal.entries.filter(({ outcome }) => outcome === "refused");
  expect(refused.filter(({ description }) => description?.includes("not modified") !== true)).toEqual([]);
});

it("drafts, where they are switched on: the answer grows as a draft and stands there once", async () => {
  const { fake, alice } = await open({ telegram: { drafts: true } });
  const question = `slowly ${"word ".repeat(300).trim()}`;
  alice.dm(question);
  await on.answered(alice.chat, [`re: ${question}`]);
  expect(alice.chat.drafts.length).toBeGreaterThan(0);
  expect(alice.chat.draft).toBeNull();
  expect(fake.journal.calls("editMessageText")).toEqual([]);
});

it("configured by its token alone: strangers get a pairing code and nothing else", async () => {
  on = await TelegramStage.open({ telegram: { token: undefined, allowFrom: [], groupAllowFrom: [] } });
  await on.polling({ env: { TELEGRAM_BOT_TOKEN: on.fake.token } });
  const stranger = on.fake.person("mallory");
  stranger.dm("hello");
  const { text } = await on.answer(stranger.chat);
  expect(text).toMatch(/[A-Z0-9]{4}-[A-Z0-9]{4}/);
  const group = on.fake.group();
  stranger.says(group, `${on.fake.mention} hello`);
  stranger.dm("again");
  await on.fake.until(() => on.fake.updates.pending.length === 0);
  expect(group.answers()).toEqual([]);
  expect([on.stage.model.asked("hello"), on.stage.model.asked("again")]).toEqual([0, 0]);
});

it("a group: only what mentions or answers the bot is read", async () => {
  const { fake, alice, model } = await open();
  const group = fake.supergroup();
  alice.says(group, "talking among ourselves");
  alice.says(group, `${fake.mention} what is new?`);
  const answer = await on.answer(group);
  expect(answer.text).toContain("what is new?");
  alice.says(group, "and then?", { replyTo: { message_id: answer.id } });
  await on.answer(group, ({ text }) => text.includes("and then?"));
  expect(model.asked("among ourselves")).toBe(0);
  expect(group.answers()).toHaveLength(2);
});

it("topics: each its own session, each answered in its place, General and typing too", async () => {
  const { fake, alice } = await open({ telegram: { groupPolicy: "open", reaction: "👀" } });
  const forum = fake.forum();
  const [one, two] = [forum.topic("one", alice.user), forum.topic("two", alice.user)];
  alice.says(forum, "in one", { topic: one });
  alice.says(forum, "in General");
  alice.says(forum, "in two", { topic: two });
  await on.answered(forum, ["re: in one"], { thread: one.id });
  await on.answered(forum, ["re: in two"], { thread: two.id });
  await on.answered(forum, ["re: in General"], { thread: null });
  expect(new Set(forum.typing.map(({ thread }) => thread))).toEqual(new Set([one.id, two.id, 1]));
  const rows = await on.stage.rows(`telegram:${forum.id}:topic:${one.id}`);
  expect(rows.map(({ role }) => role)).toEqual(["user", "assistant"]);
  await fake.until(() => forum.visible().every(({ reactions }) => reactions.length === 0));
});

it("an album is one turn with all its files and its one caption", async () => {
  const { alice, model } = await open();
  const photo = (caption?: string) => ({
    kind: "photo" as const,
    bytes: PNG,
    ...(caption === undefined ? {} : { caption }),
  });
  alice.album(alice.chat, [photo("what are these?"), photo(), photo()]);
  alice.dm("and next");
  await on.answer(alice.chat, ({ text }) => text.includes("and next"));
  expect(model.asked("what are these?")).toBe(1);
  const rows = (await on.stage.rows(`telegram:${alice.id}`)).filter(({ role }) => role === "user");
  expect(rows).toHaveLength(2);
  expect(rows[0]?.media).toHaveLength(3);
  expect(new Set(on.fake.journal.calls("file").map(({ params }) => params.path)).size).toBe(3);
});

it("an edit of a waiting message replaces it", async () => {
  const { alice, model } = await open();
  const release = model.hold("first");
  alice.dm("first");
  await on.fake.until(() => model.asked("first") === 1);
  const second = alice.dm("second, with a mistake");
  alice.edits(second, "second, corrected");
  await on.fake.until(() => on.fake.updates.pending.length === 0);
  release();
  await on.answered(alice.chat, ["re: first", "re: second, corrected"]);
  expect(model.asked("mistake")).toBe(0);
});

it("commands from the one table: in the menu, answered at once, also to the bot's name", async () => {
  const { fake, alice, model } = await open();
  const menu = [...fake.world.commands.values()].flat().map(({ command }) => command);
  expect(menu).toEqual(expect.arrayContaining(["help", "stop", "status", "new"]));
  alice.says(alice.chat, "/help");
  expect((await on.answer(alice.chat)).text).toContain("/stop");
  const group = fake.group();
  alice.says(group, `/status${fake.mention}`);
  await on.answer(group);
  alice.says(group, "/status@other_bot");
  alice.dm("done");
  await on.answer(alice.chat, ({ text }) => text === "re: done");
  expect(group.answers()).toHaveLength(1);
  expect(model.asked("/")).toBe(0);
});

it("what no bot understands is skipped and holds nothing up", async () => {
  const { fake, alice } = await open();
  fake.updates.raw({ message: 17 });
  fake.updates.raw({ message: { message_id: "x", chat: null } });
  fake.updates.raw({ brand_new_kind: { deep: [1] } });
  fake.updates.raw({});
  fake.channelPost(fake.channel(), "news");
  alice.sticker(alice.chat, "🎉");
  alice.location(alice.chat, 52.5, 13.4);
  alice.contact(alice.chat, "Bob", "+4930123456");
  alice.dm("still there?");
  await on.answer(alice.chat, ({ text }) => text === "re: still there?");
  await fake.until(() => fake.updates.pending.length === 0);
  const said = alice.chat.answers().join("\n");
  for (const part of ["🎉", "52.5", "+4930123456"]) expect(said).toContain(part);
});

it("a file that is too big or empty is named, and its words are answered", async () => {
  const { alice } = await open();
  alice.sends(alice.chat, { kind: "video", bytes: PNG, announced: 50_000_000, caption: "look at this" });
  const big = await on.answer(alice.chat, ({ text }) => text.includes("look at this"));
  expect(big.text).toMatch(/50 MB/);
  alice.sends(alice.chat, { kind: "document", bytes: Buffer.alloc(0), name: "../../etc/passwd", caption: "and this" });
  const empty = await on.answer(alice.chat, ({ text }) => text.includes("and this"));
  expect(empty.text).toMatch(/empty/);
  expect(on.fake.journal.calls("getFile").length).toBeLessThanOrEqual(1);
});

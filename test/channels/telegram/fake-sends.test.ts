/** The strict fake, driven by the real SDK: what a bot sends and changes is taken or refused as Telegram does. */
import { Api, InputFile } from "grammy";
import type { MessageEntity } from "grammy/types";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeTelegram } from "../../fakes/telegram/fake-telegram.js";
import type { Person } from "../../fakes/telegram/people.js";

const PNG = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(100)]);

let fake: FakeTelegram;
let api: Api;
let alice: Person;
beforeEach(async () => {
  fake = await FakeTelegram.start();
  api = new Api(fake.token, { apiRoot: fake.apiRoot });
  alice = fake.person("alice");
  alice.dm("hello");
});
afterEach(() => fake.close());

/** The refusal of a call, in Telegram's words. */
async function refusal(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "it was taken",
    (error: { description?: string }) => error.description ?? String(error),
  );
}

const bold = (offset: number, length: number): MessageEntity => ({ type: "bold", offset, length });

describe("texts", () => {
  it("shows what was sent, with entities, buttons and the message it answers", async () => {
    const question = alice.dm("and now?");
    const keyboard = { inline_keyboard: [[{ text: "Yes", callback_data: "y" }]] };
    await api.sendMessage(alice.id, "  so 👍 it is \n", {
      entities: [bold(2, 5)],
      reply_markup: keyboard,
      reply_parameters: { message_id: question.message_id },
    });
    expect(alice.chat.visible().at(-1)).toMatchObject({
      isBot: true,
      text: "so 👍 it is",
      entities: [bold(0, 5)],
      replyTo: question.message_id,
      buttons: [[{ label: "Yes", data: "y" }]],
      isEdited: false,
    });
  });

  it.each<[string, string, MessageEntity[], string]>([
    ["nothing", "", [], "message text is empty"],
    ["blanks", " \n ", [], "message text is empty"],
    ["4097 units", "x".repeat(4097), [], "message is too long"],
    ["4098 units of emoji", "👍".repeat(2049), [], "message is too long"],
    ["half a pair", "a\ud83d", [], "strings must be encoded in UTF-8"],
    ["an entity beyond the end", "ab", [bold(1, 2)], "ends after the end of the text"],
    ["an entity that begins inside a pair", "👍a", [bold(1, 1)], "begins in a middle of a UTF-16 symbol"],
    ["an entity that ends inside a pair", "👍a", [bold(0, 1)], "ends in a middle of a UTF-16 symbol"],
    ["a script as a link", "ab", [{ type: "text_link", offset: 0, length: 1, url: "javascript:1" }], "unsupported URL"],
  ])("refuses %s", async (_, text, entities, why) => {
    expect(await refusal(api.sendMessage(alice.id, text, { entities }))).toContain(why);
    expect(alice.chat.answers()).toEqual([]);
  });

  it("takes 4096 units after the tags, and refuses tags that do not fit", async () => {
    await api.sendMessage(alice.id, `<b>${"x".repeat(4094)}</b>&lt;&amp;`, { parse_mode: "HTML" });
    expect(alice.chat.answers()[0]).toHaveLength(4096);
    for (const html of ["<b>a", "a</b>", "<b><i>a</b></i>", "<h1>a</h1>", "a < b"]) {
      expect(await refusal(api.sendMessage(alice.id, html, { parse_mode: "HTML" }))).toContain("can't parse entities");
    }
  });

  it.each<[string, string]>([
    ["", "BUTTON_DATA_INVALID"],
    ["é".repeat(33), "BUTTON_DATA_INVALID"],
  ])("refuses a button with the data %j", async (callback_data, why) => {
    const reply_markup = { inline_keyboard: [[{ text: "a", callback_data }]] };
    expect(await refusal(api.sendMessage(alice.id, "a", { reply_markup }))).toContain(why);
  });
});

describe("changes", () => {
  it("keeps every version, refuses one that is the same, and takes a keyboard away that is not named", async () => {
    const reply_markup = { inline_keyboard: [[{ text: "a", callback_data: "b" }]] };
    const { message_id } = await api.sendMessage(alice.id, "one", { reply_markup });
    expect(await refusal(api.editMessageText(alice.id, message_id, "one", { reply_markup }))).toContain(
      "message is not modified",
    );
    await api.editMessageText(alice.id, message_id, "one");
    await api.editMessageText(alice.id, message_id, "two");
    expect(alice.chat.visible().at(-1)).toMatchObject({ text: "two", buttons: [], isEdited: true });
    expect(alice.chat.find(message_id)?.shown.map(({ text }) => text)).toEqual(["one", "one", "two"]);
    expect(await refusal(api.editMessageText(alice.id, message_id, "x".repeat(4097)))).toContain("MESSAGE_TOO_LONG");
  });

  it("refuses to edit what is gone or another's, and to answer what is not there", async () => {
    const question = alice.dm("mine");
    const { message_id } = await api.sendMessage(alice.id, "one");
    await api.deleteMessage(alice.id, message_id);
    expect(alice.chat.answers()).toEqual([]);
    expect(await refusal(api.editMessageText(alice.id, message_id, "two"))).toContain("message to edit not found");
    expect(await refusal(api.deleteMessage(alice.id, message_id))).toContain("message to delete not found");
    expect(await refusal(api.editMessageText(alice.id, question.message_id, "two"))).toContain("can't be edited");
    const reply_parameters = { message_id };
    expect(await refusal(api.sendMessage(alice.id, "a", { reply_parameters }))).toContain(
      "message to be replied not found",
    );
    await api.sendMessage(alice.id, "a", { reply_parameters: { message_id, allow_sending_without_reply: true } });
    expect(alice.chat.answers()).toEqual(["a"]);
  });

  it("shows drafts in private chats until a message comes", async () => {
    await api.raw.sendMessageDraft({ chat_id: alice.id, draft_id: 7, text: "so f" });
    expect(alice.chat.draft).toEqual({ id: 7, text: "so f" });
    await api.sendMessage(alice.id, "so far");
    expect(alice.chat.draft).toBeNull();
    expect(await refusal(api.raw.sendMessageDraft({ chat_id: alice.id, draft_id: 0, text: "a" }))).toContain(
      "draft_id",
    );
    const group = fake.group();
    expect(await refusal(api.raw.sendMessageDraft({ chat_id: group.id, draft_id: 1, text: "a" }))).toContain("private");
  });
});

describe("places", () => {
  it("keeps topics apart: sends into General name none, typing there names 1", async () => {
    const forum = fake.forum();
    const topic = forum.topic("help", alice.user);
    await api.sendMessage(forum.id, "in it", { message_thread_id: topic.id });
    await api.sendMessage(forum.id, "in General");
    expect(forum.answers(topic.id)).toEqual(["in it"]);
    expect(forum.answers(null)).toEqual(["in General"]);
    for (const message_thread_id of [1, topic.id + 50])
      expect(await refusal(api.sendMessage(forum.id, "a", { message_thread_id }))).toContain("thread not found");
    await api.sendChatAction(forum.id, "typing", { message_thread_id: 1 });
    await api.sendChatAction(forum.id, "typing");
    expect(forum.typing.map(({ thread }) => thread)).toEqual([1]);
    topic.isClosed = true;
    expect(await refusal(api.sendMessage(forum.id, "a", { message_thread_id: topic.id }))).toContain("TOPIC_CLOSED");
  });

  it("refuses where the bot may not write, and says where a group went", async () => {
    expect(await refusal(api.sendMessage(1, "a"))).toContain("chat not found");
    expect(await refusal(api.sendMessage(fake.person("bob").chat.id, "a"))).toContain("can't initiate conversation");
    alice.blocks();
    expect(await refusal(api.sendMessage(alice.id, "a"))).toBe("Forbidden: bot was blocked by the user");
    const group = fake.group();
    group.standing = "restricted";
    expect(await refusal(api.sendMessage(group.id, "a"))).toContain("not enough rights");
    group.standing = "member";
    const moved = fake.upgrade(group, alice);
    await expect(api.sendMessage(group.id, "a")).rejects.toMatchObject({
      error_code: 400,
      parameters: { migrate_to_chat_id: moved.id },
    });
  });
});

describe("files", () => {
  it("takes files by form, one by one and as albums, and gives them out again", async () => {
    const file = await api.sendDocument(alice.id, new InputFile(Buffer.from("text\r\n--x"), "a b;c.txt"), {
      caption: "hi",
    });
    const two = [1, 2].map((at) => ({ type: "photo" as const, media: new InputFile(PNG, `${at}.png`) }));
    await api.sendMediaGroup(alice.id, two);
    const [document, ...photos] = alice.chat.visible().slice(-3);
    expect(document).toMatchObject({ text: "hi", media: { kind: "document", name: "a b;c.txt", bytes: 9 } });
    expect(photos.map(({ album, media }) => [album, media?.kind])).toEqual([
      [photos[0]?.album, "photo"],
      [photos[0]?.album, "photo"],
    ]);
    const { file_path } = await api.getFile(file.document.file_id);
    const response = await fetch(`${fake.apiRoot}/file/bot${fake.token}/${file_path}`);
    expect(await response.text()).toBe("text\r\n--x");
  });

  it("refuses empty files, pictures that are none, albums that cannot be, and long captions", async () => {
    const empty = new InputFile(Buffer.alloc(0), "a.txt");
    expect(await refusal(api.sendDocument(alice.id, empty))).toContain("file must be non-empty");
    expect(await refusal(api.sendPhoto(alice.id, new InputFile(Buffer.from("no"), "a.png")))).toContain(
      "IMAGE_PROCESS",
    );
    const photo = () => ({ type: "photo" as const, media: new InputFile(PNG, "a.png") });
    expect(await refusal(api.sendMediaGroup(alice.id, [photo()]))).toContain("2-10");
    const document = { type: "document" as const, media: new InputFile(PNG, "a.png") };
    const mixed = api.raw.sendMediaGroup({ chat_id: alice.id, media: [photo(), document] as never });
    expect(await refusal(mixed)).toContain("can't be grouped");
    const caption = "x".repeat(1025);
    expect(await refusal(api.sendDocument(alice.id, new InputFile(PNG, "a"), { caption }))).toContain(
      "caption is too long",
    );
    expect(alice.chat.answers()).toEqual([]);
  });

  it("gives out nothing above 20 MB", async () => {
    alice.sends(alice.chat, { kind: "video", bytes: PNG, announced: 50_000_000 });
    const [update] = (await api.getUpdates({ offset: -1 })) ?? [];
    const id = update?.message?.video?.file_id ?? "";
    expect(await refusal(api.getFile(id))).toBe("Bad Request: file is too big");
    expect(await refusal(api.getFile("other"))).toContain("wrong file_id");
  });
});

it("takes reactions, presses and menus as Telegram does", async () => {
  const { message_id } = alice.dm("hi");
  await api.setMessageReaction(alice.id, message_id, [{ type: "emoji", emoji: "👀" }]);
  expect(alice.chat.visible().at(-1)?.reactions).toEqual(["👀"]);
  const odd = [{ type: "emoji", emoji: "🧪" as "👀" }] as const;
  expect(await refusal(api.setMessageReaction(alice.id, message_id, [...odd]))).toContain("REACTION_INVALID");
  const reply_markup = { inline_keyboard: [[{ text: "Yes", callback_data: "y" }]] };
  const sent = await api.sendMessage(alice.id, "sure?", { reply_markup });
  expect(() => alice.presses(alice.chat, sent.message_id, "No")).toThrow("no button");
  const press = alice.presses(alice.chat, sent.message_id, "Yes");
  await api.answerCallbackQuery(press.id, { text: "ok" });
  expect(press.answer).toEqual({ text: "ok", isAlert: false });
  expect(await refusal(api.answerCallbackQuery(press.id))).toContain("query is too old");
  const menu = (command: string) => api.setMyCommands([{ command, description: "Stops" }]);
  await menu("stop");
  expect(await api.getMyCommands()).toEqual([{ command: "stop", description: "Stops" }]);
  expect(await refusal(menu("Stop-it"))).toContain("BOT_COMMAND_INVALID");
});

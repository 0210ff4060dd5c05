/** The channel as people meet it, through the real discord.js: who is heard where, what of, and where answers go. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeDiscord } from "../../fakes/discord/fake-discord.js";
import { answer, Harness, sendAll } from "./harness.js";

let fake: FakeDiscord;
let harness: Harness;

beforeEach(async () => {
  fake = await FakeDiscord.start({ identifyEveryMs: 0 });
  harness = await Harness.make(fake);
});

afterEach(async () => {
  await harness.close();
  expect(fake.journal.strange).toEqual([]);
  await fake.close();
});

describe("a message", () => {
  it("in a direct chat is handed in once with its place, and its answer goes there", async () => {
    await harness.start();
    const ann = fake.person("ann");
    const said = ann.dm("hello");
    const [message] = await harness.arrived(1);
    const place = { channel: "discord", chatId: ann.chat.id };
    expect(message).toMatchObject({ ...place, id: said.id, kind: "message", senderId: ann.id, content: "hello" });
    const { account } = harness.channel;
    expect(message?.route).toEqual({ ...place, via: "outbox", account, messageId: said.id, isStreaming: true });
    await sendAll(harness.channel, answer(ann.chat, "hi there", { replyTo: said.id }));
    expect(fake.answers(ann.chat)).toEqual(["hi there"]);
    expect(fake.visible(ann.chat).at(-1)?.replyTo).toBeNull();
    expect(harness.channel.health()).toEqual({ state: "running" });
  });

  it("in a server is known by channel and server, and its answer quotes it without a ping", async () => {
    const guild = fake.guild();
    const room = fake.text(guild);
    await harness.start();
    const said = fake.person("ann").says(room, `${fake.mention} what is up @everyone?`);
    const [message] = await harness.arrived(1);
    expect(message).toMatchObject({ chatId: room.id, content: "what is up @everyone?" });
    expect(harness.knocks[0]?.scene).toMatchObject({ kind: "group", isMentioned: true, isReplyToBot: false });
    expect(harness.knocks[0]?.scene).toMatchObject({ chatIds: [room.id, guild.id, `guild:${guild.id}`] });
    await sendAll(harness.channel, answer(room, `@everyone <@${said.author.id}> nothing`, { replyTo: said.id }));
    expect(fake.visible(room).at(-1)).toMatchObject({ replyTo: said.id, pings: [] });
  });

  it("counts as addressed by the bot's own role and by a reply to the bot, and not by @everyone", async () => {
    const guild = fake.guild();
    const room = fake.text(guild);
    await harness.start();
    const ann = fake.person("ann");
    await sendAll(harness.channel, answer(room, "I am here"));
    const own = [...room.messages.values()].at(-1);
    ann.says(room, `<@&${guild.botRoleId}> hello`);
    ann.says(room, "yes?", own === undefined ? {} : { replyTo: own, pings: false });
    ann.says(room, "@everyone look");
    const messages = await harness.arrived(3);
    expect(harness.knocks.map(({ scene }) => scene)).toMatchObject([
      { isMentioned: true, isReplyToBot: false },
      { isMentioned: false, isReplyToBot: true },
      { isMentioned: false, isReplyToBot: false },
    ]);
    expect(messages[1]?.replyTo?.text).toContain("I am here");
  });

  it("in a thread has the thread's session and is answered in the thread", async () => {
    const room = fake.text(fake.guild());
    await harness.start();
    const ann = fake.person("ann");
    const thread = ann.startsThread(room, "plans");
    ann.says(thread, "and now?");
    const [message] = await harness.arrived(1);
    expect(message).toMatchObject({ chatId: room.id, threadId: thread.id });
    expect(message?.sessionKeyOverride).toBe(`discord:${room.id}:thread:${thread.id}`);
    expect(harness.knocks[0]?.scene).toMatchObject({ chatIds: expect.arrayContaining([thread.id, room.id]) });
    await sendAll(harness.channel, answer(thread, "now we go"));
    expect(fake.answers(thread)).toEqual(["now we go"]);
    expect(fake.answers(room)).toEqual([]);
  });

  it("that begins a forum post is a thread's", async () => {
    const forum = fake.forum(fake.guild());
    await harness.start();
    const { thread } = fake.person("ann").posts(forum, "help", "it is broken");
    const [message] = await harness.arrived(1);
    expect(message).toMatchObject({ chatId: forum.id, threadId: thread.id, content: "it is broken" });
  });

  it("of the bot itself or of Discord is nobody's; other bots and webhooks knock as bots", async () => {
    const room = fake.text(fake.guild());
    await harness.start();
    const ann = fake.person("ann");
    await sendAll(harness.channel, answer(room, "me"));
    fake.systemMessage(room, ann, 7);
    fake.otherBot("robo").says(room, "beep");
    fake.webhookSays(room, "hook", "ping");
    ann.says(room, "people");
    await harness.arrived(3);
    expect(harness.knocks.map(({ author }) => author)).toEqual(["bot", "bot", "person"]);
  });

  it("that is not admitted has no effect at all", async () => {
    harness.admits = async () => ({ kind: "refused", why: "no" });
    await harness.start();
    const files = [{ name: "a.txt", type: "text/plain", bytes: Buffer.from("a") }];
    fake.person("ann").dm("let me in", { files });
    await fake.until(() => harness.knocks.length === 1);
    harness.admits = async () => ({ kind: "admitted", isOwner: true });
    fake.person("ben").dm("me too");
    await harness.arrived(1);
    expect(harness.accepted[0]).toMatchObject({ content: "me too", isOwner: true });
    expect(harness.kept.size).toBe(0);
  });

  it("that was edited says which one reads so now; a link preview is no edit", async () => {
    await harness.start();
    const ann = fake.person("ann");
    const said = ann.dm("helo");
    await harness.arrived(1);
    fake.partialUpdate(said, { embeds: [{ title: "a page" }] });
    ann.edits(said, "hello");
    const [, edit] = await harness.arrived(2);
    expect(edit).toMatchObject({ kind: "edit", content: "hello", edits: { id: said.id, ifAnswered: "ignore" } });
    expect(edit?.id).toMatch(new RegExp(`^${said.id}:`));
  });

  it("of a strange shape is left out, also by the library, and the next one is heard", async () => {
    const guild = fake.guild();
    const room = fake.text(guild);
    await harness.start();
    const ann = fake.person("ann");
    const place = { channel_id: ann.chat.id, channel_type: 1 };
    fake.world.tell({ t: "MESSAGE_CREATE", d: { id: "1", ...place }, intents: 0 });
    fake.world.tell({ t: "MESSAGE_CREATE", d: {}, intents: 0 });
    fake.world.tell({ t: "MESSAGE_CREATE", d: { ...place, id: "x", author: 5, content: [] }, intents: 0 });
    // The library's own objects would throw at this one, out of reach, and end the process.
    const torn = { id: "2", channel_id: room.id, guild_id: guild.id, author: ann.user, attachments: 5, type: 0 };
    fake.world.tell({ t: "MESSAGE_CREATE", d: torn, intents: 0 });
    fake.world.tell({ t: "GUILD_CREATE", d: { id: 7 }, intents: 0 });
    fake.world.tell({ t: "SOMETHING_NEW", d: null as never, intents: 0 });
    ann.dm("still there?");
    expect((await harness.arrived(1))[0]?.content).toBe("still there?");
    expect(harness.logText()).toContain("left out");
  });
});

describe("content that is missing", () => {
  it("is said once, with what to do", async () => {
    const room = fake.text(fake.guild());
    await harness.start();
    const ann = fake.person("ann");
    ann.says(room, "");
    ann.says(room, "");
    await harness.arrived(2);
    const said = harness.log.filter(({ msg }) => String(msg).includes("Message Content Intent"));
    expect(said).toHaveLength(1);
  });
});

describe("what a message carries", () => {
  it("comes along: files, voice aside, too large ones in words, stickers, embeds, forwards", async () => {
    harness.maxBytes = 100;
    await harness.start();
    const ann = fake.person("ann");
    const small = { name: "../../note.txt", type: "text/plain", bytes: Buffer.from("remember") };
    const large = { name: "film.mp4", type: "video/mp4", bytes: Buffer.alloc(500) };
    const embeds = [{ type: "rich", title: "A title", description: "A text" }];
    ann.dm("look", { files: [small, large], embeds, stickers: [{ id: "1", name: "wave", format_type: 1 }] });
    ann.dm("", { forwards: ann.dm("the original words") });
    const [first, , third] = await harness.arrived(3);
    expect(first?.media.map(({ name }) => name)).toEqual(["../../note.txt"]);
    expect(harness.kept.get("../../note.txt")?.toString()).toBe("remember");
    for (const words of ["look", "film.mp4", "A title", "A text", "[sticker: wave]"])
      expect(first?.content).toContain(words);
    expect(third?.content).toContain("the original words");
  });

  it("includes the files of the message it answers", async () => {
    await harness.start();
    const ann = fake.person("ann");
    const photo = ann.dm("my cat", { files: [{ name: "cat.png", type: "image/png", bytes: Buffer.from("png") }] });
    ann.dm("what is it?", { replyTo: photo });
    const [, question] = await harness.arrived(2);
    expect(question?.replyTo).toMatchObject({ text: "ann: my cat", media: [{ name: "cat.png" }] });
  });

  it("is named in words when it cannot be fetched", async () => {
    await harness.start();
    const call = "GET /attachments/:channel/:attachment/:name";
    fake.faults.next({ call, times: 2 }, { kind: "status", status: 503, hasEffect: false });
    const empty = { name: "empty.txt", type: null, bytes: Buffer.alloc(0) };
    const lost = { name: "lost.txt", type: null, bytes: Buffer.from("x") };
    fake.person("ann").dm("", { files: [lost, empty] });
    const [message] = await harness.arrived(1);
    expect(message?.content).toContain("lost.txt (1 kB): it could not be fetched");
    expect(message?.content).toContain("empty.txt (0 kB): it is empty");
  });
});

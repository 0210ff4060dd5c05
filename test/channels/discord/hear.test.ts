/** Discord messages as what was said, one table: who, where, addressed how, with which words. Pure. */
import { describe, expect, it } from "vitest";
import { hear, type Place, type Self } from "../../../src/channels/discord/hear.js";
import { menuOf } from "../../../src/channels/discord/menu.js";
import { messageShape } from "../../../src/channels/discord/wire.js";
import { COMMANDS } from "../../../src/commands.js";

const self: Self = {
  id: "99",
  account: "discord:99",
  isStreaming: false,
  lateEdits: "answer",
  roleIn: (guildId) => (guildId === "5" ? "55" : undefined),
};
const direct: Place = { kind: "direct" };
const channel: Place = { kind: "channel", guildId: "5" };
const thread: Place = { kind: "thread", guildId: "5", parentId: "20" };
const ann = { id: "7", username: "ann", global_name: "Ann" };

function read(fields: Record<string, unknown>, place: Place = channel, me: Self = self) {
  const usual = { id: "1000", channel_id: "30", author: ann, timestamp: "2026-01-02T03:04:05.678000+00:00" };
  return hear(messageShape.parse({ ...usual, ...fields }), place, me);
}

describe("who and where", () => {
  it.each<[string, Record<string, unknown>, Place, object]>([
    ["a direct chat", {}, direct, { scene: { kind: "direct" }, author: "person", senderId: "7", aliases: ["ann"] }],
    ["a channel", {}, channel, { scene: { kind: "group", chatIds: ["30", "5", "guild:5"], isCommand: false } }],
    ["a thread", {}, thread, { scene: { chatIds: ["30", "20", "5", "guild:5"] } }],
    ["a mention", { mentions: [{ id: "99" }] }, channel, { scene: { isMentioned: true } }],
    ["somebody else's mention", { mentions: [{ id: "98" }] }, channel, { scene: { isMentioned: false } }],
    ["the bot's role", { mention_roles: ["55"] }, channel, { scene: { isMentioned: true } }],
    ["another role", { mention_roles: ["56"] }, channel, { scene: { isMentioned: false } }],
    ["everyone", { mention_everyone: true, content: "@everyone" }, channel, { scene: { isMentioned: false } }],
    ["a bot", { author: { id: "8", bot: true } }, channel, { author: "bot", aliases: [] }],
    ["a webhook", { author: { id: "8" }, webhook_id: "8" }, channel, { author: "bot" }],
  ])("%s", (_, fields, place, expected) => {
    expect(read(fields, place)?.knock).toMatchObject(expected);
  });

  it.each<[string, Record<string, unknown>]>([
    ["of the bot itself", { author: { id: "99", bot: true } }],
    ["that somebody joined", { type: 7 }],
    ["that a thread began", { type: 18 }],
    ["that is pinned", { type: 6 }],
    ["that shows a slash command's answer", { type: 20 }],
  ])("nobody, for a message %s", (_, fields) => {
    expect(read(fields)).toBeNull();
  });

  it("a reply to the bot", () => {
    const quoted = { id: "900", channel_id: "30", author: { id: "99" }, timestamp: "", content: "I said" };
    const heard = read({ type: 19, referenced_message: quoted, message_reference: { message_id: "900" } });
    expect(heard?.knock.scene).toMatchObject({ isReplyToBot: true });
    expect(heard?.quote?.text).toBe("99: I said");
    expect(read({ type: 19, referenced_message: null })?.quote).toBeNull();
  });

  it("a thread is a part of its channel with a session of its own", () => {
    const where = { chatId: "20", threadId: "30" };
    expect(read({}, thread)?.spoken).toMatchObject({ ...where, sessionKeyOverride: "discord:20:thread:30" });
    expect(read({}, thread)?.spoken.route).toEqual({
      ...{ via: "outbox", account: "discord:99", channel: "discord", messageId: "1000", isStreaming: false },
      ...where,
    });
    expect(read({}, channel)?.spoken.sessionKeyOverride).toBeUndefined();
  });
});

describe("what was said", () => {
  it.each<[string, Record<string, unknown>, string]>([
    ["words", { content: " hi " }, "hi"],
    ["without the mention at their beginning", { content: "<@99> , /new" }, "/new"],
    ["with names for mentions", { content: "ask <@7> or <@8>", mentions: [ann] }, "ask @Ann or <@8>"],
    ["an emoji", { content: "👍" }, "👍"],
    ["right to left", { content: "<@!99> שלום עולם" }, "שלום עולם"],
    ["nothing", { content: "" }, "[empty message]"],
    ["only a mention", { content: "<@99>" }, "[empty message]"],
    ["a sticker", { sticker_items: [{ name: "wave" }] }, "[sticker: wave]"],
    ["an embed", { embeds: [{ title: "T", fields: [{ name: "a", value: "b" }] }] }, "T\na: b"],
    ["no preview of a link", { content: "see", embeds: [{ type: "article", title: "T" }] }, "see"],
    ["a forward", { message_snapshots: [{ message: { content: "orig" } }] }, "[forwarded message]\norig"],
    ["a strange embed left out", { content: "x", embeds: [7] }, "x"],
  ])("%s", (_, fields, content) => {
    expect(read(fields)?.spoken.content).toBe(content);
  });

  it("files of the message and of what it forwards, spoken ones marked", () => {
    const file = (id: string) => ({ id, filename: `${id}.ogg`, size: 5, url: "https://files.example/x" });
    const heard = read({
      flags: 8192,
      attachments: [file("1")],
      message_snapshots: [{ message: { attachments: [file("2")] } }],
    });
    expect(heard?.files.map(({ id, isVoice }) => [id, isVoice])).toEqual([
      ["1", true],
      ["2", true],
    ]);
    expect(read({ attachments: [file("1")] })?.spoken.content).toBe("");
  });

  it("an edit names what it edits, and each edit is another", () => {
    const edited = read({ content: "b", edited_timestamp: "2026-01-02T03:05:00+00:00" });
    expect(edited?.spoken).toMatchObject({
      kind: "edit",
      id: "1000:2026-01-02T03:05:00+00:00",
      edits: { id: "1000", ifAnswered: "answer" },
      timestamp: "2026-01-02T03:05:00.000Z",
    });
  });

  it("an edit counts against a bot's budget where edits are answered, and else only once with its message", () => {
    const fields = { content: "b", edited_timestamp: "2026-01-02T03:05:00+00:00" };
    expect(read(fields)?.knock.messageId).toBe("1000:2026-01-02T03:05:00+00:00");
    expect(read(fields, channel, { ...self, lateEdits: "ignore" })?.knock.messageId).toBe("1000");
  });

  it("knows a message that must have had content", () => {
    expect(read({ content: "" })?.isBlank).toBe(true);
    for (const fields of [
      { content: "x" },
      { sticker_items: [{ name: "s" }] },
      { poll: {} },
      { embeds: [{ type: "link" }] },
    ])
      expect(read(fields)?.isBlank).toBe(false);
  });
});

it("the menu fits into what Discord takes", () => {
  for (const { name, description, options, contexts } of menuOf(COMMANDS)) {
    expect(name).toMatch(/^[-_a-z0-9]{1,32}$/);
    expect(description.length).toBeLessThanOrEqual(100);
    for (const option of options) expect(option.description.length).toBeLessThanOrEqual(100);
    expect(contexts).toContain(1);
  }
});

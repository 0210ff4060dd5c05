import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Parsed, parseUpdate, type Saying } from "../../../src/channels/telegram/parse.js";
import { ACCOUNT, ANN, DATE, FORUM, GROUP, ME, PRIVATE, said, update } from "./said.js";

const CONTEXT = {
  account: ACCOUNT,
  me: ME,
  isStreaming: true,
  lateEdits: "ignore",
  now: "2026-05-05T00:00:00.000Z",
} as const;

function parse(more: Record<string, unknown>, id = 1): Parsed {
  return parseUpdate(update(more, id), CONTEXT);
}

function saying(parsed: Parsed): Saying {
  if (parsed.kind !== "saying") throw new Error(`expected a saying, got ${JSON.stringify(parsed)}`);
  return parsed;
}

const heard = (more: Record<string, unknown>, chat: object = PRIVATE) => saying(parse({ message: said(more, chat) }));
const scene = (more: Record<string, unknown>) => heard(more, GROUP).knock.scene;

describe("a private message", () => {
  it("says who, where and when, and where its answer goes", () => {
    const { message, knock } = heard({ text: "hello" });
    const route = {
      via: "outbox",
      account: ACCOUNT,
      channel: "telegram",
      chatId: "7",
      messageId: "11",
      isStreaming: true,
    };
    expect(message).toEqual({
      id: "11",
      kind: "message",
      channel: "telegram",
      senderId: "7",
      chatId: "7",
      content: "hello",
      timestamp: new Date(DATE * 1000).toISOString(),
      role: "user",
      route,
      metadata: {},
    });
    const who = { senderId: "7", aliases: ["ann"], author: "person", messageId: "11" };
    expect(knock).toEqual({ ...who, scene: { kind: "direct" }, route });
  });

  it.each([
    ["/help", "/help"],
    ["/start", "/help"],
    ["/start some-payload", "/help"],
    ["/Stop@nano_gate_BOT all", "/stop all"],
    ["@Nano_Gate_bot /status", "/status"],
    ["/nonsense here", "/nonsense here"],
    ["/nonsense@Nano_Gate_bot here", "/nonsense here"],
    ["see /help", "see /help"],
  ])("%j is %j", (text, content) => expect(heard({ text }).message.content).toBe(content));

  it("of a bot says so", () => expect(heard({ text: "hi", from: { ...ANN, is_bot: true } }).knock.author).toBe("bot"));

  it("of a topic is a session of its own", () => {
    const { message } = heard({ text: "hi", is_topic_message: true, message_thread_id: 5 });
    expect(message.sessionKeyOverride).toBe("telegram:7:topic:5");
    expect(message.route.threadId).toBe("5");
  });
});

describe("what is not text", () => {
  it.each([
    [{ sticker: { emoji: "😀" } }, "[sticker: 😀]"],
    [{ location: { latitude: 1.5, longitude: -2 } }, "[location: 1.5, -2]"],
    [
      {
        location: { latitude: 1, longitude: 2 },
        venue: { location: { latitude: 1, longitude: 2 }, title: "T", address: "A" },
      },
      "[venue: T, A, 1, 2]",
    ],
    [{ contact: { phone_number: "+1", first_name: "Bo", last_name: "Li" } }, "[contact: Bo Li, +1]"],
    [{ poll: { question: "Q?", options: [{ text: "a" }, { text: "b" }] } }, "[poll: Q?]\n- a\n- b"],
    [{ dice: { emoji: "🎲", value: 4 } }, "[dice: 🎲 4]"],
    [{ story: {} }, "[story: its content cannot be read here]"],
    [{ paid_media: { x: 1 } }, "[paid media: its content cannot be read here]"],
    [{ caption: "look", photo: [] }, "look"],
    [{ text: "/stop", forward_origin: { type: "user", sender_user: ANN } }, "[forwarded from @ann]\n/stop"],
    [{ text: "x", forward_origin: { type: "hidden_user", sender_user_name: "Bo" } }, "[forwarded from Bo]\nx"],
    [
      { text: "x", forward_origin: { type: "channel", chat: { id: -9, type: "channel", title: "News" } } },
      "[forwarded from News]\nx",
    ],
  ])("%j is said in words", (more, content) => expect(heard(more).message.content).toBe(content));

  it("comes as the largest photo, with its caption", () => {
    const photo = [
      { file_id: "s", width: 90, height: 90 },
      { file_id: "l", width: 800, height: 600, file_size: 5 },
      { file_id: "m", width: 320, height: 240 },
    ];
    const { files, message } = heard({ photo, caption: "c" });
    expect(message.content).toBe("c");
    expect(files).toEqual([{ what: "photo", fileId: "l", name: null, mime: "image/jpeg", bytes: 5, isVoice: false }]);
  });

  it.each([
    ["voice", "voice message", true],
    ["audio", "audio", false],
    ["video", "video", false],
    ["video_note", "video note", false],
    ["document", "document", false],
  ])("%s is a file", (kind, what, isVoice) => {
    const { files, message } = heard({ [kind]: { file_id: "f", file_name: "../x", mime_type: "a/b" } });
    expect(files).toEqual([{ what, fileId: "f", name: "../x", mime: "a/b", bytes: null, isVoice }]);
    expect(message.content).toBe("");
  });

  it("is one file when it is an animation and a document", () => {
    const file = { file_id: "f", mime_type: "video/mp4" };
    expect(heard({ animation: file, document: file }).files.map(({ what }) => what)).toEqual(["animation"]);
  });

  it("belongs together in an album", () => {
    const { album, message } = heard({ photo: [{ file_id: "f" }], media_group_id: "g1" });
    expect(album).toBe("7:g1");
    expect(message.gatherMs).toBe(1500);
  });
});

describe("in a group", () => {
  const quiet = { kind: "group", chatIds: ["-50"], isMentioned: false, isReplyToBot: false, isCommand: false };
  const theirs = { message_id: 3, date: DATE, chat: GROUP, text: "mine" };

  it.each([
    ["nothing", { text: "hello" }, {}],
    ["the handle", { text: "hey @NANO_gate_BOT, you" }, { isMentioned: true }],
    ["the handle in a caption", { photo: [{ file_id: "f" }], caption: "@nano_gate_bot" }, { isMentioned: true }],
    ["a longer name", { text: "hey @Nano_Gate_bot2" }, {}],
    ["an address of mail", { text: "me@Nano_Gate_bot" }, {}],
    [
      "a mention without a name",
      { text: "Nano", entities: [{ type: "text_mention", offset: 0, length: 4, user: { id: ME.id, is_bot: true } }] },
      { isMentioned: true },
    ],
    [
      "a mention of another",
      { text: "Nano", entities: [{ type: "text_mention", offset: 0, length: 4, user: ANN }] },
      {},
    ],
    [
      "an answer to the bot",
      { text: "x", reply_to_message: { ...theirs, from: { id: ME.id, is_bot: true } } },
      { isReplyToBot: true },
    ],
    ["an answer to another", { text: "x", reply_to_message: { ...theirs, from: ANN } }, {}],
    ["a command", { text: "/status" }, { isCommand: true }],
    ["a command with our name", { text: "/dance@nano_gate_bot" }, { isCommand: true }],
    ["a command nobody knows", { text: "/dance" }, {}],
  ])("knows %s", (_, more, addressed) => expect(scene(more)).toEqual({ ...quiet, ...addressed }));

  it("leaves commands of other bots to them", () =>
    expect(parse({ message: said({ text: "/help@other_bot" }, GROUP) }).kind).toBe("ignored"));

  it("keeps the mention in the text", () =>
    expect(heard({ text: "@Nano_Gate_bot hi" }, GROUP).message.content).toBe("@Nano_Gate_bot hi"));

  it("knows an anonymous admin by the chat", () => {
    const { senderId, author } = heard(
      { text: "x", from: { id: 1087968824, is_bot: true }, sender_chat: GROUP },
      GROUP,
    ).knock;
    expect({ senderId, author }).toEqual({ senderId: "-50", author: "person" });
  });

  it("says when it got another id", () =>
    expect(parse({ message: said({ migrate_to_chat_id: -1001 }, GROUP) })).toEqual({
      kind: "moved",
      fromChatId: "-50",
      toChatId: "-1001",
    }));
});

describe("topics", () => {
  const root = { message_id: 77, date: DATE, chat: FORUM, from: { id: ME.id, is_bot: true }, forum_topic_created: {} };
  const inTopic = { text: "x", is_topic_message: true, message_thread_id: 77 };

  it("are sessions and places of their own", () => {
    const { message, quote, knock } = heard({ ...inTopic, reply_to_message: root }, FORUM);
    expect(message.sessionKeyOverride).toBe("telegram:-10099:topic:77");
    expect(message).toMatchObject({ threadId: "77", route: { threadId: "77" } });
    // The beginning of a topic is no quote and its author not spoken to.
    expect(quote).toBeNull();
    expect(knock.scene).toMatchObject({ isReplyToBot: false });
  });

  it("of the general kind are the group's own session", () => {
    const { message } = heard({ text: "x" }, FORUM);
    expect(message.sessionKeyOverride).toBeUndefined();
    expect(message.route.threadId).toBe("1");
  });

  it("are not chains of answers", () => {
    const group = { ...FORUM, is_forum: false };
    const { message } = heard({ text: "x", message_thread_id: 9 }, group);
    expect(message.sessionKeyOverride).toBeUndefined();
    expect(message.route.threadId).toBeUndefined();
    expect(heard({ text: "x", message_thread_id: 9 }, FORUM).message.route.threadId).toBe("1");
  });

  it("keep a button's place", () => {
    const message = { ...said({}, FORUM), is_topic_message: true, message_thread_id: 77 };
    const { message: pressed } = saying(parse({ callback_query: { id: "q", from: ANN, data: "yes", message } }));
    expect(pressed).toMatchObject({ threadId: "77", sessionKeyOverride: "telegram:-10099:topic:77" });
  });
});

describe("a quote", () => {
  const answered = { message_id: 3, date: DATE, chat: PRIVATE, from: ANN, text: "the long text" };

  it("carries who said what, and its files", () => {
    const photo = [{ file_id: "p" }];
    const { quote } = heard({
      text: "and?",
      reply_to_message: { ...answered, text: undefined, caption: "cap", photo },
    });
    expect(quote?.text).toBe("@ann: cap\n[photo]");
    expect(quote?.files).toMatchObject([{ what: "photo", fileId: "p" }]);
  });

  it("of the bot is its own words", () => {
    const from = { id: ME.id, is_bot: true };
    expect(heard({ text: "?", reply_to_message: { ...answered, from } }).quote?.text).toBe("you: the long text");
  });

  it("of a part is that part", () =>
    expect(heard({ text: "?", reply_to_message: answered, quote: { text: "long" } }).quote?.text).toBe("@ann: long"));

  it("from another chat has its origin", () => {
    const external_reply = {
      origin: { type: "channel", chat: { id: -9, type: "channel", title: "News" } },
      document: { file_id: "d" },
    };
    const { quote } = heard({ text: "?", external_reply, quote: { text: "part" } });
    expect(quote?.text).toBe("News, in another chat: part\n[document]");
    expect(quote?.files).toHaveLength(1);
  });

  it("is cut when it is long, and never through a pair", () => {
    const text = `${"x".repeat(3993)}${"😀".repeat(50)}`;
    const quoted = heard({ text: "?", reply_to_message: { ...answered, text } }).quote?.text ?? "";
    expect(quoted.length).toBeLessThanOrEqual(4001);
    expect(quoted.isWellFormed()).toBe(true);
  });

  it("is left out of commands", () => expect(heard({ text: "/stop", reply_to_message: answered }).quote).toBeNull());

  it("that is malformed costs the quote alone", () =>
    expect(heard({ text: "x", reply_to_message: { message_id: "no" } }).quote).toBeNull());
});

describe("edits and presses", () => {
  it("an edit names what it edits, and has an id of its own", () => {
    const edited = said({ text: "now", edit_date: DATE + 9 });
    const { message } = saying(parse({ edited_message: edited }, 5));
    expect(message).toMatchObject({
      kind: "edit",
      id: `11:${DATE + 9}:5`,
      edits: { id: "11", ifAnswered: "ignore" },
      content: "now",
      timestamp: new Date((DATE + 9) * 1000).toISOString(),
      route: { messageId: "11" },
    });
    expect(saying(parse({ edited_message: edited }, 6)).message.id).not.toBe(message.id);
  });

  it("a location that moves is no edit", () =>
    expect(parse({ edited_message: said({ location: { latitude: 1, longitude: 2, live_period: 60 } }) }).kind).toBe(
      "ignored",
    ));

  it("a press says the button's value, to the message with the button", () => {
    const { message, press, knock } = saying(
      parse({ callback_query: { id: "q9", from: ANN, data: "yes", message: said({ message_id: 30 }, GROUP) } }),
    );
    expect(message).toMatchObject({
      kind: "callback",
      id: "30:yes",
      content: "yes",
      route: { messageId: "30", chatId: "-50" },
    });
    expect(press).toEqual({ queryId: "q9", chatId: -50, messageId: 30 });
    expect(knock.scene).toMatchObject({ isMentioned: true });
  });

  it("a press on a message too old to be seen still counts", () => {
    const message = { message_id: 30, date: 0, chat: PRIVATE };
    expect(saying(parse({ callback_query: { id: "q", from: ANN, data: "d", message } })).message.content).toBe("d");
  });

  it("a press without a message is ignored", () =>
    expect(parse({ callback_query: { id: "q", from: ANN, data: "d" } }).kind).toBe("ignored"));
});

describe("what starts no turn", () => {
  it.each([
    ["somebody joined", { message: said({ new_chat_members: [ANN] }, GROUP) }],
    ["the bot itself", { message: said({ text: "x", from: { id: ME.id, is_bot: true } }) }],
    ["a post of a channel", { channel_post: { chat: { id: -9, type: "channel" }, text: "news" } }],
    ["a post that a channel's group got", { message: said({ text: "x", is_automatic_forward: true }, GROUP) }],
    ["a reaction", { message_reaction: { chat: PRIVATE } }],
    ["an unknown kind", { brand_new_kind: {} }],
  ])("%s", (_, more) => expect(parse(more).kind).toBe("ignored"));

  it("says where a malformed one is wrong, and not what it holds", () => {
    const parsed = parse({ message: said({ text: 7, date: "secret words" }) });
    expect(parsed).toEqual({ kind: "malformed", why: "message.date, message.text" });
  });

  it("any JSON gives an answer", () => {
    const message = fc.record(
      { message_id: fc.anything(), date: fc.anything(), chat: fc.anything(), from: fc.anything(), text: fc.anything() },
      { requiredKeys: [] },
    );
    const wild = fc.oneof(
      fc.jsonValue(),
      fc.record({ update_id: fc.integer(), message: fc.oneof(fc.anything(), message), callback_query: fc.anything() }),
    );
    fc.assert(
      fc.property(wild, (json) => {
        expect(parseUpdate(json, CONTEXT).kind).toMatch(/saying|ignored|moved|malformed/);
      }),
    );
  });

  it("any shape of what a message carries gives an answer", () => {
    const kinds = [
      "photo",
      "voice",
      "sticker",
      "poll",
      "venue",
      "forward_origin",
      "entities",
      "quote",
      "external_reply",
    ];
    const extras = fc.dictionary(fc.constantFrom(...kinds), fc.jsonValue());
    fc.assert(
      fc.property(extras, fc.string(), (more, text) => {
        expect(parse({ message: said({ text, ...more }, GROUP) }).kind).toMatch(/saying|ignored|malformed/);
      }),
    );
  });
});

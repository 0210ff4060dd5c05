/**
 * The outgoing half through the real SDK: what goes over the wire for texts, files, albums, edits, drafts and signs of
 * life, and what each counts against.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { Api } from "grammy";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { MediaRef, OutboundMessage } from "../../../src/bus/messages.js";
import { DeliveryError, type SendRequest } from "../../../src/channels/channel.js";
import { draftIdOf } from "../../../src/channels/telegram/live.js";
import { createTelegramOutlet, type TelegramOutlet } from "../../../src/channels/telegram/outlet.js";
import type { TelegramOutletConfig, TelegramPart } from "../../../src/channels/telegram/part.js";
import { createLogger } from "../../../src/logger.js";
import { CONFIG, fileRef, madeUpToken, outbound } from "./outbound.js";
import { ScriptedApi } from "./scripted-api.js";

const TOKEN = madeUpToken();
const signal = new AbortController().signal;
let api = new ScriptedApi();
let root = "";
let folder = "";
let log: string[] = [];

beforeEach(async () => {
  api = new ScriptedApi();
  root = await api.start();
  folder = await mkdtemp(join(tmpdir(), "nanogate-outlet-"));
  log = [];
});
afterEach(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

function outlet(
  config: Partial<TelegramOutletConfig> = {},
  pathOf = ({ name }: MediaRef) => Promise.resolve(join(folder, name)),
): TelegramOutlet {
  const destination = { write: (line: string) => void log.push(line) };
  return createTelegramOutlet({
    api: new Api(TOKEN, { apiRoot: root }),
    pathOf,
    config: { ...CONFIG, ...config },
    logger: createLogger({ level: "debug", secrets: [], destination }),
  });
}

function requestOf(message: OutboundMessage, part: TelegramPart): SendRequest<TelegramPart> {
  return { message, part, key: `${message.id}.0`, signal };
}

/** Sends all parts of a message; the ids. */
async function sendAll(out: TelegramOutlet, message: OutboundMessage): Promise<string[]> {
  const ids: string[] = [];
  for (const part of out.parts(message)) ids.push((await out.send(requestOf(message, part))).platformId);
  return ids;
}

function firstPart(out: TelegramOutlet, message: OutboundMessage): TelegramPart {
  const [part] = out.parts(message);
  if (part === undefined) throw new Error("no part");
  return part;
}

const methods = () => api.calls.map(({ method }) => method);

describe("sending", () => {
  it("sends texts with entities and never a parse mode, into the topic, quoting once", async () => {
    const message = outbound("**hi**", {
      chatId: "-100",
      threadId: "3",
      replyTo: "9",
      buttons: [[{ label: "Go", value: "go" }]],
    });
    expect(await sendAll(outlet({ replyQuotes: true }), message)).toEqual(["100"]);
    expect(api.calls).toEqual([
      {
        method: "sendMessage",
        params: {
          chat_id: -100,
          message_thread_id: 3,
          reply_parameters: { message_id: 9, allow_sending_without_reply: true },
          text: "hi",
          entities: [{ type: "bold", offset: 0, length: 2 }],
          reply_markup: { inline_keyboard: [[{ text: "Go", callback_data: "go" }]] },
        },
      },
    ]);
  });

  it("uploads each file as what it is, under its name", async () => {
    const kinds = [
      ["a.png", "image/png", "sendPhoto"],
      ["b.mp4", "video/mp4", "sendVideo"],
      ["c.mp3", "audio/mpeg", "sendAudio"],
      ["d.ogg", "audio/ogg", "sendVoice"],
      ["e.pdf", "application/pdf", "sendDocument"],
    ] as const;
    for (const [name, mime, method] of kinds) {
      await writeFile(join(folder, name), `bytes of ${name}`);
      await sendAll(outlet(), outbound("**words**", { media: [fileRef(name, mime)] }));
      const call = api.calls.at(-1);
      expect(call?.method).toBe(method);
      for (const piece of [`bytes of ${name}`, name, "words", '"type":"bold"'])
        expect(call?.params.form).toContain(piece);
    }
  });

  it("lets no name of a file out of its header", async () => {
    const name = 'a\r\n"b";c/../d \u05d0.txt';
    const [ref, pathOf] = [fileRef(name, "text/plain"), async () => join(folder, "plain.txt")];
    await writeFile(join(folder, "plain.txt"), "bytes");
    await sendAll(outlet({}, pathOf), outbound("", { media: [ref] }));
    const [, sent = ""] = /filename=(.*?)\r\n/.exec(api.calls.at(-1)?.params.form as string) ?? [];
    expect(Buffer.from(sent, "latin1").toString()).toBe("a___b__c_.._d \u05d0.txt");
  });

  it("sends an album by one call and names all its messages", async () => {
    const media = ["a.png", "b.png"].map((name) => fileRef(name, "image/png"));
    for (const { name } of media) await writeFile(join(folder, name), name);
    api.will({ result: [{ message_id: 5 }, { message_id: 6 }] });
    expect(await sendAll(outlet(), outbound("both", { media }))).toEqual(["5,6"]);
    expect(methods()).toEqual(["sendMediaGroup"]);
  });
});

describe("limits", () => {
  it("counts for the bot and the chat, and for groups by the minute", () => {
    const out = outlet();
    const bucketsOf = (message: OutboundMessage) =>
      out.limits(message, firstPart(out, message)).map(({ bucket, count, cost }) => `${bucket} ${count} ${cost}`);
    expect(bucketsOf(outbound("a"))).toEqual(["bot 30 1", "chat:7 1 1"]);
    const media = ["a", "b", "c"].map((name) => fileRef(name, "image/png"));
    expect(bucketsOf(outbound("a", { chatId: "-5", media }))).toEqual(["bot 30 3", "chat:-5 1 1", "group:-5 20 3"]);
  });
});

describe("the live view", () => {
  it("edits in private and group chats, groups three times as slowly; drafts only in private", () => {
    const group = outbound("a", { chatId: "-5" });
    const ways = (config: Partial<TelegramOutletConfig>) =>
      [outbound("a"), group].map((one) => outlet(config).live.way(one));
    expect(ways({})).toEqual(["edits", "edits"]);
    expect(ways({ drafts: true })).toEqual(["drafts", "edits"]);
    expect(ways({ streaming: false })).toEqual(["none", "none"]);
    expect(outlet().live.intervalMs(outbound("a"))).toBe(1000);
    expect(outlet().live.intervalMs(group)).toBe(3000);
  });

  it("edits a text, or the words under a file", async () => {
    const out = outlet();
    const message = outbound("**new**");
    await out.live.edit("55", requestOf(message, firstPart(out, message)));
    const withFile = outbound("new", { media: [fileRef("a.png", "image/png")] });
    await out.live.edit("56,57", requestOf(withFile, firstPart(out, withFile)));
    expect(api.calls).toMatchObject([
      { method: "editMessageText", params: { chat_id: 7, message_id: 55, text: "new", entities: [{ type: "bold" }] } },
      { method: "editMessageCaption", params: { chat_id: 7, message_id: 56, caption: "new" } },
    ]);
  });

  it("changes the words under a file and never the file", async () => {
    const out = outlet();
    const album = outbound("new", { media: ["a", "b"].map((name) => fileRef(name, "image/png")) });
    await out.live.edit("56,57", requestOf(album, firstPart(out, album)));
    expect(api.calls[0]?.params).toEqual({ chat_id: 7, message_id: 56, caption: "new", caption_entities: [] });
    const photo = outbound("new", { media: [fileRef("a.png", "image/png")] });
    api.will({ error_code: 400, description: "Bad Request: something new" });
    const failed = await out.live.edit("56", requestOf(photo, firstPart(out, photo))).catch((error: unknown) => error);
    expect(failed).toMatchObject({ failure: { kind: "permanent" } });
  });

  it("takes it for success when a message shows that already", async () => {
    const out = outlet();
    const request = requestOf(outbound("a"), firstPart(out, outbound("a")));
    api.will({ error_code: 400, description: "Bad Request: message is not modified: specified new message content" });
    await expect(out.live.edit("55", request)).resolves.toBeUndefined();
  });

  it("says when a message is gone, moved, or when to come back", async () => {
    const out = outlet();
    const request = requestOf(outbound("a"), firstPart(out, outbound("a")));
    const failure = async () => {
      const error = await out.live.edit("55", request).catch((thrown: unknown) => thrown);
      return error instanceof DeliveryError ? error.failure : error;
    };
    api.will({ error_code: 400, description: "Bad Request: message to edit not found" });
    expect(await failure()).toEqual({ kind: "permanent" });
    api.will({ error_code: 400, description: "Bad Request: there is no text in the message to edit" });
    expect(await failure()).toEqual({ kind: "permanent" });
    api.will({
      error_code: 400,
      description: "Bad Request: group upgraded to a supergroup",
      parameters: { migrate_to_chat_id: -9 },
    });
    expect(await failure()).toEqual({ kind: "permanent" });
    api.will({ error_code: 429, description: "Too Many Requests", parameters: { retry_after: 4 } });
    expect(await failure()).toEqual({ kind: "transient", retryAfterMs: 4_000 });
    api.will("reset");
    expect(await failure()).toEqual({ kind: "unknown" });
    await expect(out.live.edit("", request)).rejects.toThrow("no message");
  });

  it("changes one draft for one stream", async () => {
    const out = outlet({ drafts: true });
    const message = outbound("so far", { threadId: "4", event: { type: "delta", streamId: "s1", offset: 0 } });
    await out.live.draft("s1", requestOf(message, firstPart(out, message)));
    expect(api.calls).toEqual([
      {
        method: "sendMessageDraft",
        params: { chat_id: 7, message_thread_id: 4, draft_id: draftIdOf("s1"), text: "so far", entities: [] },
      },
    ]);
    expect(draftIdOf("s1")).not.toBe(draftIdOf("s2"));
    expect(draftIdOf("s1")).toBeGreaterThan(0);
  });

  it("takes messages away, whatever becomes of each", async () => {
    api.will({ error_code: 400, description: "Bad Request: message to delete not found" });
    await outlet().live.remove("5,6", outbound("a"), signal);
    expect(api.calls.map(({ params }) => params)).toEqual([
      { chat_id: 7, message_id: 5 },
      { chat_id: 7, message_id: 6 },
    ]);
  });

  it("types, in General too, and reacts while it works", async () => {
    const { live } = outlet();
    const message = outbound("", { chatId: "-100", threadId: "1", replyTo: "9" });
    await live.working("begin", message, signal);
    await live.working("again", message, signal);
    await live.working("end", message, signal);
    const byMethod = (method: string) => api.calls.filter((call) => call.method === method).map(({ params }) => params);
    const typing = { chat_id: -100, message_thread_id: 1, action: "typing" };
    expect(byMethod("sendChatAction")).toEqual([typing, typing]);
    expect(byMethod("setMessageReaction")).toEqual([
      { chat_id: -100, message_id: 9, reaction: [{ type: "emoji", emoji: "👀" }] },
      { chat_id: -100, message_id: 9, reaction: [] },
    ]);
    expect(live.workingEveryMs).toBe(4000);
  });

  it("reacts to nothing that it does not know, or that is switched off", async () => {
    await outlet().live.working("begin", outbound(""), signal);
    await outlet({ reaction: null }).live.working("begin", outbound("", { replyTo: "9" }), signal);
    expect(methods()).toEqual(["sendChatAction", "sendChatAction"]);
  });

  it("only notes in the log that a sign of life was refused, without the token", async () => {
    api.will({ error_code: 400, description: "Bad Request: REACTION_INVALID" }, "reset");
    await outlet().live.working("begin", outbound("", { replyTo: "9" }), signal);
    expect(log).toHaveLength(2);
    expect(log.join()).toContain("sign of life");
    expect(inspect(log)).not.toContain(TOKEN.split(":")[1]);
  });
});

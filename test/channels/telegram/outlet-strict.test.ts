/**
 * The outgoing half against a Telegram that refuses whatever the real one refuses: what people see in the end, when every
 * change is followed as the delivery follows it.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { Api } from "grammy";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { MediaRef, OutboundMessage } from "../../../src/bus/messages.js";
import { DeliveryError, type SendRequest } from "../../../src/channels/channel.js";
import { createTelegramOutlet, type TelegramOutlet } from "../../../src/channels/telegram/outlet.js";
import type { TelegramPart } from "../../../src/channels/telegram/part.js";
import { createLogger } from "../../../src/logger.js";
import { FakeTelegram } from "../../fakes/telegram/fake-telegram.js";
import type { Place } from "../../fakes/telegram/place.js";
import { markdownLike } from "../text/arbitraries.js";
import { CONFIG, fileRef, outbound } from "./outbound.js";

const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const signal = new AbortController().signal;
let telegram = new FakeTelegram();
let folder = "";
let out: TelegramOutlet;

beforeEach(async () => {
  telegram = await FakeTelegram.start();
  folder = await mkdtemp(join(tmpdir(), "nanogate-strict-"));
  out = createTelegramOutlet({
    api: new Api(telegram.token, { apiRoot: telegram.apiRoot }),
    pathOf: ({ name }) => Promise.resolve(join(folder, name)),
    config: { ...CONFIG, replyQuotes: true },
    logger: createLogger({ level: "silent", secrets: [] }),
  });
});
afterEach(async () => {
  await telegram.close();
  await rm(folder, { recursive: true });
});

function requestOf(message: OutboundMessage, part: TelegramPart): SendRequest<TelegramPart> {
  return { message, part, key: message.id, signal };
}

/** Sends a part, and what it is changed into, at most three changes deep; the ids. */
async function follow(message: OutboundMessage, part: TelegramPart, depth = 0): Promise<string[]> {
  try {
    return [(await out.send(requestOf(message, part))).platformId];
  } catch (error) {
    if (!(error instanceof DeliveryError) || error.failure.kind !== "change" || depth === 3) throw error;
    const ids: string[] = [];
    for (const other of error.failure.into) ids.push(...(await follow(message, other as TelegramPart, depth + 1)));
    return ids;
  }
}

async function deliver(message: OutboundMessage): Promise<string[]> {
  const ids: string[] = [];
  for (const part of out.parts(message)) ids.push(...(await follow(message, part)));
  return ids;
}

function partOf(message: OutboundMessage): TelegramPart {
  const [part] = out.parts(message);
  if (part === undefined) throw new Error("no part");
  return part;
}

/** A person who has written to the bot. */
function friend(): Place {
  return telegram.person("ann").dm("hello").chat;
}

function to(place: Place, content: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
  return outbound(content, { chatId: String(place.id), ...more });
}

async function kept(name: string, mime: string, bytes: Uint8Array): Promise<MediaRef> {
  await writeFile(join(folder, name), bytes);
  return fileRef(name, mime, bytes.length);
}

describe("what people see", () => {
  it("is every word of any text, and nothing was refused", async () => {
    const place = friend();
    const property = fc.asyncProperty(markdownLike(), fc.integer({ min: 1, max: 40 }), async (piece, times) => {
      const before = place.answers().length;
      const message = to(place, piece.repeat(times));
      for (const part of out.parts(message)) await out.send(requestOf(message, part));
      const seen = place.answers().slice(before).join("");
      const meant = out.parts(message).map((part) => (part.kind === "text" ? part.text.text : ""));
      expect(seen.replace(/\s/g, "")).toBe(meant.join("").replace(/\s/g, ""));
    });
    await fc.assert(property, { numRuns: 80 });
    expect(telegram.journal.refused(400)).toEqual([]);
  });

  it.each(["👍", "❤️", "👨‍👩‍👧‍👦🇩🇪", "1️⃣", "#️⃣", "שלום, עולם", "\u202Bمرحبا\u202C abc", "e\u0301", "—"])(
    "is %j exactly as it was said",
    async (text) => {
      const place = friend();
      await deliver(to(place, text));
      expect(place.answers()).toEqual([text]);
    },
  );

  it("is the styles of a text where they belong", async () => {
    const place = friend();
    await deliver(to(place, "a **b** and\n```js\nc\n```", { buttons: [[{ label: "Go", value: "ä".repeat(50) }]] }));
    const [seen] = place.visible().filter(({ isBot }) => isBot);
    expect(seen).toMatchObject({
      text: "a b and\nc",
      entities: [
        { type: "bold", offset: 2, length: 1 },
        { type: "pre", offset: 8, length: 1, language: "js" },
      ],
      buttons: [[{ label: "Go", data: "ä".repeat(32) }]],
    });
  });

  it("is the answer in its topic, and in the chat when the topic is gone", async () => {
    const forum = telegram.forum();
    const topic = forum.topic("plans", telegram.person("ann").user);
    await deliver(to(forum, "in the topic", { threadId: String(topic.id) }));
    await deliver(to(forum, "in General", { threadId: "1" }));
    expect([forum.answers(topic.id), forum.answers(null)]).toEqual([["in the topic"], ["in General"]]);
    forum.topics.delete(topic.id);
    await deliver(to(forum, "homeless", { threadId: String(topic.id) }));
    expect(forum.answers(null)).toEqual(["in General", "homeless"]);
  });

  it("is the answer in the group that a group has become", async () => {
    const group = telegram.group();
    const moved = telegram.upgrade(group);
    await deliver(to(group, "where are you"));
    expect(moved.answers()).toContain("where are you");
  });

  it("quotes what is answered, and goes without when that is gone", async () => {
    const said = telegram.person("ann").dm("question");
    await deliver(to(said.chat, "answer", { replyTo: String(said.message_id) }));
    await deliver(to(said.chat, "late", { replyTo: "999999" }));
    expect(
      said.chat
        .visible()
        .slice(-2)
        .map(({ text, replyTo }) => [text, replyTo]),
    ).toEqual([
      ["answer", said.message_id],
      ["late", null],
    ]);
  });
});

describe("files people get", () => {
  it("is a picture, an album, or a document when it is no picture after all", async () => {
    const place = friend();
    const [a, b] = [await kept("a.png", "image/png", PNG), await kept("b.png", "image/png", PNG)];
    const broken = await kept("c.png", "image/png", Buffer.from("no picture"));
    await deliver(to(place, "one", { media: [a] }));
    const [ids] = await deliver(to(place, "two", { media: [a, b] }));
    await deliver(to(place, "mixed", { media: [a, broken] }));
    const seen = place.visible().filter(({ isBot }) => isBot);
    expect(
      seen.map(({ text, media, album }) => `${media?.kind} ${text}${album === null ? "" : " in an album"}`),
    ).toEqual(["photo one", "photo two in an album", "photo  in an album", "photo mixed", "document "]);
    expect(ids?.split(",").map(Number)).toEqual(seen.slice(1, 3).map(({ id }) => id));
  });

  it("is a line that says so when a file cannot be sent at all", async () => {
    const place = friend();
    await deliver(to(place, "here", { media: [await kept("none.txt", "text/plain", Buffer.alloc(0))] }));
    const vanished = { ...(await kept("late.txt", "text/plain", Buffer.alloc(0))), bytes: 5 };
    await deliver(to(place, "there", { media: [vanished] }));
    await deliver(to(place, "", { media: [fileRef("gone.txt", "text/plain")] }));
    expect(place.answers()).toEqual([
      "here",
      "[could not send: none.txt (the file is empty)]",
      "there\n\n[could not send: late.txt]",
      "[could not send: gone.txt]",
    ]);
  });
});

describe("what cannot be delivered", () => {
  it("says why, in words for people", async () => {
    const place = friend();
    place.standing = "blocked";
    await expect(deliver(to(place, "a"))).rejects.toThrow("the person has blocked the bot");
    const group = telegram.supergroup();
    group.standing = "restricted";
    await expect(deliver(to(group, "a"))).rejects.toThrow("an administrator must allow it");
    await expect(deliver(outbound("a", { chatId: "-99" }))).rejects.toThrow("the chat does not exist");
  });

  it("does not claim to know what became of a cut connection", async () => {
    const place = friend();
    telegram.faults.order("sendMessage", { kind: "reset", effect: "after" });
    await expect(deliver(to(place, "a"))).rejects.toMatchObject({ failure: { kind: "unknown" } });
    expect(place.answers()).toEqual(["a"]);
    telegram.flood(place, 3);
    await expect(deliver(to(place, "b"))).rejects.toMatchObject({ failure: { kind: "transient", retryAfterMs: 3000 } });
  });
});

describe("an answer in the making", () => {
  it("is one message that changes, and is taken away", async () => {
    const place = friend();
    const preview = to(place, "so **fa", { event: { type: "delta", streamId: "s", offset: 0 } });
    const [id = ""] = await deliver(preview);
    const final = to(place, "so **far**", { event: { type: "final", streamId: "s" } });
    await out.live.edit(id, requestOf(final, partOf(final)));
    await out.live.edit(id, requestOf(final, partOf(final)));
    expect(place.answers()).toEqual(["so far"]);
    await out.live.remove(id, final, signal);
    await out.live.remove(id, final, signal);
    expect(place.answers()).toEqual([]);
    await expect(out.live.edit(id, requestOf(final, partOf(final)))).rejects.toMatchObject({
      failure: { kind: "permanent" },
    });
  });

  it("finds its message again when files come with the answer", async () => {
    const place = friend();
    const [id = ""] = await deliver(to(place, "look", { event: { type: "delta", streamId: "s", offset: 0 } }));
    const media = [await kept("a.png", "image/png", PNG)];
    const final = to(place, "look here", { media, event: { type: "final", streamId: "s" } });
    const [first, ...more] = out.parts(final);
    if (first !== undefined) await out.live.edit(id, requestOf(final, first));
    for (const part of more) await out.send(requestOf(final, part));
    expect(
      place
        .visible()
        .filter(({ isBot }) => isBot)
        .map(({ text, media: file }) => `${text}${file?.kind ?? ""}`),
    ).toEqual(["look here", "photo"]);
  });

  it("is a draft that its answer replaces", async () => {
    const place = friend();
    const preview = to(place, "so far", { event: { type: "delta", streamId: "s", offset: 0 } });
    await out.live.draft("s", requestOf(preview, partOf(preview)));
    expect(place.draft?.text).toBe("so far");
    await deliver(to(place, "so far so good"));
    expect([place.draft, place.answers()]).toEqual([null, ["so far so good"]]);
  });

  it("shows typing, in General too, and a reaction until it is over", async () => {
    const forum = telegram.forum();
    const said = telegram.person("ann").says(forum, "question");
    const message = to(forum, "", { threadId: "1", replyTo: String(said.message_id) });
    const reactions = () => forum.visible().find(({ id }) => id === said.message_id)?.reactions;
    await out.live.working("begin", message, signal);
    expect([forum.typing.map(({ thread }) => thread), reactions()]).toEqual([[1], ["👀"]]);
    await out.live.working("end", message, signal);
    expect(reactions()).toEqual([]);
  });
});

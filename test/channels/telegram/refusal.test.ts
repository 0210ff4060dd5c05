/**
 * Failed calls and what follows from them, through the real SDK over real connections: what may be tried again, what must
 * be said in another way, what nobody knows; and that every chain of changes ends and no token shows.
 */
import { createServer } from "node:net";
import { inspect } from "node:util";
import fc from "fast-check";
import { Api, GrammyError } from "grammy";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DeliveryError, type DeliveryFailure } from "../../../src/channels/channel.js";
import type { FilePart, TelegramPart, TextPart } from "../../../src/channels/telegram/part.js";
import { refusalOf } from "../../../src/channels/telegram/refusal.js";
import { sendPart } from "../../../src/channels/telegram/send.js";
import { fileRef, madeUpToken, wordsIn } from "./outbound.js";
import { type Answer, ScriptedApi } from "./scripted-api.js";

const TOKEN = madeUpToken();
const TEXT: TextPart = {
  kind: "text",
  chat: -100,
  thread: 5,
  replyTo: 9,
  text: { text: "one two three four", entities: [{ type: "bold", offset: 0, length: 3 }] },
  buttons: [[{ label: "Yes", value: "y" }]],
};
const PHOTO: FilePart = {
  kind: "file",
  chat: 7,
  as: "photo",
  file: fileRef("a.png", "image/png"),
  caption: { text: "look", entities: [] },
  buttons: [],
};
const ALBUM: TelegramPart = {
  kind: "album",
  chat: 7,
  replyTo: 9,
  caption: { text: "look", entities: [] },
  files: ["a", "b"].map((name) => ({ as: "photo", file: fileRef(name, "image/png") })),
};

let api = new ScriptedApi();
let root = "";
beforeEach(async () => {
  api = new ScriptedApi();
  root = await api.start();
});
afterEach(() => api.stop());

async function failureOf(part: TelegramPart, apiRoot = root, signal = new AbortController().signal) {
  const deps = { api: new Api(TOKEN, { apiRoot }), pathOf: () => Promise.resolve(import.meta.filename) };
  try {
    await sendPart(deps, part, signal);
  } catch (error) {
    expect(error).toBeInstanceOf(DeliveryError);
    const seen = inspect(error, { depth: null, showHidden: true });
    expect(seen).not.toContain(TOKEN);
    expect(seen).not.toContain(TOKEN.split(":")[1]);
    if (error instanceof DeliveryError) return error;
  }
  throw new Error("it did not fail");
}

async function refused(part: TelegramPart, answer: Answer): Promise<DeliveryError> {
  api.will(answer);
  return failureOf(part);
}

const bad = (description: string, error_code = 400) => ({ error_code, description: `Bad Request: ${description}` });
const into = ({ failure }: { failure: DeliveryFailure }): TelegramPart[] =>
  failure.kind === "change" ? (failure.into as TelegramPart[]) : [];

describe("failures that may be tried again", () => {
  it("waits exactly as long as Telegram says", async () => {
    const answer = { error_code: 429, description: "Too Many Requests", parameters: { retry_after: 37 } };
    expect((await refused(TEXT, answer)).failure).toEqual({ kind: "transient", retryAfterMs: 37_000 });
  });

  it("tries again what Telegram could not do, or was never told", async () => {
    for (const error_code of [500, 502, 503]) {
      expect((await refused(TEXT, { error_code, description: "Internal" })).failure.kind).toBe("transient");
    }
    const taken = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const address = taken.address();
    await new Promise((resolve) => taken.close(resolve));
    const port = typeof address === "object" ? address?.port : 0;
    const unreachable = await failureOf(TEXT, `http://127.0.0.1:${port}`);
    // A stated wait is no failure of the part, so that an outage of minutes loses nothing.
    expect(unreachable.failure).toEqual({ kind: "transient", retryAfterMs: 5_000 });
    expect((await failureOf(TEXT, "http://no-such-host.invalid")).failure.kind).toBe("transient");
  });

  it("sends nothing when it was ended before", async () => {
    expect((await failureOf(TEXT, root, AbortSignal.abort())).failure.kind).toBe("transient");
    expect(api.calls).toEqual([]);
  });
});

describe("failures of which nobody knows", () => {
  it("does not guess when the connection ends after the request", async () => {
    expect((await refused(TEXT, "reset")).failure).toEqual({ kind: "unknown" });
    expect((await refused(TEXT, { html: 502 })).failure).toEqual({ kind: "unknown" });
    expect((await refused(TEXT, { error_code: 504, description: "Gateway Timeout" })).failure.kind).toBe("unknown");
    const ending = new AbortController();
    api.will("silence");
    const arrived = api.called();
    const failure = failureOf(TEXT, root, ending.signal);
    await arrived;
    ending.abort();
    expect((await failure).failure).toEqual({ kind: "unknown" });
  });
});

describe("failures that change the message", () => {
  it.each<[string, Partial<TextPart>]>([
    [
      "can't parse entities: Can't find end of the entity starting at byte offset 5",
      { text: { text: TEXT.text.text, entities: [] } },
    ],
    ["ENTITY_BOUNDS_INVALID", { text: { text: TEXT.text.text, entities: [] } }],
  ])("%s: the words stay without formatting", async (description, change) => {
    expect(into(await refused(TEXT, bad(description)))).toEqual([{ ...TEXT, ...change }]);
  });

  it("leaves a thread that is gone", async () => {
    const { thread: _, ...rest } = TEXT;
    expect(into(await refused(TEXT, bad("message thread not found")))).toEqual([rest]);
    expect(into(await refused(TEXT, bad("TOPIC_DELETED")))).toEqual([rest]);
  });

  it("quotes nothing that is gone", async () => {
    const { replyTo: _, ...rest } = TEXT;
    expect(into(await refused(TEXT, bad("message to be replied not found")))).toEqual([rest]);
    expect(into(await refused(TEXT, bad("replied message not found")))).toEqual([rest]);
  });

  it("cuts what is too long, buttons last", async () => {
    const parts = into(await refused(TEXT, bad("message is too long")));
    expect(parts.map(wordsIn)).toEqual(["one two ", "three ", "four"]);
    expect(parts.map((part) => [part.replyTo, part.thread, "buttons" in part && part.buttons.length])).toEqual([
      [9, 5, 0],
      [undefined, 5, 0],
      [undefined, 5, 1],
    ]);
    expect(into(await refused(PHOTO, bad("message caption is too long"))).map(wordsIn)).toEqual([
      "<photo a.png>",
      "look",
    ]);
  });

  it("says as words what buttons cannot", async () => {
    const parts = into(await refused(TEXT, bad("BUTTON_DATA_INVALID")));
    expect(parts.map(wordsIn)).toEqual(["one two three four", "• Yes"]);
    expect(parts.some((part) => "buttons" in part && part.buttons.length > 0)).toBe(false);
  });

  it("follows a group that moved", async () => {
    const answer = { ...bad("group chat was upgraded to a supergroup chat"), parameters: { migrate_to_chat_id: -200 } };
    expect(into(await refused(TEXT, answer))).toEqual([{ ...TEXT, chat: -200 }]);
  });

  it("sends a picture as a document, and a document as a line that says so", async () => {
    for (const answer of [bad("PHOTO_INVALID_DIMENSIONS"), bad("wrong type"), bad("Request Entity Too Large", 413)]) {
      const [document, ...more] = into(await refused(PHOTO, answer));
      expect([document, more]).toEqual([{ ...PHOTO, as: "document" }, []]);
    }
    const last = into(await refused({ ...PHOTO, as: "document" }, bad("file is too big")));
    expect(last.map(wordsIn)).toEqual(["look\n\n[could not send: a.png]"]);
  });

  it("sends the files of an album one by one, the words once", async () => {
    const parts = into(
      await refused(ALBUM, bad("failed to send message #1 with the error message WEBPAGE_CURL_FAILED")),
    );
    expect(parts.map(wordsIn)).toEqual(["<photo a>look", "<photo b>"]);
    expect(parts.map((part) => part.replyTo)).toEqual([9, undefined]);
  });

  it("says that a file is gone", async () => {
    const deps = {
      api: new Api(TOKEN, { apiRoot: root }),
      pathOf: () => Promise.reject(new Error("expired")),
    };
    const failed = await sendPart(deps, PHOTO, new AbortController().signal).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(DeliveryError);
    expect(failed instanceof DeliveryError && into(failed).map(wordsIn)).toEqual(["look\n\n[could not send: a.png]"]);
    const unreadable = { ...deps, pathOf: () => Promise.resolve("/no/such/file") };
    const late = await sendPart(unreadable, PHOTO, new AbortController().signal).catch((error: unknown) => error);
    expect(late instanceof DeliveryError && into(late).map(wordsIn)).toEqual(["look\n\n[could not send: a.png]"]);
  });
});

describe("failures for good, in words for people", () => {
  it.each<[number, string, string]>([
    [403, "Forbidden: bot was blocked by the user", "the person has blocked the bot"],
    [403, "Forbidden: user is deactivated", "the person's account no longer exists"],
    [403, "Forbidden: bot was kicked from the supergroup chat", "the bot is no longer a member of the chat"],
    [403, "Forbidden: bot can't initiate conversation with a user", "has not yet written to the bot"],
    [400, "Bad Request: chat not found", "the chat does not exist"],
    [400, "Bad Request: not enough rights to send text messages to the chat", "the bot may not write in that chat"],
    [400, "Bad Request: have no rights to send a message", "the bot may not write in that chat"],
    [400, "Bad Request: TOPIC_CLOSED", "the topic is closed"],
    [400, "Bad Request: something new", "something new"],
  ])("%s %s", async (error_code, description, words) => {
    const error = await refused(TEXT, { error_code, description });
    expect(error.failure).toEqual({ kind: "permanent" });
    expect(error.message).toContain(words);
  });
});

describe("any refusal", () => {
  const descriptions = [
    "can't parse entities",
    "message thread not found",
    "message to be replied not found",
    "message is too long",
    "caption is too long",
    "BUTTON_DATA_INVALID",
    "message text is empty",
    "PHOTO_INVALID_DIMENSIONS",
    "not enough rights to send photos to the chat",
    "anything",
  ];

  it("ends after a few changes, and no change repeats the part", () => {
    const buttons = fc.constantFrom([], TEXT.buttons);
    const part = fc.oneof(
      fc
        .tuple(fc.string({ minLength: 1, maxLength: 40 }), buttons)
        .map(([text, rows]) => ({ ...TEXT, text: { ...TEXT.text, text }, buttons: rows })),
      fc.constantFrom<TelegramPart>(PHOTO, ALBUM),
    );
    fc.assert(
      fc.property(part, fc.infiniteStream(fc.constantFrom(...descriptions)), (first, stream) => {
        let waiting: TelegramPart[] = [first];
        for (let round = 0; waiting.length > 0; round += 1) {
          expect(round).toBeLessThan(20);
          waiting = waiting.flatMap((one) => {
            const description = stream.next().value ?? "";
            const error = new GrammyError("", { ok: false, error_code: 400, description }, "sendMessage", {});
            const changed = into(refusalOf(error, one, "send"));
            for (const other of changed) expect(other).not.toEqual(one);
            return changed;
          });
        }
      }),
      { numRuns: 300 },
    );
  });
});

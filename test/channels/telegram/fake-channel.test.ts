/** The whole channel on the strict fake: what it takes in and sends out breaks no rule of Telegram's. */
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { InboundMessage, MediaRef, OutboundMessage } from "../../../src/bus/messages.js";
import { DeliveryError } from "../../../src/channels/channel.js";
import { FakeTelegram } from "../../fakes/telegram/fake-telegram.js";
import type { Person } from "../../fakes/telegram/people.js";
import { Inbound } from "./inbound-harness.js";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

let fake: FakeTelegram;
let alice: Person;
let inbound: Inbound;

beforeEach(async () => {
  fake = await FakeTelegram.start();
  alice = fake.person("alice");
  inbound = await Inbound.on(fake, { reaction: "👀" });
  await inbound.start();
});
afterEach(async () => {
  await inbound.close();
  await fake.close();
});

/** An answer to where a message came from. */
function answerTo({ route }: InboundMessage, content: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
  return {
    id: "t.final",
    channel: "telegram",
    chatId: route.chatId,
    ...(route.threadId === undefined ? {} : { threadId: route.threadId }),
    ...(route.messageId === undefined ? {} : { replyTo: route.messageId }),
    content,
    media: [],
    buttons: [],
    event: { type: "final", streamId: null },
    turnId: "t",
    seq: 1,
    metadata: {},
    ...more,
  };
}

const signal = AbortSignal.timeout(600_000);

/** Sends all parts; their ids. */
async function deliver(message: OutboundMessage): Promise<string[]> {
  const { channel } = inbound;
  const ids: string[] = [];
  for (const [at, part] of channel.parts(message).entries())
    ids.push((await channel.send({ message, part, key: `${message.id}.${at}`, signal })).platformId);
  return ids;
}

/** What somebody said first. */
async function heard(): Promise<InboundMessage> {
  const [message] = await taken(1);
  if (message === undefined) throw new Error("nothing came");
  return message;
}

const taken = (count: number) => fake.until(() => inbound.accepted.length >= count && inbound.accepted);
const refused = () => fake.journal.entries.filter(({ outcome }) => outcome === "refused");

it("answers where it was asked: private, group, topic, General; typing there, too", async () => {
  const [group, forum] = [fake.group(), fake.forum()];
  const topic = forum.topic("help", alice.user);
  alice.dm("0");
  alice.says(group, "1");
  alice.says(forum, "2", { topic });
  alice.says(forum, "3");
  const { live } = inbound.channel;
  for (const message of await taken(4)) {
    await live?.working("begin", answerTo(message, ""), signal);
    await deliver(answerTo(message, `re: ${message.content}`));
    await live?.working("end", answerTo(message, ""), signal);
  }
  expect(alice.chat.answers()).toEqual(["re: 0"]);
  expect(group.answers()).toEqual(["re: 1"]);
  expect(forum.answers(topic.id)).toEqual(["re: 2"]);
  expect(forum.answers(null)).toEqual(["re: 3"]);
  expect(forum.typing.map(({ thread }) => thread)).toEqual([topic.id, 1]);
  expect(refused()).toEqual([]);
  expect(alice.chat.visible().every(({ reactions }) => reactions.length === 0)).toBe(true);
});

it("shows a stream by edits, and takes an edit that changes nothing for done", async () => {
  alice.dm("hi");
  const message = await heard();
  const { channel } = inbound;
  if (channel.live === null) throw new Error("nothing is shown while it is made");
  const [id = ""] = await deliver(answerTo(message, "so f"));
  const whole = answerTo(message, "so **far**");
  for (let twice = 0; twice < 2; twice += 1)
    for (const part of channel.parts(whole)) await channel.live.edit(id, { message: whole, part, key: "k", signal });
  expect(alice.chat.visible().at(-1)).toMatchObject({
    text: "so far",
    entities: [{ type: "bold", offset: 3, length: 3 }],
  });
  await channel.live.remove(id, whole, signal);
  expect(alice.chat.answers()).toEqual([]);
});

it("sends files as what they are, several pictures as an album, no words twice", async () => {
  alice.dm("hi");
  const message = await heard();
  const kept = (name: string, bytes: Buffer): Promise<MediaRef> =>
    inbound.context.media.save({
      name,
      mime: null,
      isVoice: false,
      body: (async function* () {
        yield bytes;
      })(),
    });
  const files = [await kept("a.png", PNG), await kept("b.png", PNG), await kept("notes.txt", Buffer.from("text"))];
  await deliver(answerTo(message, "look", { media: files }));
  const seen = alice.chat.visible().filter(({ isBot }) => isBot);
  const carriers = seen.filter(({ media: each }) => each !== null);
  expect(carriers.map(({ media: each }) => each?.kind)).toEqual(["photo", "photo", "document"]);
  expect(carriers[0]?.album).not.toBeNull();
  expect(carriers[1]?.album).toBe(carriers[0]?.album);
  expect(seen.map(({ text }) => text).join("")).toBe("look");
  expect(refused()).toEqual([]);
});

it("buttons come back as what they stand for, and go when they are pressed", async () => {
  alice.dm("hi");
  const message = await heard();
  const buttons = [[{ label: "Yes", value: "yes" }], [{ label: "No", value: "no" }]];
  await deliver(answerTo(message, "sure?", { buttons }));
  const asked = alice.chat.visible().at(-1);
  const press = alice.presses(alice.chat, asked?.id ?? 0, "No");
  await taken(2);
  expect(inbound.accepted[1]).toMatchObject({ kind: "callback", content: "no", chatId: String(alice.id) });
  await fake.until(() => press.answer);
  await fake.until(() => alice.chat.visible().at(-1)?.buttons.length === 0);
});

it("any text is taken as it is rendered: no part is refused", async () => {
  alice.dm("hi");
  const message = await heard();
  const piece = fc.oneof(
    fc.string({ unit: "binary", maxLength: 60 }),
    fc.constantFrom("**bold** ", "`code` ", "\n```js\nlet a = 1;\n```\n", "[a](javascript:1) ", "[b](https://x.org) "),
    fc.constantFrom(
      "👨‍👩‍👧‍👦",
      "🇩🇪",
      "\n\n- a\n- b\n",
      "| a | b |\n|---|---|\n| 1 | 2 |\n",
      "~~s~~ ",
      "> q\n\n",
      "*a **b* c**",
    ),
    fc.constantFrom("x".repeat(4090), "👍".repeat(2100), `\`\`\`\n${"line\n".repeat(1000)}\`\`\``, " ", "\n", "\u0000"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 8 }), async (pieces) => {
      const text = pieces.join("");
      await deliver(answerTo(message, text)).catch((error: unknown) => {
        throw error instanceof DeliveryError ? new Error(JSON.stringify([error.failure.kind, error.message])) : error;
      });
    }),
    { numRuns: 150 },
  );
  expect(refused()).toEqual([]);
});

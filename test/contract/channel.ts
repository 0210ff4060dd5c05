/**
 * What every platform channel must do, run over each of them against its fake platform: the real channel, the real manager,
 * an outbox and limits in memory, the clock of the machine. A platform takes part by a `ChannelHarness`: the channel (not
 * started), people who speak in its places, and what its chats show. `text` is what a reader sees, without markup. Each test
 * opens a harness of its own. Call `channelContract(name, open)` from a test file of the channel's folder.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { InboundMessage, MediaRef } from "../../src/bus/messages.js";
import type { OutboxChannel } from "../../src/channels/channel.js";
import type { MediaShelf } from "../../src/channels/ports.js";
import { ChannelStage, type Question } from "./channel-stage.js";

/** Where people may speak. `thread`: a topic or thread of the group. */
export type Place = "direct" | "group" | "thread";

/** A message of the bot as a reader sees it now. */
export interface ShownMessage {
  id: string;
  text: string;
  files: ReadonlyArray<{ name: string; bytes: number }>;
  /** Labels, by row. */
  buttons: ReadonlyArray<readonly string[]>;
}

export interface ChannelHarness {
  channel: OutboxChannel;
  /** What the channel is given for files: what it saves and what it reads. */
  media: MediaShelf;
  places: readonly Place[];
  /** Longest text of one message, in UTF-16 units as a reader sees it. */
  maxText: number;
  /** Somebody who may speak says this to the bot (with a mention where one is needed), perhaps with a file. */
  say(place: Place, text: string, file?: { name: string; bytes: Uint8Array }): Promise<void>;
  /** The bot's messages there, oldest first; without those that were taken away. */
  shown(place: Place): readonly ShownMessage[];
  /** How often typing was shown there. */
  typings(place: Place): number;
  /** Somebody presses a button of the bot's newest message there. */
  press(place: Place, label: string): Promise<void>;
  /** The next call that sends a message there is refused: for good, or for now with a wait of `waitMs` (a whole second or more). */
  refuseNext(place: Place, how: { kind: "permanent" } | { kind: "transient"; waitMs: number }): void;
  /** A file of the harness' shelf that can be sent. */
  file(name: string, bytes: Uint8Array): Promise<MediaRef>;
  /** Rules of the platform that were broken. */
  violations(): readonly string[];
  close(): Promise<void>;
}

const PNG = Uint8Array.from(
  Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  ),
);

/** Numbered words, so that a missing or doubled one shows. */
function words(count: number): string {
  return Array.from({ length: count }, (_, at) => `word${String(at).padStart(4, "0")}`).join(" ");
}

/** Registers the suite under a name. */
export function channelContract(name: string, open: () => Promise<ChannelHarness>): void {
  describe(`channel: ${name}`, () => {
    let on: ChannelHarness;
    let stage: ChannelStage;
    beforeEach(async () => {
      on = await open();
      stage = await ChannelStage.start(on);
    });
    afterEach(async () => {
      await stage.close();
      const violations = on.violations();
      await on.close();
      expect(violations).toEqual([]);
    });

    const texts = (place: Place) => on.shown(place).map(({ text }) => text);
    const ask = (place: Place, text = `hello ${place}`): Promise<Question> => stage.ask(place, text);

    it("hears what was said, and its answer stands where the question stood", async () => {
      for (const place of on.places) {
        const question = await ask(place);
        expect(question.message.content).toContain(`hello ${place}`);
        expect(question.message.channel).toBe(on.channel.name);
        stage.answer(question, `answer in ${place}`);
        await stage.until(() => texts(place).includes(`answer in ${place}`));
      }
      for (const place of on.places) expect(texts(place)).toEqual([`answer in ${place}`]);
    });

    it("answers places that were asked at once each in its own", async () => {
      const questions = [];
      for (const place of on.places) questions.push({ place, question: await ask(place) });
      for (const { place, question } of questions.toReversed()) stage.answer(question, `for ${place}`);
      await stage.until(() => on.places.every((place) => texts(place).length === 1));
      for (const place of on.places) expect(texts(place)).toEqual([`for ${place}`]);
    });

    it("cuts a long answer into parts that stand in order, within the limit, with every word", async () => {
      const question = await ask("direct");
      const text = words(Math.ceil((on.maxText * 2.5) / 9));
      stage.answer(question, text);
      await stage.isDone();
      const parts = texts("direct");
      expect(parts.length).toBeGreaterThan(2);
      for (const part of parts) expect(part.length).toBeLessThanOrEqual(on.maxText);
      expect(parts.join(" ").split(/\s+/)).toEqual(text.split(" "));
    }, 30_000);

    it("shows an answer while it is made, and once when it is made", async () => {
      for (const place of on.places) {
        const question = await ask(place);
        const stream = stage.stream(question);
        stream.add("one ");
        await stage.until(() => texts(place).some((text) => text.startsWith("one")));
        stream.add("two ");
        await stage.until(() => texts(place).some((text) => text.startsWith("one two")));
        stream.add("three");
        stream.answer("one two three, and more");
        await stage.isDone();
        expect(texts(place)).toEqual(["one two three, and more"]);
      }
    }, 30_000);

    it("shows the whole of a streamed answer that became longer than one message", async () => {
      const question = await ask("direct");
      const text = words(Math.ceil((on.maxText * 1.5) / 9));
      const stream = stage.stream(question);
      stream.add(text.slice(0, 100));
      await stage.until(() => texts("direct").length > 0);
      stream.answer(text);
      await stage.isDone();
      expect(texts("direct").length).toBeGreaterThan(1);
      expect(texts("direct").join(" ").split(/\s+/)).toEqual(text.split(" "));
    }, 30_000);

    it("takes files in, and sends them", async () => {
      await on.say("direct", "look at this", { name: "dot.png", bytes: PNG });
      const question = await stage.heard();
      expect(question.message.media).toMatchObject([{ mime: "image/png", bytes: PNG.length }]);
      expect(question.message.content).toContain("look at this");
      stage.answer(question, "and at this", { media: [await on.file("other.png", PNG)] });
      await stage.isDone();
      const shown = on.shown("direct");
      expect(shown.flatMap(({ files }) => files).map(({ bytes }) => bytes)).toEqual([PNG.length]);
      expect(shown.map(({ text }) => text).join("")).toContain("and at this");
    });

    it("shows buttons, and hears which one was pressed, in its place", async () => {
      for (const place of on.places) {
        const question = await ask(place);
        const buttons = [[{ label: "Yes", value: "approve" }], [{ label: "No", value: "deny" }]];
        stage.answer(question, "shall I?", { buttons });
        await stage.until(() => on.shown(place).length === 1);
        expect(on.shown(place)[0]?.buttons.flat()).toEqual(["Yes", "No"]);
        await on.press(place, "No");
        const press = await stage.heard();
        expect(press.message).toMatchObject({ kind: "callback", content: "deny" });
        expect(placeOf(press.message)).toEqual(placeOf(question.message));
      }
    });

    it("keeps what is refused for good as a dead letter, and goes on", async () => {
      const question = await ask("direct");
      on.refuseNext("direct", { kind: "permanent" });
      stage.answer(question, "refused");
      await stage.until(() => stage.outbox.deadLetters.length === 1);
      stage.answer(question, "and this one arrives");
      await stage.until(() => texts("direct").length > 0);
      expect(texts("direct")).toEqual(["and this one arrives"]);
      expect(stage.outbox.deadLetters).toMatchObject([{ text: "refused", attempts: expect.any(Number) }]);
    });

    it("waits as long as the platform asks, and sends once", async () => {
      const question = await ask("direct");
      const waitMs = 1_000;
      on.refuseNext("direct", { kind: "transient", waitMs });
      const beganMs = performance.now();
      stage.answer(question, "later");
      await stage.until(() => texts("direct").length > 0);
      expect(performance.now() - beganMs).toBeGreaterThanOrEqual(waitMs - 5);
      await stage.isDone();
      expect(texts("direct")).toEqual(["later"]);
      expect(stage.outbox.deadLetters).toEqual([]);
    });

    it("shows typing where it was asked, until it has answered", async () => {
      for (const place of on.places) {
        const question = await ask(place);
        const elsewhere = on.places.filter((other) => other !== place).map((other) => [other, on.typings(other)]);
        stage.working(question);
        await stage.until(() => on.typings(place) > 0);
        for (const [other, before] of elsewhere) expect(on.typings(other as Place)).toBe(before);
        stage.answer(question, "done");
        await stage.isDone();
        const after = on.typings(place);
        stage.working(question);
        await stage.pause();
        expect(on.typings(place)).toBe(after);
      }
    });
  });
}

function placeOf({ route }: InboundMessage): object {
  return { chatId: route.chatId, threadId: route.threadId, account: route.account };
}

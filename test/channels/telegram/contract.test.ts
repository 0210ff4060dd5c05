/** The contract of all channels, over the real manager, the real SDK and the strict fake. */
import { expect, it, onTestFinished } from "vitest";
import { type ChannelHarness, channelContract, type Place } from "../../contract/channel.js";
import { ChannelStage } from "../../contract/channel-stage.js";
import { FakeTelegram } from "../../fakes/telegram/fake-telegram.js";
import { ForeignPoller } from "../../fakes/telegram/foreign-poller.js";
import type { SeenMessage, Place as TelegramPlace } from "../../fakes/telegram/place.js";
import { Inbound } from "./inbound-harness.js";

async function harnessOf(fake: FakeTelegram): Promise<ChannelHarness> {
  const inbound = await Inbound.on(fake, { reaction: "👀" });
  const [ann, group, forum] = [fake.person("ann"), fake.supergroup(), fake.forum()];
  const topic = forum.topic("plans", ann.user);
  const chats: Record<Place, TelegramPlace> = { direct: ann.chat, group, thread: forum };
  const isHere = (place: Place, thread: number | null) => place !== "thread" || thread === topic.id;
  const visible = (place: Place): SeenMessage[] =>
    chats[place].visible().filter(({ isBot, thread }) => isBot && isHere(place, thread));
  return {
    channel: inbound.channel,
    media: inbound.context.media,
    places: ["direct", "group", "thread"],
    maxText: 4096,
    say: async (place, text, file) => {
      const words = place === "direct" ? text : `${fake.mention} ${text}`;
      const where = place === "thread" ? { topic } : {};
      if (file === undefined) ann.says(chats[place], words, where);
      else ann.sends(chats[place], { kind: "photo", bytes: Buffer.from(file.bytes), caption: words }, where);
    },
    shown: (place) =>
      visible(place).map(({ id, text, media, buttons }) => ({
        id: String(id),
        text,
        files: media === null ? [] : [{ name: media.name ?? "", bytes: media.bytes }],
        buttons: buttons.map((row) => row.map(({ label }) => label)),
      })),
    typings: (place) => chats[place].typing.filter(({ thread }) => isHere(place, thread)).length,
    press: async (place, label) => void ann.presses(chats[place], visible(place).at(-1)?.id ?? 0, label),
    refuseNext: (place, how) => {
      const chatId = chats[place].id;
      const description = "Forbidden: bot was blocked by the user";
      if (how.kind === "transient") fake.flood(chats[place], Math.ceil(how.waitMs / 1000));
      else fake.faults.order("sendMessage", { kind: "refuse", code: 403, description }, { chatId });
    },
    file: async (name, bytes) => inbound.context.media.save({ name, mime: null, isVoice: false, body: once(bytes) }),
    violations: () => [
      ...fake.violations.map(({ kind, what }) => `${kind}: ${what}`),
      ...fake.journal.refused(400).map(({ method, description }) => `${method}: ${description}`),
      // Whatever became of a turn, the sign that it was worked on is gone.
      ...Object.values(chats).flatMap((chat) => chat.visible().flatMap(({ reactions }) => reactions)),
    ],
    close: async () => {
      await inbound.close();
      await fake.close();
    },
  };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

channelContract("telegram", async () => harnessOf(await FakeTelegram.start()));

it("goes on answering while another program takes its updates, and is not started anew for that", async () => {
  const fake = await FakeTelegram.start();
  const on = await harnessOf(fake);
  const stage = await ChannelStage.start(on);
  onTestFinished(() => stage.close().then(() => on.close()));
  const question = await stage.ask("direct", "hello");
  const foreign = new ForeignPoller(fake);
  onTestFinished(() => foreign.end());
  await stage.until(() => on.channel.health().state === "failed");
  const states = new Set<string>();
  for (const text of ["one", "two"]) {
    stage.answer(question, text);
    await stage.until(() => {
      states.add(on.channel.health().state);
      return on.shown("direct").some((shown) => shown.text === text);
    });
  }
  expect([...states]).toEqual(["failed"]);
});

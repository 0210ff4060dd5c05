/** The contract of all channels, over the real manager and the real discord.js. */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { type ChannelHarness, channelContract, type Place } from "../../contract/channel.js";
import { FakeDiscord } from "../../fakes/discord/fake-discord.js";
import type { Channel } from "../../fakes/discord/model.js";
import { Harness } from "./harness.js";

const POST = "POST /channels/:channel/messages";
const TYPING = "POST /channels/:channel/typing";

async function open(): Promise<ChannelHarness> {
  const fake = await FakeDiscord.start({ identifyEveryMs: 0 });
  const harness = await Harness.make(fake, { editIntervalMs: 100 });
  const ann = fake.person("ann");
  const room = fake.text(fake.guild());
  const rooms: Record<Place, Channel> = { direct: ann.chat, group: room, thread: ann.startsThread(room, "plans") };
  const visible = (place: Place) =>
    fake.visible(rooms[place]).filter(({ author }) => author === fake.world.bot.username);
  return {
    channel: harness.channel,
    media: harness.context().media,
    places: ["direct", "group", "thread"],
    maxText: 2000,
    say: async (place, text, file) => {
      const words = place === "group" ? `${fake.mention} ${text}` : text;
      const files = file === undefined ? [] : [{ name: file.name, type: "image/png", bytes: Buffer.from(file.bytes) }];
      ann.says(rooms[place], words, { files });
    },
    shown: (place) =>
      visible(place).map(({ id, content, files, buttons }) => {
        const rows = rooms[place].messages.get(id);
        const sizes = new Map(rows?.attachments.map(({ filename, bytes }) => [filename, bytes.length]));
        const named = files.map((name) => ({ name, bytes: sizes.get(name) ?? 0 }));
        return { id, text: content, files: named, buttons: buttons.map(({ label }) => [label]) };
      }),
    typings: (place) => fake.journal.calls(TYPING, rooms[place].id).length,
    press: async (place, label) => {
      const newest = visible(place).at(-1);
      const message = rooms[place].messages.get(newest?.id ?? "");
      const button = newest?.buttons.find((each) => each.label === label);
      if (message === undefined || button === undefined) throw new Error(`there is no button ${label}`);
      ann.presses(message, button.id);
    },
    refuseNext: (place, how) =>
      fake.faults.next(
        { call: POST, major: rooms[place].id },
        how.kind === "permanent" ? { kind: "refuse", code: 50013 } : { kind: "limited", retryAfterMs: how.waitMs },
      ),
    file: async (name, bytes) => {
      await writeFile(path.join(harness.folder, name), bytes);
      return { path: name, mime: "image/png", name, bytes: bytes.length };
    },
    violations: () => [...fake.buckets.violations, ...fake.journal.strange],
    close: async () => {
      await harness.close();
      await fake.close();
    },
  };
}

channelContract("discord", open);

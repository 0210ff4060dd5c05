/** What was said while the connection was away, through the real discord.js: told by a resume, or fetched, in order and once. */
import { afterEach, describe, expect, it } from "vitest";
import { FakeDiscord } from "../../fakes/discord/fake-discord.js";
import { guildCreateWire } from "../../fakes/discord/wire.js";
import { answer, Harness, sendAll } from "./harness.js";

let fake: FakeDiscord;
let harness: Harness;

async function begin(config: Parameters<typeof Harness.make>[1] = {}): Promise<void> {
  fake = await FakeDiscord.start({ identifyEveryMs: 0 });
  harness = await Harness.make(fake, config);
}

afterEach(async () => {
  await harness.close();
  await fake.close();
});

const contents = () => harness.accepted.map(({ content }) => content);

describe("what happened meanwhile", () => {
  it("is told by a resume, in order and once", async () => {
    await begin();
    await harness.start();
    const ann = fake.person("ann");
    ann.dm("1");
    await harness.arrived(1);
    fake.gateway.kick(4000);
    ann.dm("2");
    ann.dm("3");
    await fake.until(() => fake.gateway.counts.resumed === 1);
    ann.dm("4");
    await harness.arrived(4);
    expect(contents()).toEqual(["1", "2", "3", "4"]);
    expect(fake.gateway.identifies).toHaveLength(1);
  });

  it("is fetched after an invalid session, before what is new", async () => {
    await begin();
    const guild = fake.guild();
    const [room, quiet] = [fake.text(guild), fake.text(guild, "quiet")];
    await harness.start();
    const ann = fake.person("ann");
    ann.dm("1");
    ann.says(room, "room 1");
    await harness.arrived(2);
    const hold = fake.faults.hold({ call: "GET /channels/:channel/messages" });
    fake.gateway.invalidate(false);
    ann.dm("2");
    ann.says(room, "room 2");
    ann.says(quiet, "quiet 1");
    const { thread } = { thread: ann.startsThread(room, "new") };
    ann.says(thread, "thread 1");
    await hold.arrived;
    ann.dm("3");
    hold.release();
    await fake.until(() => contents().length >= 7);
    const inDm = harness.accepted.filter(({ chatId }) => chatId === ann.chat.id).map(({ content }) => content);
    expect(inDm).toEqual(["1", "2", "3"]);
    expect(new Set(contents())).toEqual(new Set(["1", "2", "3", "room 1", "room 2", "quiet 1", "thread 1"]));
    expect(harness.accepted.find(({ content }) => content === "thread 1")?.threadId).toBe(thread.id);
  });

  it("is fetched by the next owner, also in channels that it has never read", async () => {
    await begin();
    const guild = fake.guild();
    const [room, quiet] = [fake.text(guild), fake.text(guild, "quiet")];
    const ann = fake.person("ann");
    ann.says(quiet, "long ago");
    await harness.start();
    ann.dm("1");
    ann.says(room, "room 1");
    await harness.arrived(2);
    await fake.until(() => harness.memory.values.size > 3);
    await harness.channel.stop();
    ann.dm("2");
    ann.says(room, "room 2");
    ann.says(quiet, "quiet 2");
    harness.create();
    await harness.start();
    await harness.arrived(5);
    expect(new Set(contents())).toEqual(new Set(["1", "room 1", "2", "room 2", "quiet 2"]));
  });

  it("is the newest of it when it is too much, and that some is left out is said", async () => {
    await begin({ backfillMessages: 3 });
    await harness.start();
    const ann = fake.person("ann");
    ann.dm("1");
    await harness.arrived(1);
    await harness.channel.stop();
    for (const text of ["2", "3", "4", "5", "6"]) ann.dm(text);
    harness.create();
    await harness.start();
    await harness.arrived(4);
    ann.dm("7");
    await harness.arrived(5);
    expect(contents()).toEqual(["1", "4", "5", "6", "7"]);
    expect(harness.logText()).toContain("the oldest of it is left out");
  });

  it("is fetched in a server that comes back after it was away, before what is new", async () => {
    await begin();
    const guild = fake.guild();
    const room = fake.text(guild);
    await harness.start();
    const ann = fake.person("ann");
    ann.says(room, "1");
    await harness.arrived(1);
    fake.gateway.isDeaf = true;
    ann.says(room, "2");
    fake.gateway.isDeaf = false;
    const hold = fake.faults.hold({ call: "GET /channels/:channel/messages" });
    fake.world.tell({ t: "GUILD_CREATE", d: guildCreateWire(guild, fake.world.bot), intents: 1 });
    await hold.arrived;
    ann.says(room, "3");
    hold.release();
    await harness.arrived(3);
    expect(contents()).toEqual(["1", "2", "3"]);
  });

  it("is not what a server said before the bot joined it", async () => {
    await begin();
    const room = fake.text(fake.guild());
    await harness.start();
    const ann = fake.person("ann");
    ann.says(room, "1");
    await harness.arrived(1);
    fake.gateway.isDeaf = true;
    const guild = fake.guild("joined");
    const other = fake.text(guild, "other");
    ann.says(other, "old chatter");
    fake.gateway.isDeaf = false;
    fake.world.tell({ t: "GUILD_CREATE", d: guildCreateWire(guild, fake.world.bot), intents: 1 });
    await fake.until(() => harness.channel.health().state === "running");
    ann.says(other, "2");
    await harness.arrived(2);
    await harness.restart();
    ann.says(other, "3");
    await harness.arrived(3);
    expect(contents()).toEqual(["1", "2", "3"]);
  });

  it("is fetched for a stranger who was told a code, and is let in meanwhile", async () => {
    await begin();
    harness.admits = async () => ({ kind: "refused", why: "no" });
    await harness.start();
    const ann = fake.person("ann");
    ann.dm("let me in");
    await fake.until(() => harness.knocks.length === 1);
    await sendAll(harness.channel, answer(ann.chat, "Your code is 1234."));
    await harness.channel.stop();
    harness.admits = async () => ({ kind: "admitted", isOwner: false });
    ann.dm("am I in?");
    harness.create();
    await harness.start();
    await harness.arrived(1);
    expect(contents()).toEqual(["am I in?"]);
  });

  it("is not held up by a channel that cannot be fetched", async () => {
    await begin();
    await harness.start();
    const ann = fake.person("ann");
    ann.dm("1");
    await harness.arrived(1);
    fake.faults.next({ call: "GET /channels/:channel/messages" }, { kind: "refuse", code: 50001 });
    fake.gateway.invalidate(false);
    await fake.until(() => fake.gateway.identifies.length === 2 && fake.gateway.connected === 1);
    ann.dm("2");
    await harness.arrived(2);
    expect(contents()).toEqual(["1", "2"]);
  });
});

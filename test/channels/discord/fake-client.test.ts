/** The fake Discord, driven by the real discord.js: connection, messages, resume, what ends a session, close codes. */
import { Client, Events, GatewayIntentBits, type Message, Options, Partials } from "discord.js";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FakeDiscord, type FakeDiscordOptions } from "../../fakes/discord/fake-discord.js";

const INTENTS = [
  GatewayIntentBits.Guilds,
  GatewayIntentBits.GuildMessages,
  GatewayIntentBits.DirectMessages,
  GatewayIntentBits.MessageContent,
];

let fake: FakeDiscord;
const clients: Client[] = [];
const heard: string[] = [];

beforeEach(() => {
  heard.length = 0;
});

afterEach(async () => {
  for (const client of clients.splice(0)) await client.destroy();
  await fake.close();
});

async function open(options: FakeDiscordOptions = {}): Promise<void> {
  fake = await FakeDiscord.start({ heartbeatMs: 200, identifyEveryMs: 100, ...options });
}

function client(intents = INTENTS): Client {
  const made = new Client({
    intents,
    partials: [Partials.Channel],
    rest: { api: fake.apiRoot, version: "10", retries: 0 },
    makeCache: Options.cacheWithLimits({}),
  });
  clients.push(made);
  made.on(Events.Error, (error) => heard.push(`error ${error.message}`));
  made.on(Events.ShardError, () => heard.push("shard error"));
  made.on(Events.MessageCreate, (message) => heard.push(`${message.author.username}: ${message.content}`));
  return made;
}

async function ready(intents = INTENTS): Promise<Client> {
  const made = client(intents);
  const isReady = new Promise<void>((resolve) => made.once(Events.ClientReady, () => resolve()));
  await made.login(fake.token);
  await isReady;
  return made;
}

const hears = (text: string) => fake.until(() => heard.includes(text));
const next = (made: Client) => new Promise<Message>((resolve) => made.once(Events.MessageCreate, resolve));

it("a direct message comes in and is answered; the answer comes back as the bot's own message", async () => {
  await open();
  const alice = fake.person("alice");
  const bot = await ready();
  const arrived = next(bot);
  alice.dm("hello");
  const message = await arrived;
  expect(message.inGuild()).toBe(false);
  expect(message.channel.isDMBased()).toBe(true);
  await message.reply("hi alice");
  expect(fake.answers(alice.chat)).toEqual(["hi alice"]);
  expect(fake.visible(alice.chat).at(-1)?.replyTo).toBe(message.id);
  await hears("nano: hi alice");
  expect(fake.journal.strange).toEqual([]);
});

it("guild, thread and forum messages say where they are; mentions and replies are told", async () => {
  await open();
  const home = fake.guild();
  const general = fake.text(home);
  const forum = fake.forum(home);
  const alice = fake.person("alice");
  const bot = await ready();
  const first = next(bot);
  alice.says(general, `${fake.mention} there?`);
  const message = await first;
  expect(message.guildId).toBe(home.id);
  expect(message.mentions.has(fake.world.bot.id)).toBe(true);
  const own = await message.reply("yes");
  const second = next(bot);
  const stored = general.messages.get(own.id);
  if (stored === undefined) throw new Error("the answer is not there");
  alice.says(general, "good", { replyTo: stored });
  const reply = await second;
  expect(reply.mentions.repliedUser?.id).toBe(fake.world.bot.id);
  expect((await reply.fetchReference()).content).toBe("yes");
  const third = next(bot);
  const { thread } = alice.posts(forum, "question", "how?");
  const post = await third;
  expect(post.id).toBe(thread.id);
  expect(post.channel.isThread() && post.channel.parentId).toBe(forum.id);
});

it("what was said while the line was cut is replayed by a resume, once and in order", async () => {
  await open();
  const alice = fake.person("alice");
  const bot = await ready();
  alice.dm("one");
  await hears("alice: one");
  const isDown = new Promise((resolve) => bot.once(Events.ShardReconnecting, resolve));
  fake.gateway.cut();
  await isDown;
  alice.dm("two");
  alice.dm("three");
  await fake.until(() => fake.gateway.counts.resumed === 1);
  alice.dm("four");
  await hears("alice: four");
  expect(heard).toEqual(["alice: one", "alice: two", "alice: three", "alice: four"]);
  expect(fake.gateway.identifies).toHaveLength(1);
});

it("opcode 7 and an invalid session that may be resumed lose nothing", async () => {
  await open();
  const alice = fake.person("alice");
  await ready();
  fake.gateway.askReconnect();
  await fake.until(() => fake.gateway.counts.resumed === 1);
  fake.gateway.invalidate(true);
  alice.dm("meanwhile");
  await hears("alice: meanwhile");
  expect(fake.gateway.identifies).toHaveLength(1);
});

it("an invalid session makes the client identify anew; what was said meanwhile is gone", async () => {
  await open();
  const alice = fake.person("alice");
  await ready();
  fake.gateway.invalidate(false);
  alice.dm("lost");
  await fake.until(() => fake.gateway.identifies.length === 2 && fake.gateway.connected === 1);
  alice.dm("there again");
  await hears("alice: there again");
  expect(heard).toEqual(["alice: there again"]);
});

it("acks that stop make the client come again", async () => {
  await open();
  await ready();
  fake.gateway.isAcking = false;
  await fake.until(() => fake.gateway.counts.resumes > 0);
  fake.gateway.isAcking = true;
  await fake.until(() => fake.gateway.connected === 1);
});

it("a resume that is refused leads to an identify", async () => {
  await open();
  await ready();
  fake.gateway.forgetSessions();
  fake.gateway.cut();
  await fake.until(() => fake.gateway.identifies.length === 2 && fake.gateway.connected === 1);
});

it.each([4004, 4013, 4014])("close code %i ends the login", async (code) => {
  await open();
  fake.gateway.refuseIdentifyWith = code;
  await expect(client().login(fake.token)).rejects.toThrow();
  expect(fake.gateway.identifies).toHaveLength(1);
});

it("a switch in the portal that is off refuses the intent; without the intent, content is left out", async () => {
  await open({ mayReadContent: false, identifyEveryMs: 0 });
  const alice = fake.person("alice");
  const general = fake.text(fake.guild());
  await expect(client().login(fake.token)).rejects.toThrow(/disallowed intents/i);
  await ready(INTENTS.filter((intent) => intent !== GatewayIntentBits.MessageContent));
  alice.says(general, "not for you");
  alice.says(general, `${fake.mention} for you`);
  alice.dm("private");
  await hears("alice: private");
  expect(heard.filter((each) => each !== "shard error")).toEqual([
    "alice: ",
    `alice: ${fake.mention} for you`,
    "alice: private",
  ]);
});

it("a wrong token is refused, by REST and after it was reset", async () => {
  await open();
  const wrong = `${fake.token.slice(0, -5)}xxxxx`;
  await expect(client().login(wrong)).rejects.toThrow();
  const bot = await ready();
  const isOver = new Promise<number>((resolve) => bot.once(Events.ShardDisconnect, ({ code }) => resolve(code)));
  fake.resetToken();
  expect(await isOver).toBe(4004);
});

it("503 on connect fails that login, and the next one goes through", async () => {
  await open();
  fake.gateway.refuseConnects(1);
  await expect(client().login(fake.token)).rejects.toThrow(/503/);
  expect(fake.gateway.identifies).toHaveLength(0);
  await ready();
});

/** Rate limits and interactions of the fake Discord, by discord.js' own REST client and client. */
import {
  ButtonStyle,
  type ChatInputCommandInteraction,
  Client,
  ComponentType,
  DiscordAPIError,
  Events,
  GatewayIntentBits,
  type Interaction,
  MessageFlags,
  Options,
  RateLimitError,
  REST,
  type RESTOptions,
  Routes,
} from "discord.js";
import { afterEach, expect, it } from "vitest";
import { FakeDiscord, type FakeDiscordOptions } from "../../fakes/discord/fake-discord.js";
import type { Channel } from "../../fakes/discord/model.js";

let fake: FakeDiscord;
let general: Channel;
const ends: Array<() => Promise<void>> = [];

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await fake.close();
});

const SEND = "POST /channels/:channel/messages";

async function open(options: FakeDiscordOptions = {}): Promise<void> {
  fake = await FakeDiscord.start(options);
  general = fake.text(fake.guild());
}

const restWith = (options: Partial<RESTOptions> = {}) =>
  new REST({ api: fake.apiRoot, version: "10", retries: 0, ...options }).setToken(fake.token);
const say = (rest: REST, content: string, channel = general) =>
  rest.post(Routes.channelMessages(channel.id), { body: { content } });

it("a client that reads the headers is never refused", async () => {
  await open({ limits: { [SEND]: { count: 2, perMs: 300 } } });
  const rest = restWith();
  await Promise.all(Array.from({ length: 7 }, (_, n) => say(rest, `m${n}`)));
  expect(fake.answers(general)).toEqual(["m0", "m1", "m2", "m3", "m4", "m5", "m6"]);
  expect(fake.buckets.refused).toEqual([]);
});

it("a client that does not is refused, and it is a violation once it was told", async () => {
  await open({ limits: { [SEND]: { count: 1, perMs: 5000 } } });
  const raw = () => {
    const headers = {
      authorization: `Bot ${fake.token}`,
      "user-agent": "DiscordBot (x, 1)",
      "content-type": "application/json",
    };
    return fetch(`${fake.apiRoot}/v10/channels/${general.id}/messages`, {
      method: "POST",
      headers,
      body: '{"content":"x"}',
    });
  };
  const first = await raw();
  expect(first.headers.get("x-ratelimit-remaining")).toBe("0");
  expect(Number(first.headers.get("x-ratelimit-reset-after"))).toBeGreaterThan(4);
  await fake.until(() => performance.now() - (fake.journal.entries[0]?.arrivedMs ?? Number.POSITIVE_INFINITY) > 200);
  const second = await raw();
  expect(second.status).toBe(429);
  expect(await second.json()).toMatchObject({ global: false, retry_after: expect.any(Number) });
  expect(fake.buckets.violations).toEqual([`${SEND} ${general.id}`]);
});

it("each channel has a bucket of its own", async () => {
  await open({ limits: { [SEND]: { count: 2, perMs: 60_000 } } });
  const other = fake.text(fake.guild(), "other");
  const rest = restWith({ rejectOnRateLimit: () => true });
  await say(rest, "a");
  // discord.js learns the name of a bucket by its first call, and begins to count with its second.
  await say(rest, "b");
  await expect(say(rest, "c")).rejects.toThrow(RateLimitError);
  await say(rest, "d", other);
  expect(fake.journal.calls(SEND)).toHaveLength(3);
});

it("429 on order, of one bucket and of everything", async () => {
  await open();
  const rest = restWith({ rejectOnRateLimit: () => true });
  fake.faults.next({ call: SEND }, { kind: "limited", retryAfterMs: 150 });
  await expect(say(rest, "early")).rejects.toMatchObject({ global: false });
  await expect(rest.get(Routes.user())).resolves.toBeDefined();
  const fresh = restWith({ rejectOnRateLimit: () => true });
  fake.faults.next({ call: SEND, major: general.id }, { kind: "limited", retryAfterMs: 60_000, isGlobal: true });
  await expect(say(fresh, "early")).rejects.toThrow(RateLimitError);
  await expect(restWith({ rejectOnRateLimit: () => true }).get(Routes.user())).rejects.toMatchObject({ global: true });
});

it("more than the bot may call in a second is refused", async () => {
  await open({ globalPerSecond: 3 });
  const rests = Array.from({ length: 5 }, () => restWith({ rejectOnRateLimit: () => true }));
  const ended = await Promise.allSettled(rests.map((rest) => rest.get(Routes.user())));
  expect(ended.filter(({ status }) => status === "rejected")).toHaveLength(2);
});

async function ready(): Promise<Client<true>> {
  const { Guilds, GuildMessages, DirectMessages } = GatewayIntentBits;
  const client = new Client({
    intents: [Guilds, GuildMessages, DirectMessages],
    rest: { api: fake.apiRoot, version: "10", retries: 0 },
    makeCache: Options.cacheWithLimits({}),
  });
  ends.push(() => client.destroy());
  const isReady = new Promise<Client<true>>((resolve) => client.once(Events.ClientReady, resolve));
  await client.login(fake.token);
  return isReady;
}

const nextInteraction = (client: Client) =>
  new Promise<Interaction>((resolve) => client.once(Events.InteractionCreate, resolve));

async function nextCommand(client: Client): Promise<ChatInputCommandInteraction> {
  const interaction = await nextInteraction(client);
  if (!interaction.isChatInputCommand()) throw new Error("not a command");
  return interaction;
}

it("a slash command: registered, run, deferred for its user only, answered, followed up", async () => {
  await open();
  const client = await ready();
  const alice = fake.person("alice");
  expect(() => alice.runs(general, "echo")).toThrow("no command");
  const option = { name: "text", description: "what", type: 3 };
  await client.application.commands.set([{ name: "echo", description: "says it again", options: [option] }]);
  const arrived = nextCommand(client);
  const run = alice.runs(general, "echo", { text: "hi" });
  const interaction = await arrived;
  expect(interaction.options.getString("text")).toBe("hi");
  await interaction.deferReply({ flags: MessageFlags.Ephemeral });
  expect([run.state, fake.answerTo(run)]).toEqual(["deferred", null]);
  await interaction.editReply("hi back");
  expect([run.isEphemeral, fake.answerTo(run), fake.visible(general)]).toEqual([true, "hi back", []]);
  await interaction.followUp("for all");
  expect(fake.answers(general)).toEqual(["for all"]);
});

it("a command in a direct chat, answered late or twice, is refused", async () => {
  await open({ interactionMs: 0 });
  const client = await ready();
  const alice = fake.person("alice");
  await client.application.commands.set([{ name: "late", description: "x" }]);
  const arrived = nextCommand(client);
  alice.runs(alice.chat, "late");
  const interaction = await arrived;
  await fake.until(() => Date.now() - interaction.createdTimestamp > 5);
  await expect(interaction.reply("x")).rejects.toMatchObject({ code: 10062 });
});

it("the token of an interaction ends", async () => {
  await open({ interactionTokenMs: 0 });
  const client = await ready();
  await client.application.commands.set([{ name: "old", description: "x" }]);
  const arrived = nextCommand(client);
  fake.person("alice").runs(general, "old");
  const interaction = await arrived;
  await interaction.deferReply();
  await fake.until(() => Date.now() - interaction.createdTimestamp > 5);
  await expect(interaction.editReply("x")).rejects.toThrow(DiscordAPIError);
  expect(fake.visible(general)).toMatchObject([{ isLoading: true, author: "nano" }]);
});

it("a button is pressed, acknowledged, and taken away", async () => {
  await open();
  const client = await ready();
  const channel = await client.channels.fetch(general.id);
  if (!channel?.isSendable()) throw new Error("no place");
  const button = { type: ComponentType.Button, style: ButtonStyle.Primary, label: "Yes", customId: "yes" } as const;
  const sent = await channel.send({
    content: "sure?",
    components: [{ type: ComponentType.ActionRow, components: [button] }],
  });
  const stored = general.messages.get(sent.id);
  if (stored === undefined) throw new Error("it was not sent");
  expect(() => fake.person("alice").presses(stored, "no")).toThrow("no button");
  const arrived = nextInteraction(client);
  const press = fake.person("alice").presses(stored, "yes");
  const interaction = await arrived;
  if (!interaction.isButton()) throw new Error("not a button");
  await interaction.deferUpdate();
  await expect(interaction.deferUpdate().catch(({ message }) => message)).resolves.toMatch(/already/);
  await interaction.editReply({ components: [] });
  expect(press.state).toBe("updated");
  expect(fake.visible(general)).toMatchObject([{ content: "sure?", buttons: [] }]);
});

/** The REST side of the fake Discord, asked by discord.js' own REST client: forms, refusals, nonces, files, faults. */
import { DiscordAPIError, REST, type RequestData, Routes } from "discord.js";
import { afterEach, expect, it } from "vitest";
import { FakeDiscord, type FakeDiscordOptions } from "../../fakes/discord/fake-discord.js";
import type { Channel, Denial } from "../../fakes/discord/model.js";

let fake: FakeDiscord;
let rest: REST;
let general: Channel;

afterEach(() => fake.close());

async function open(options: FakeDiscordOptions = {}): Promise<void> {
  fake = await FakeDiscord.start(options);
  rest = new REST({ api: fake.apiRoot, version: "10", retries: 0 }).setToken(fake.token);
  general = fake.text(fake.guild());
}

interface Posted {
  id: string;
  content: string;
  guild_id?: string;
  attachments: Array<{ url: string; size: number }>;
}

const post = (body: Record<string, unknown>, channel = general, more: RequestData = {}) =>
  rest.post(Routes.channelMessages(channel.id), { body, ...more }) as Promise<Posted>;

/** The code with which a call is refused. */
async function codeOf(call: Promise<unknown>): Promise<number | string> {
  try {
    await call;
    return "taken";
  } catch (error) {
    if (error instanceof DiscordAPIError) return error.code;
    throw error;
  }
}

const ofSize = (units: number) => "a".repeat(units);
const button = (custom_id: string) => ({ type: 2, style: 1, label: "Yes", custom_id });
const rows = (...buttons: unknown[][]) => buttons.map((components) => ({ type: 1, components }));

it.each([
  ["2000 units", { content: ofSize(2000) }, "taken"],
  ["2001 units", { content: ofSize(2001) }, 50035],
  ["1001 emoji, 2002 units", { content: "😀".repeat(1001) }, 50035],
  ["nothing", { content: "" }, 50006],
  ["nothing but blanks", { content: " \n " }, 50006],
  ["a number as text", { content: 5 }, 50035],
  ["a nonce of 25", { content: "x", nonce: ofSize(25), enforce_nonce: true }, "taken"],
  ["a nonce of 26", { content: "x", nonce: ofSize(26), enforce_nonce: true }, 50035],
  ["a button", { content: "x", components: rows([button("a")]) }, "taken"],
  ["an id of 101", { content: "x", components: rows([button(ofSize(101))]) }, 50035],
  ["an id twice", { content: "x", components: rows([button("a"), button("a")]) }, 50035],
  ["six in a row", { content: "x", components: rows([..."abcdef"].map(button)) }, 50035],
  ["six rows", { content: "x", components: rows(...[..."abcdef"].map((id) => [button(id)])) }, 50035],
  ["mentions both ways", { content: "x", allowed_mentions: { parse: ["users"], users: ["1"] } }, 50035],
  ["an answer to nothing", { content: "x", message_reference: { message_id: "1" } }, 50035],
  [
    "an answer that may fail",
    { content: "x", message_reference: { message_id: "1", fail_if_not_exists: false } },
    "taken",
  ],
])("a message with %s", async (_, body, code) => {
  await open();
  expect(await codeOf(post(body))).toBe(code);
  expect(fake.visible(general)).toHaveLength(code === "taken" ? 1 : 0);
});

it("a wrong form says which field", async () => {
  await open();
  await expect(post({ content: ofSize(2001) })).rejects.toThrow(/content\[BASE_TYPE_MAX_LENGTH\]/);
});

it("REST tells neither guild nor member; blanks at the ends are gone", async () => {
  await open();
  const posted = await post({ content: " hi \n" });
  expect(posted.content).toBe("hi");
  expect(Object.keys(posted)).not.toEqual(expect.arrayContaining(["guild_id"]));
  expect(Object.keys(posted)).not.toEqual(expect.arrayContaining(["member"]));
});

it("a nonce makes one message within its time, only where it is enforced, and in each channel", async () => {
  await open();
  const other = fake.text([...fake.world.guilds.values()][0] ?? fake.guild(), "other");
  const body = { content: "once", nonce: "n1", enforce_nonce: true };
  const first = await post(body);
  expect((await post(body)).id).toBe(first.id);
  expect((await post(body, other)).id).not.toBe(first.id);
  expect((await post({ ...body, enforce_nonce: false })).id).not.toBe(first.id);
  expect(fake.answers(general)).toEqual(["once", "once"]);
});

it("a nonce is forgotten after its time", async () => {
  await open({ nonceMs: -1 });
  const body = { content: "twice", nonce: "n1", enforce_nonce: true };
  expect((await post(body)).id).not.toBe((await post(body)).id);
});

it.each<[Denial, number]>([
  ["view", 50001],
  ["send", 50013],
])("a channel that denies %s", async (denial, code) => {
  await open();
  general.denied.add(denial);
  expect(await codeOf(post({ content: "x" }))).toBe(code);
});

it("who closed direct messages, what is gone, what is no place to write", async () => {
  await open();
  const alice = fake.person("alice");
  alice.user.refusesDms = true;
  expect(await codeOf(post({ content: "x" }, alice.chat))).toBe(50007);
  const thread = alice.startsThread(general, "talk");
  fake.world.setArchived(thread, true);
  expect(await codeOf(post({ content: "wakes up" }, thread))).toBe("taken");
  expect(thread.isArchived).toBe(false);
  fake.world.setArchived(thread, true, true);
  expect(await codeOf(post({ content: "x" }, thread))).toBe(50083);
  fake.world.setArchived(thread, false, true);
  expect(await codeOf(post({ content: "x" }, thread))).toBe(160005);
  fake.world.removeChannel(thread);
  expect(await codeOf(post({ content: "x" }, thread))).toBe(10003);
  expect(await codeOf(post({ content: "x" }, fake.forum(fake.guild())))).toBe(50008);
  expect(await codeOf(rest.patch(Routes.channelMessage(general.id, "1"), { body: { content: "x" } }))).toBe(10008);
  const hers = alice.says(general, "mine");
  expect(await codeOf(rest.patch(Routes.channelMessage(general.id, hers.id), { body: { content: "x" } }))).toBe(50005);
});

it("edits replace, keep what they do not name, and may not empty a message", async () => {
  await open();
  const { id } = await post({ content: "one", components: rows([button("a")]) });
  const edit = (body: unknown) => rest.patch(Routes.channelMessage(general.id, id), { body });
  await edit({ content: "two" });
  expect(fake.visible(general)).toMatchObject([
    { content: "two", isEdited: true, buttons: [{ id: "a", label: "Yes" }] },
  ]);
  await edit({ components: [] });
  expect(fake.visible(general)).toMatchObject([{ content: "two", buttons: [] }]);
  expect(await codeOf(edit({ content: "" }))).toBe(50006);
  await rest.delete(Routes.channelMessage(general.id, id));
  expect(fake.visible(general)).toEqual([]);
});

it("files go up, and come down from the content network", async () => {
  await open({ maxFileBytes: 100 });
  const files = [{ name: "a.txt", data: Buffer.from("hello"), contentType: "text/plain" }];
  const posted = await post({ content: "see" }, general, { files });
  expect(fake.visible(general)[0]?.files).toEqual(["a.txt"]);
  const url = posted.attachments[0]?.url ?? "";
  expect(await (await fetch(url)).text()).toBe("hello");
  expect((await fetch(url.replace(/\d+\/a\.txt/, "1/a.txt"))).status).toBe(404);
  const large = [{ name: "b.bin", data: Buffer.alloc(101) }];
  expect(await codeOf(post({ content: "" }, general, { files: large }))).toBe(40005);
  const many = Array.from({ length: 11 }, (_, n) => ({ name: `${n}`, data: Buffer.from("x") }));
  expect(await codeOf(post({ content: "" }, general, { files: many }))).toBe(50035);
});

it("pages of messages: newest first, before and after", async () => {
  await open();
  const alice = fake.person("alice");
  const ids = ["a", "b", "c", "d", "e"].map((text) => alice.says(general, text).id);
  const page = async (query: Record<string, string>) =>
    ((await rest.get(Routes.channelMessages(general.id), { query: new URLSearchParams(query) })) as Posted[]).map(
      ({ content }) => content,
    );
  expect(await page({})).toEqual(["e", "d", "c", "b", "a"]);
  expect(await page({ after: ids[1] ?? "", limit: "2" })).toEqual(["d", "c"]);
  expect(await page({ before: ids[3] ?? "", limit: "2" })).toEqual(["c", "b"]);
  expect(await codeOf(page({ limit: "101" }))).toBe(50035);
});

it("pings only whom the bot allows", async () => {
  await open();
  const { id } = fake.person("alice");
  await post({ content: `@everyone <@${id}>`, allowed_mentions: { parse: [] } });
  await post({ content: `@everyone <@${id}>` });
  expect(fake.visible(general).map(({ pings }) => pings)).toEqual([[], [id, "everyone"]]);
});

it("faults on order: cut before or after the effect, a status, a hold", async () => {
  await open();
  const call = "POST /channels/:channel/messages";
  fake.faults.next({ call }, { kind: "reset", hasEffect: false });
  await expect(post({ content: "never" })).rejects.toThrow();
  fake.faults.next({ call }, { kind: "reset", hasEffect: true });
  await expect(post({ content: "sent" })).rejects.toThrow();
  fake.faults.next(
    { call, fits: (body) => (body as { content: string }).content === "aimed" },
    { kind: "status", status: 503, hasEffect: false },
  );
  await post({ content: "not aimed" });
  await expect(post({ content: "aimed" })).rejects.toThrow();
  expect(fake.answers(general)).toEqual(["sent", "not aimed"]);
  const hold = fake.faults.hold({ call });
  const held = post({ content: "held" });
  await hold.arrived;
  expect(fake.answers(general)).toHaveLength(2);
  hold.release();
  await held;
  expect(fake.answers(general)).toHaveLength(3);
});

it("what no client should call is noted", async () => {
  await open();
  const authorization = `Bot ${fake.token}`;
  expect((await fetch(`${fake.apiRoot}/v10/users/@me`, { headers: { authorization } })).status).toBe(403);
  expect((await fetch(`${fake.apiRoot}/v9/users/@me`, { headers: { authorization } })).status).toBe(404);
  expect(fake.journal.strange).toHaveLength(2);
  expect(await codeOf(new REST({ api: fake.apiRoot, version: "10" }).setToken("no").get(Routes.user()))).toBe(0);
});

/** The strict fake, driven by the real SDK: updates, offsets, conflicts, webhooks, limits and faults. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Api } from "grammy";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeTelegram } from "../../fakes/telegram/fake-telegram.js";
import type { Person } from "../../fakes/telegram/people.js";

let fake: FakeTelegram;
let api: Api;
let alice: Person;
const hookPort = { number: 0 };
/** The time by which limits are counted. */
const clock = { nowMs: 0 };
beforeEach(async () => {
  const webhookRoute = () => `http://127.0.0.1:${hookPort.number}/hook`;
  fake = await FakeTelegram.start({ webhookRoute, nowMs: () => clock.nowMs });
  api = new Api(fake.token, { apiRoot: fake.apiRoot });
  alice = fake.person("alice");
});
afterEach(() => fake.close());

const refused = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error: { error_code?: number; description?: string }) => [error.error_code, error.description],
  );

describe("polling", () => {
  it("gives updates until a later offset confirms them", async () => {
    const [first, second] = [alice.dm("one"), alice.dm("two")];
    const texts = async (ask: { offset?: number; limit?: number }) =>
      (await api.getUpdates(ask)).map(({ message }) => message?.text);
    expect(await texts({})).toEqual(["one", "two"]);
    expect(await texts({ limit: 1 })).toEqual(["one"]);
    expect(await texts({ offset: second.updateId })).toEqual(["two"]);
    expect(fake.updates.isConfirmed(first.updateId)).toBe(true);
    expect(await texts({ offset: second.updateId + 1 })).toEqual([]);
    expect(fake.updates.pending).toEqual([]);
    expect(fake.violations).toEqual([]);
  });

  it("notes an offset that confirms what was never given out", async () => {
    const { updateId } = alice.dm("one");
    await api.getUpdates({ offset: updateId + 1 });
    expect(fake.violations.map(({ kind }) => kind)).toEqual(["unseen_confirmed"]);
  });

  it("holds a long poll until something comes, and answers an empty one at its end", async () => {
    const poll = api.getUpdates({ timeout: 30 });
    await fake.until(() => fake.updates.isPolled);
    alice.dm("at last");
    expect((await poll)[0]?.message).toMatchObject({ text: "at last", chat: { type: "private" } });
    alice.dm("seen");
    const given = await api.getUpdates({});
    expect(await api.getUpdates({ offset: (given.at(-1)?.update_id ?? 0) + 1, timeout: 1 })).toEqual([]);
  });

  it("ends the older of two polls, and forgets a poll whose client has gone", async () => {
    const older = refused(api.getUpdates({ timeout: 30 }));
    await fake.until(() => fake.updates.isPolled);
    const gone = new AbortController();
    const newer = refused(api.getUpdates({ timeout: 30 }, gone.signal as never));
    expect(await older).toEqual([409, expect.stringContaining("terminated by other getUpdates request")]);
    gone.abort();
    await newer;
    await fake.until(() => !fake.updates.isPolled);
    expect(await api.getUpdates({})).toEqual([]);
    expect(fake.journal.refused(409)).toHaveLength(1);
    expect(fake.journal.calls("getUpdates").map(({ outcome }) => outcome)).toEqual(["refused", "cut", "ok"]);
  });

  it("leaves out kinds that nobody asked for, and brings any shape that a test wants", async () => {
    await api.getUpdates({ allowed_updates: ["message"] });
    alice.blocks();
    fake.updates.raw({ message: 17 });
    fake.updates.raw({ brand_new_kind: {} });
    const kinds = (await api.getUpdates({})).map((update) => Object.keys(update)[1]);
    expect(kinds).toEqual(["message", "brand_new_kind"]);
  });

  it("marks mentions, topics, chains of answers and edits as Telegram does", async () => {
    const [team, lab] = [fake.supergroup(), fake.forum()];
    const topic = lab.topic("help", alice.user);
    alice.says(lab, `hey ${fake.mention} /now`, { topic });
    const first = alice.says(team, "first");
    alice.says(team, "second", { replyTo: first });
    alice.edits(first, "first, better");
    const [inTopic, , chained, edited] = await api.getUpdates({});
    expect(inTopic?.message).toMatchObject({
      message_thread_id: topic.id,
      is_topic_message: true,
      reply_to_message: { forum_topic_created: { name: "help" } },
      entities: [
        { type: "mention", offset: 4, length: fake.mention.length },
        { type: "bot_command", length: 4 },
      ],
    });
    expect(chained?.message).toMatchObject({ message_thread_id: first.message_id });
    expect(chained?.message?.is_topic_message).toBeUndefined();
    expect(edited?.edited_message).toMatchObject({ text: "first, better", edit_date: expect.any(Number) });
  });
});

describe("tokens", () => {
  it("does not know another token, or one that was revoked, and keeps none in its journal", async () => {
    const other = new Api(`${fake.world.bot.id}:${"x".repeat(35)}`, { apiRoot: fake.apiRoot });
    expect(await refused(other.getMe())).toEqual([401, "Unauthorized"]);
    expect((await api.getMe()).username).toBe(fake.world.bot.username);
    fake.revokeToken();
    expect(await refused(api.getMe())).toEqual([401, "Unauthorized"]);
    expect(JSON.stringify(fake.journal.entries)).not.toContain(fake.secret);
  });
});

describe("webhooks", () => {
  it("bring updates with the secret until a 2xx, and exclude polls", async () => {
    const asked: Array<{ secret: unknown; text: unknown }> = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const update = JSON.parse(Buffer.concat(chunks).toString()) as { message: { text: string } };
        asked.push({ secret: request.headers["x-telegram-bot-api-secret-token"], text: update.message.text });
        response.writeHead(asked.length === 1 ? 500 : 200).end();
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    hookPort.number = (server.address() as AddressInfo).port;
    expect(await refused(api.setWebhook("http://example.org/hook"))).toEqual([400, expect.stringContaining("HTTPS")]);
    await api.setWebhook("https://example.org/hook", { secret_token: "s3" });
    expect(await refused(api.getUpdates())).toEqual([409, expect.stringContaining("webhook is active")]);
    alice.dm("one");
    alice.dm("two");
    await fake.until(() => fake.updates.pending.length === 0);
    expect(asked.map(({ text }) => text)).toEqual(["one", "one", "two"]);
    expect(new Set(asked.map(({ secret }) => secret))).toEqual(new Set(["s3"]));
    expect(await api.getWebhookInfo()).toMatchObject({ url: "https://example.org/hook", pending_update_count: 0 });
    await api.deleteWebhook();
    alice.dm("three");
    expect((await api.getUpdates())[0]?.message?.text).toBe("three");
    server.close();
    server.closeAllConnections();
  });
});

describe("limits", () => {
  it("notes two sends into one chat within a second, edits too, and nothing slower", async () => {
    alice.dm("hi");
    const { message_id } = await api.sendMessage(alice.id, "one");
    clock.nowMs += 990;
    await api.editMessageText(alice.id, message_id, "one, better");
    await api.sendChatAction(alice.id, "typing");
    expect(fake.violations).toEqual([]);
    await api.sendMessage(alice.id, "two");
    expect(fake.violations.map(({ kind }) => kind)).toEqual(["chat_rate"]);
  });

  it("notes the 31st message of a bot within a second", async () => {
    const people = Array.from({ length: 31 }, (_, at) => fake.person(`p${at}`));
    for (const each of people) each.dm("hi");
    await Promise.all(people.map((each) => api.sendMessage(each.id, "one")));
    expect(fake.violations.map(({ kind }) => kind)).toEqual(["bot_rate"]);
  });

  it("counts each file of an album, and in a group up to 20 messages a minute", async () => {
    const group = fake.group();
    for (let at = 0; at < 21; at += 1) await api.sendMessage(group.id, "a");
    expect(fake.violations.filter(({ kind }) => kind === "group_rate")).toHaveLength(1);
  });

  it("tells one chat to wait, counts who does not, and lets others through", async () => {
    alice.dm("hi");
    const bob = fake.person("bob");
    bob.dm("hi");
    fake.flood(alice.chat, 1);
    await expect(api.sendMessage(alice.id, "a")).rejects.toMatchObject({
      error_code: 429,
      parameters: { retry_after: 1 },
    });
    await api.sendMessage(bob.id, "a");
    expect(await refused(api.sendMessage(alice.id, "a"))).toEqual([429, "Too Many Requests: retry after 1"]);
    expect(fake.violations.map(({ kind }) => kind)).toEqual(["during_wait"]);
    clock.nowMs += 1000;
    await api.sendMessage(alice.id, "a");
    expect(alice.chat.answers()).toEqual(["a"]);
  });
});

describe("faults", () => {
  it("cuts, holds, delays and refuses on order, before or after the effect", async () => {
    alice.dm("hi");
    const texts = () => alice.chat.answers();
    fake.faults.order("sendMessage", { kind: "reset", effect: "before" });
    await expect(api.sendMessage(alice.id, "a")).rejects.toThrow("Network request");
    expect(texts()).toEqual([]);
    fake.faults.order("sendMessage", { kind: "reset", effect: "after" });
    await expect(api.sendMessage(alice.id, "b")).rejects.toThrow("Network request");
    expect(texts()).toEqual(["b"]);
    fake.faults.order("sendMessage", { kind: "gateway", status: 502, effect: "before" });
    await expect(api.sendMessage(alice.id, "c")).rejects.toThrow();
    fake.faults.order("sendMessage", { kind: "refuse", code: 500, description: "Internal Server Error" });
    expect(await refused(api.sendMessage(alice.id, "d"))).toEqual([500, "Internal Server Error"]);
    fake.faults.order("sendMessage", { kind: "hold", effect: "after" }, { chatId: alice.id });
    const stop = new AbortController();
    const held = refused(api.sendMessage(alice.id, "e", {}, stop.signal as never));
    await fake.until(() => texts().includes("e"));
    expect(fake.journal.calls("sendMessage").at(-1)?.outcome).toBe("open");
    stop.abort();
    await held;
    fake.faults.order("sendMessage", { kind: "slow", ms: 50 });
    await api.sendMessage(alice.id, "f");
    expect(texts()).toEqual(["b", "e", "f"]);
  });
});

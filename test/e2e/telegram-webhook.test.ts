/** Telegram brings its updates: stored before they are acknowledged, by whichever process; who has no secret is not heard. */
import { afterEach, expect, it } from "vitest";
import type { GatewayProcess } from "./support/stage.js";
import { TelegramStage } from "./support/telegram.js";

let on: TelegramStage;
afterEach(() => on.close());

const WEBHOOK = { url: "https://bot.example.org/telegram/webhook", secret: "a_secret-of-this-test" };
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** The process that a proxy in front would choose, and where it listens. */
const behind = { port: 0 };
const route = (url: string) => url.replace("https://bot.example.org", `http://127.0.0.1:${behind.port}`);

async function open() {
  on = await TelegramStage.open({ fake: { webhookRoute: route }, telegram: { streaming: false, webhook: WEBHOOK } });
  return { fake: on.fake, alice: on.fake.person("alice"), model: on.stage.model };
}

async function serve(process: GatewayProcess): Promise<GatewayProcess> {
  behind.port = await process.ready;
  await on.fake.until(() => on.fake.updates.info.url === WEBHOOK.url);
  return process;
}

it("what is brought is answered; nobody polls", async () => {
  const { fake, alice, model } = await open();
  await serve(await on.gateway());
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"]);
  alice.album(
    alice.chat,
    ["look", undefined].map((caption) => ({
      kind: "photo" as const,
      bytes: PNG,
      ...(caption === undefined ? {} : { caption }),
    })),
  );
  alice.dm("next");
  await on.answer(alice.chat, ({ text }) => text === "re: next");
  expect(model.asked("look")).toBe(1);
  expect(fake.journal.calls("getUpdates")).toEqual([]);
  expect(await on.deadLetters()).toEqual([]);
});

it("who has no secret is not heard", async () => {
  const { alice, model } = await open();
  await serve(await on.gateway());
  const bring = (headers: Record<string, string>) =>
    fetch(route(WEBHOOK.url), {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({
        update_id: 1,
        message: { message_id: 1, date: 1, chat: alice.chat.wire, from: alice.user, text: "forged" },
      }),
    });
  for (const secret of ["", "another", `${WEBHOOK.secret}x`])
    expect((await bring({ "x-telegram-bot-api-secret-token": secret })).status).toBe(401);
  expect((await bring({})).status).toBe(401);
  alice.dm("real");
  await on.answered(alice.chat, ["re: real"]);
  expect(model.asked("forged")).toBe(0);
});

it("killed before it is acknowledged: it is brought again, and makes one turn", async () => {
  const { fake, alice, model } = await open();
  const first = await serve(await on.gateway({ fault: "kill:publish.stored" }));
  const { updateId } = alice.dm("hello");
  await first.ended;
  expect(fake.updates.isConfirmed(updateId)).toBe(false);
  await serve(await on.gateway());
  await on.answered(alice.chat, ["re: hello"]);
  await fake.until(() => fake.updates.isConfirmed(updateId));
  alice.dm("next");
  await on.answered(alice.chat, ["re: hello", "re: next"]);
  expect(model.asked("hello")).toBe(1);
});

it("Redis is away: nothing is acknowledged, all is answered when it is back", async () => {
  const { fake, alice } = await open();
  await serve(await on.gateway());
  await on.stage.redis.kill();
  const { updateId } = alice.dm("hello");
  await fake.until(() => fake.updates.info.last_error_message?.includes("503"));
  expect(fake.updates.isConfirmed(updateId)).toBe(false);
  await on.stage.redis.up();
  await on.answered(alice.chat, ["re: hello"]);
});

it("a process that stands by takes updates in, too; the owner answers", async () => {
  const { alice } = await open();
  await serve(await on.gateway());
  behind.port = await (await on.gateway()).ready;
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"]);
});

/** Telegram's limits under load: they are kept before Telegram has to say so, and a full chat delays no other. */
import { afterEach, expect, it } from "vitest";
import { TelegramStage, type TelegramStageOptions } from "./support/telegram.js";

let on: TelegramStage;
afterEach(() => on.close());

async function open(options: TelegramStageOptions = {}) {
  const gateway = { port: 0, leaseMs: 1200, drainMs: 3000, concurrency: 100 };
  on = await TelegramStage.open({ ...options, config: { gateway } });
  return on.fake;
}

it("a hundred chats at once, streamed: all answered, no limit broken, no call refused", async () => {
  const fake = await open();
  const people = Array.from({ length: 100 }, (_, n) => fake.person(`person${n}`));
  await on.polling();
  const text = `slowly ${"word ".repeat(150).trim()}`;
  for (const person of people) person.dm(text);
  for (const person of people) await on.answered(person.chat, [`re: ${text}`], { withinMs: 80_000 });
  expect(fake.violations).toEqual([]);
  expect(fake.journal.entries.filter(({ outcome }) => outcome === "refused")).toEqual([]);
}, 120_000);

it("two processes that send for one bot share its limits", async () => {
  const fake = await open({ telegram: { streaming: false } });
  const people = Array.from({ length: 40 }, (_, n) => fake.person(`person${n}`));
  await on.polling({ role: "channels" });
  await on.gateway({ role: "channels" });
  await on.gateway({ role: "worker" });
  for (const person of people) person.dm("hello");
  for (const person of people) await on.answered(person.chat, ["re: hello"]);
  expect(fake.violations).toEqual([]);
});

it("a group takes twenty messages a minute: edits give way, the answers come, private chats do not wait", async () => {
  const fake = await open({ telegram: { groupPolicy: "open" } });
  const [group, alice] = [fake.supergroup(), fake.person("alice")];
  await on.polling();
  const texts = Array.from({ length: 6 }, (_, n) => `slowly ${n} ${"word ".repeat(60).trim()}`);
  for (const text of texts) alice.says(group, text);
  await on.answer(group);
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"], { withinMs: 5000 });
  await on.answered(
    group,
    texts.map((text) => `re: ${text}`),
    { withinMs: 80_000 },
  );
  expect(fake.violations).toEqual([]);
}, 120_000);

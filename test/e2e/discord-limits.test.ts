/** Discord's limits under load: they are kept before Discord has to say so, and one full channel delays no other. */
import { afterEach, expect, it } from "vitest";
import { until } from "../support/bus-fixture.js";
import { DiscordStage, type DiscordStageOptions } from "./support/discord.js";

let on: DiscordStage;
afterEach(() => on.close());

const SEND = "POST /channels/:channel/messages";

async function open(options: DiscordStageOptions = {}) {
  on = await DiscordStage.open({ ...options, discord: { groupPolicy: "open", ...options.discord } });
  return { fake: on.fake, home: on.fake.guild(), alice: on.fake.person("alice") };
}

it("thirty channels at once, streamed: all answered, no call refused", async () => {
  const { fake, home, alice } = await open({
    config: { gateway: { port: 0, leaseMs: 3000, drainMs: 3000, concurrency: 30 } },
  });
  const channels = Array.from({ length: 30 }, (_, n) => fake.text(home, `c${n}`));
  await on.connected();
  const text = `slowly ${"word ".repeat(20).trim()}`;
  for (const channel of channels) alice.says(channel, text);
  for (const channel of channels) await on.answered(channel, [`re: ${text}`], 50_000);
  expect(fake.buckets.violations).toEqual([]);
  expect(fake.buckets.refused).toEqual([]);
});

it("a burst in one channel waits for its bucket and delays no other", async () => {
  const { fake, home, alice } = await open({
    discord: { streaming: false },
    fake: { limits: { [SEND]: { count: 3, perMs: 4000 } } },
  });
  const [busy, quiet] = [fake.text(home, "busy"), fake.text(home, "quiet")];
  await on.connected();
  const texts = Array.from({ length: 8 }, (_, n) => `m${n}`);
  for (const text of texts) alice.says(busy, text);
  await fake.until(() => fake.answers(busy).length >= 3);
  alice.says(quiet, "hello");
  await on.answered(quiet, ["re: hello"], 3000);
  expect(fake.answers(busy).length).toBeLessThan(8);
  await on.answered(
    busy,
    texts.map((text) => `re: ${text}`),
    40_000,
  );
  expect(fake.buckets.violations).toEqual([]);
});

it("429 is obeyed to the millisecond and parks one channel only", async () => {
  const { fake, home, alice } = await open({ discord: { streaming: false } });
  const [busy, quiet] = [fake.text(home, "busy"), fake.text(home, "quiet")];
  await on.connected();
  fake.faults.next({ call: SEND, major: busy.id }, { kind: "limited", retryAfterMs: 2500 });
  alice.says(busy, "early");
  await fake.until(() => fake.journal.calls(SEND, busy.id).length === 1);
  alice.says(quiet, "hello");
  await on.answered(quiet, ["re: hello"], 2000);
  await on.answered(busy, ["re: early"]);
  const [first, second, ...more] = fake.journal.calls(SEND, busy.id);
  expect(more).toEqual([]);
  expect((second?.arrivedMs ?? 0) - (first?.arrivedMs ?? 0)).toBeGreaterThanOrEqual(2490);
  expect(fake.buckets.violations).toEqual([]);
});

it.each([
  ["a channel that denies writing", "send", 50013, /may not|permission/i],
  ["a channel that is hidden", "view", 50001, /may not|access|permission/i],
] as const)("%s: a dead letter that says why, others are answered", async (_, denial, code, why) => {
  const { fake, home, alice } = await open({ discord: { streaming: false } });
  const [closed, open_] = [fake.text(home, "closed"), fake.text(home, "open")];
  await on.connected();
  const release = on.stage.model.hold("shut");
  alice.says(closed, "shut");
  await fake.until(() => on.stage.model.asked("shut") === 1);
  closed.denied.add(denial);
  release();
  await fake.until(() => fake.journal.calls(SEND, closed.id).some((call) => call.code === code));
  alice.says(open_, "hello");
  await on.answered(open_, ["re: hello"]);
  expect(fake.journal.calls(SEND, closed.id).length).toBeLessThanOrEqual(2);
  const letters = await until(async () => {
    const found = await on.deadLetters();
    return found.length > 0 && found;
  });
  expect(letters).toMatchObject([{ channel: "discord", chatId: closed.id, text: "re: shut" }]);
  expect(letters[0]?.error).toMatch(why);
});

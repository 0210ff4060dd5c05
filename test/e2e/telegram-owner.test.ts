/** One process polls; it dies or goes, another takes over: each message one turn, each answer once, never two polls. */
import { afterEach, expect, it } from "vitest";
import { TelegramStage, type TelegramStageOptions } from "./support/telegram.js";

let on: TelegramStage;
afterEach(() => on.close());

async function open(options: TelegramStageOptions = {}) {
  on = await TelegramStage.open({ ...options, telegram: { streaming: false, ...options.telegram } });
  return { fake: on.fake, alice: on.fake.person("alice"), model: on.stage.model };
}

const answersTo = (texts: readonly string[]) => texts.map((text) => `re: ${text}`);

it("killed between the model's answer and its sending: sent once, by the next", async () => {
  const { alice, model } = await open();
  const gateway = await on.polling({ fault: "kill:settle.after" });
  alice.dm("hello");
  expect((await gateway.ended).signal).toBe("SIGKILL");
  expect(alice.chat.answers()).toEqual([]);
  await on.polling();
  await on.answered(alice.chat, ["re: hello"]);
  alice.dm("still there?");
  await on.answered(alice.chat, answersTo(["hello", "still there?"]));
  expect(model.asked("hello")).toBe(1);
});

it("killed after the sending and before its receipt: not sent again, and listed as unknown", async () => {
  const { alice } = await open();
  const gateway = await on.polling({ fault: "kill:deliver.sent" });
  alice.dm("hello");
  await gateway.ended;
  expect(alice.chat.answers()).toEqual(["re: hello"]);
  await on.polling();
  alice.dm("next");
  await on.answered(alice.chat, answersTo(["hello", "next"]));
  const [letter, ...more] = await on.deadLetters();
  expect([letter?.text, letter?.chatId, more]).toEqual(["re: hello", String(alice.id), []]);
  expect(letter?.error).toMatch(/unknown/);
});

it("killed before the message is stored: it comes again, and makes one turn", async () => {
  const { fake, alice, model } = await open();
  const gateway = await on.polling();
  await on.stage.redis.kill();
  const { updateId } = alice.dm("hello");
  await fake.until(() => fake.updates.isGiven(updateId));
  await gateway.kill();
  expect(fake.updates.isConfirmed(updateId)).toBe(false);
  await on.stage.redis.up();
  await on.polling();
  await on.answered(alice.chat, ["re: hello"]);
  await fake.until(() => fake.updates.isConfirmed(updateId));
  expect(model.asked("hello")).toBe(1);
});

it("killed while a file is still fetched: others were answered meanwhile, nothing is confirmed, it comes again", async () => {
  const { fake, alice, model } = await open();
  const bob = fake.person("bob");
  const gateway = await on.polling();
  const stopHolding = fake.faults.order("file", { kind: "hold", effect: "before" }, { times: Infinity });
  const { updateId } = alice.sends(alice.chat, {
    kind: "document",
    bytes: Buffer.from("some words"),
    name: "a.txt",
    caption: "read this",
  });
  await fake.until(() => fake.journal.calls("file").length === 1);
  const others = ["one", "two", "three"].map((text) => bob.dm(text).updateId);
  await on.answered(bob.chat, answersTo(["one", "two", "three"]));
  expect([updateId, ...others].map((id) => fake.updates.isConfirmed(id))).toEqual([false, false, false, false]);
  await on.delivered(gateway, 3);
  await gateway.kill();
  stopHolding();
  await on.polling();
  await on.answer(alice.chat, ({ text }) => text.includes("read this"));
  await fake.until(() => fake.updates.pending.length === 0);
  bob.dm("four");
  await on.answered(bob.chat, answersTo(["one", "two", "three", "four"]));
  expect([model.asked("read this"), alice.chat.answers().length]).toEqual([1, 1]);
});

it("killed as soon as the message is stored: it comes again, and makes one turn", async () => {
  const { fake, alice, model } = await open();
  const gateway = await on.polling({ fault: "kill:publish.stored" });
  const { updateId } = alice.dm("hello");
  await gateway.ended;
  expect(fake.updates.isConfirmed(updateId)).toBe(false);
  await on.polling();
  await on.answered(alice.chat, ["re: hello"]);
  await fake.until(() => fake.updates.isConfirmed(updateId));
  alice.dm("next");
  await on.answered(alice.chat, answersTo(["hello", "next"]));
  expect(model.asked("hello")).toBe(1);
});

it("two processes: one polls; it is killed, the other takes over; nothing is lost or doubled", async () => {
  const { fake, alice } = await open();
  const bob = fake.person("bob");
  const first = await on.polling();
  await on.gateway();
  alice.dm("one");
  bob.dm("uno");
  await on.answered(alice.chat, ["re: one"]);
  await on.answered(bob.chat, ["re: uno"]);
  await on.delivered(first, 2);
  await first.kill();
  for (const text of ["two", "three"]) alice.dm(text);
  bob.dm("dos");
  await on.answered(alice.chat, answersTo(["one", "two", "three"]));
  await on.answered(bob.chat, answersTo(["uno", "dos"]));
  expect(fake.journal.refused(409)).toEqual([]);
});

it("the owner is told to stop in the middle of a turn: the other takes over, the turn ends, nothing is answered twice", async () => {
  const { fake, alice, model } = await open();
  const first = await on.polling();
  await on.gateway();
  const release = model.hold("slow one");
  alice.dm("slow one");
  await fake.until(() => model.asked("slow one") === 1);
  const ended = first.stop();
  alice.dm("meanwhile");
  release();
  expect((await ended).code).toBe(0);
  await on.answered(alice.chat, answersTo(["slow one", "meanwhile"]));
  expect(fake.journal.refused(409)).toEqual([]);
  expect(model.asked("meanwhile")).toBe(1);
});

it("the owner is frozen past its lease and thawed: one poller in the end, each answered once", async () => {
  const { fake, alice } = await open();
  on.tolerated.add("chat_rate");
  const first = await on.polling();
  await on.gateway();
  alice.dm("one");
  await on.answered(alice.chat, ["re: one"]);
  await on.delivered(first, 1);
  first.freeze();
  alice.dm("two");
  await on.answered(alice.chat, answersTo(["one", "two"]));
  first.thaw();
  alice.dm("three");
  await on.answered(alice.chat, answersTo(["one", "two", "three"]));
  const before = fake.journal.refused(409).length;
  alice.dm("four");
  await on.answered(alice.chat, answersTo(["one", "two", "three", "four"]));
  expect(fake.journal.refused(409)).toHaveLength(before);
});

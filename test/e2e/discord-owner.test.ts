/** One process owns the bot; it dies or goes, another takes over: answers stand there once, nothing said meanwhile is lost. */
import { afterEach, expect, it } from "vitest";
import { DiscordStage, type DiscordStageOptions } from "./support/discord.js";

let on: DiscordStage;
afterEach(() => on.close());

const SEND = "POST /channels/:channel/messages";
const EDIT = "PATCH /channels/:channel/messages/:message";

async function open(options: DiscordStageOptions = {}) {
  on = await DiscordStage.open({ ...options, discord: { groupPolicy: "open", streaming: false, ...options.discord } });
  return { fake: on.fake, general: on.fake.text(on.fake.guild()), alice: on.fake.person("alice") };
}

const answersTo = (texts: readonly string[]) => texts.map((text) => `re: ${text}`);

it("killed between the model's answer and its sending: sent once, by the next", async () => {
  const { fake, alice } = await open();
  const gateway = await on.connected({ fault: "kill:settle.after" });
  alice.dm("hello");
  await gateway.ended;
  expect(fake.answers(alice.chat)).toEqual([]);
  await on.connected();
  await on.answered(alice.chat, ["re: hello"]);
  alice.dm("still there?");
  await on.answered(alice.chat, answersTo(["hello", "still there?"]));
  expect(on.stage.model.asked("hello")).toBe(1);
});

it("killed after the sending and before its receipt: sent again under the same nonce, seen once", async () => {
  const { fake, alice } = await open();
  const gateway = await on.connected({ fault: "kill:deliver.sent" });
  alice.dm("hello");
  await gateway.ended;
  expect(fake.answers(alice.chat)).toEqual(["re: hello"]);
  await on.connected();
  await fake.until(() => fake.journal.calls(SEND, alice.chat.id).length >= 2);
  alice.dm("next");
  await on.answered(alice.chat, answersTo(["hello", "next"]));
  const nonces = fake.journal.calls(SEND, alice.chat.id).map(({ body }) => (body as { nonce: unknown }).nonce);
  expect(nonces[1]).toBe(nonces[0]);
  expect(nonces[2]).not.toBe(nonces[0]);
});

it("killed while an answer is shown by edits: the next goes on in the same message", async () => {
  const { fake, alice } = await open({ discord: { streaming: true } });
  const gateway = await on.connected();
  const text = `slowly ${"word ".repeat(150).trim()}`;
  alice.dm(text);
  await fake.until(() => fake.journal.calls(EDIT, alice.chat.id).length >= 1);
  await gateway.kill();
  expect(fake.answers(alice.chat)).not.toEqual([`re: ${text}`]);
  await on.connected();
  await on.answered(alice.chat, [`re: ${text}`]);
});

it("a streamed answer, killed after its last edit and before its receipt: one message", async () => {
  const { alice } = await open({ discord: { streaming: true } });
  const gateway = await on.connected({ fault: "kill:deliver.sent" });
  const text = `slowly ${"word ".repeat(60).trim()}`;
  alice.dm(text);
  await gateway.ended;
  await on.connected();
  await on.answered(alice.chat, [`re: ${text}`]);
  alice.dm("next");
  await on.answered(alice.chat, answersTo([text, "next"]));
});

it.each([
  ["before", false],
  ["after", true],
])("the connection is cut %s a message was made: seen once", async (_, hasEffect) => {
  const { fake, alice } = await open();
  await on.connected();
  fake.faults.next({ call: SEND, major: alice.chat.id }, { kind: "reset", hasEffect });
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"]);
  alice.dm("next");
  await on.answered(alice.chat, answersTo(["hello", "next"]));
});

it("500 after the effect, 503 before it: seen once", async () => {
  const { fake, alice } = await open();
  await on.connected();
  fake.faults.next({ call: SEND }, { kind: "status", status: 500, hasEffect: true });
  fake.faults.next({ call: SEND }, { kind: "status", status: 503, hasEffect: false });
  alice.dm("hello");
  await on.answered(alice.chat, ["re: hello"]);
  alice.dm("next");
  await on.answered(alice.chat, answersTo(["hello", "next"]));
});

it("the owner is killed: the second process takes over and fetches what was said in between", async () => {
  const { fake, general, alice } = await open();
  const first = await on.connected();
  const second = await on.gateway();
  alice.dm("one");
  alice.says(general, "uno");
  await on.answered(alice.chat, ["re: one"]);
  await on.answered(general, ["re: uno"]);
  expect(fake.gateway.identifies).toHaveLength(1);
  await first.kill();
  for (const text of ["two", "three"]) alice.dm(text);
  alice.says(general, "dos");
  await on.answered(alice.chat, answersTo(["one", "two", "three"]));
  await on.answered(general, answersTo(["uno", "dos"]));
  expect(fake.gateway.identifies).toHaveLength(2);
  expect(second.log).not.toContain('"level":60');
});

it("the owner is told to stop: the second takes over at once; nobody is answered twice", async () => {
  const { fake, alice } = await open();
  const first = await on.connected();
  await on.gateway();
  const release = on.stage.model.hold("slow one");
  alice.dm("slow one");
  await fake.until(() => on.stage.model.asked("slow one") === 1);
  const ended = first.stop();
  alice.dm("meanwhile");
  release();
  expect((await ended).code).toBe(0);
  alice.dm("afterwards");
  await on.answered(alice.chat, answersTo(["slow one", "meanwhile", "afterwards"]));
});

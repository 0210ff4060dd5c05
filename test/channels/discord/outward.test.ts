/** What goes out through the real discord.js: pieces, files, buttons, edits, signs of work, and refusals by the real codes. */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DeliveryError, type DeliveryFailure } from "../../../src/channels/channel.js";
import { FakeDiscord } from "../../fakes/discord/fake-discord.js";
import type { Channel } from "../../fakes/discord/model.js";
import { answer, Harness, sendAll } from "./harness.js";

const POST = "POST /channels/:channel/messages";
const PATCH = "PATCH /channels/:channel/messages/:message";
const signal = new AbortController().signal;

let fake: FakeDiscord;
let harness: Harness;
let room: Channel;

beforeEach(async () => {
  fake = await FakeDiscord.start({ identifyEveryMs: 0 });
  room = fake.text(fake.guild());
  harness = await Harness.make(fake);
  await harness.start();
});

afterEach(async () => {
  await harness.close();
  expect(fake.buckets.violations).toEqual([]);
  await fake.close();
});

/** How a send of a one-part message fails. */
async function failureOf(place: Channel, content = "text", key = "k"): Promise<DeliveryFailure & { words: string }> {
  const message = answer(place, content);
  const [part] = harness.channel.parts(message);
  if (part === undefined) throw new Error("there is a part");
  try {
    await harness.channel.send({ message, part, key, signal });
  } catch (error) {
    if (error instanceof DeliveryError) return { ...error.failure, words: error.message };
    throw error;
  }
  throw new Error("it did not fail");
}

describe("sending", () => {
  it("repeated with the same key shows it once", async () => {
    fake.faults.next({ call: POST }, { kind: "reset", hasEffect: true });
    expect(await failureOf(room, "once")).toMatchObject({ kind: "transient", retryAfterMs: null });
    const message = answer(room, "once");
    const [part] = harness.channel.parts(message);
    if (part !== undefined) await harness.channel.send({ message, part, key: "k", signal });
    expect(fake.answers(room)).toEqual(["once"]);
  });

  it("puts files into messages of ten", async () => {
    const media = [];
    for (let n = 0; n < 12; n += 1) {
      await writeFile(path.join(harness.folder, `f${n}`), `file ${n}`);
      media.push({ path: `f${n}`, mime: "text/plain", name: `f${n}.txt`, bytes: 6 });
    }
    await sendAll(harness.channel, answer(room, "files", { media }));
    const shown = fake.visible(room);
    expect(shown.map(({ content, files }) => [content, files.length])).toEqual([
      ["files", 10],
      ["", 2],
    ]);
  });

  it("says a file that is not kept any more in words", async () => {
    const media = [{ path: "gone", mime: "text/plain", name: "gone.txt", bytes: 6 }];
    const message = answer(room, "see", { media });
    const [part] = harness.channel.parts(message);
    if (part === undefined) throw new Error("there is a part");
    const failed = await harness.channel.send({ message, part, key: "k", signal }).catch((error: unknown) => error);
    expect(failed).toMatchObject({ failure: { kind: "change", into: [{ files: [] }] } });
    expect(JSON.stringify(failed)).toContain("gone.txt");
  });

  it("obeys a wait of a channel exactly, and knows of it without asking again", async () => {
    fake.faults.next({ call: POST, major: room.id }, { kind: "limited", retryAfterMs: 1500 });
    const first = await failureOf(room);
    expect(first).toMatchObject({ kind: "transient" });
    if (first.kind === "transient") expect(first.retryAfterMs).toBeGreaterThanOrEqual(1400);
    const other = fake.text(fake.guild("other"), "other");
    await sendAll(harness.channel, answer(other, "elsewhere"));
    expect(fake.answers(other)).toEqual(["elsewhere"]);
  });

  it("stops by itself before a bucket is overdrawn", async () => {
    for (let n = 0; n < 5; n += 1) await sendAll(harness.channel, answer(room, `${n}`, { id: `m${n}` }));
    const failed = await failureOf(room, "one too many");
    expect(failed.kind).toBe("transient");
    expect(fake.buckets.refused).toEqual([]);
  });

  it("never makes more calls in a second than Discord takes, and leaves room for what matters", async () => {
    const rooms = Array.from({ length: 60 }, (_, n) => fake.text(fake.guild(`g${n}`), `r${n}`));
    const typing = { event: { type: "typing" } } as const;
    await Promise.all(
      rooms.map((each) =>
        harness.channel.live?.working("begin", answer(each, "", typing), new AbortController().signal),
      ),
    );
    const outcomes = await Promise.allSettled(rooms.map((each) => sendAll(harness.channel, answer(each, "hello"))));
    const sent = outcomes.filter(({ status }) => status === "fulfilled").length;
    expect(sent).toBeGreaterThan(10);
    expect(sent).toBeLessThan(50);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ failure: { kind: "transient" } });
    expect(fake.buckets.refused).toEqual([]);
  });
});

describe("a refusal", () => {
  it.each([
    ["send", 50013, "lacks a permission"],
    ["view", 50001, "may not see"],
  ] as const)("for %s is final and says what to do", async (denial, code, words) => {
    room.denied.add(denial);
    const failed = await failureOf(room);
    expect(failed).toMatchObject({ kind: "permanent" });
    expect(failed.words).toContain(words);
    expect(failed.words).toContain(String(code));
  });

  it("by a person who takes no messages is final", async () => {
    const ann = fake.person("ann");
    ann.user.refusesDms = true;
    expect(await failureOf(ann.chat)).toMatchObject({ kind: "permanent" });
  });

  it("of a thread that is gone sends it to the channel, and of a channel is final", async () => {
    const thread = fake.person("ann").startsThread(room, "plans");
    fake.world.removeChannel(thread);
    const failed = await failureOf(thread, "for all");
    if (failed.kind !== "change") throw new Error(`it is ${failed.kind}`);
    const [part] = failed.into;
    await harness.channel.send({ message: answer(thread, "for all"), part: part as never, key: "k2", signal });
    expect(fake.answers(room)).toEqual(["for all"]);
    fake.world.removeChannel(room);
    expect(await failureOf(room)).toMatchObject({ kind: "permanent" });
  });

  it("of a locked thread is final; an archived one wakes up", async () => {
    const thread = fake.person("ann").startsThread(room, "plans");
    fake.world.setArchived(thread, true);
    await sendAll(harness.channel, answer(thread, "awake"));
    expect(fake.answers(thread)).toEqual(["awake"]);
    fake.world.setArchived(thread, true, true);
    expect(await failureOf(thread)).toMatchObject({ kind: "permanent", words: expect.stringContaining("moderator") });
  });
});

describe("a stream", () => {
  it("is edited in place and can be taken away", async () => {
    const message = answer(room, "hel", { event: { type: "delta", streamId: "s", offset: 0 } });
    expect(harness.channel.live?.way(message)).toBe("edits");
    const [id = ""] = await sendAll(harness.channel, message);
    const final = answer(room, "hello **world**", { event: { type: "final", streamId: "s" } });
    const [part] = harness.channel.parts(final);
    if (part === undefined) throw new Error("there is a part");
    await harness.channel.live?.edit(id, { message: final, part, key: "k", signal });
    await harness.channel.live?.edit(id, { message: final, part, key: "k", signal });
    expect(fake.answers(room)).toEqual(["hello **world**"]);
    await harness.channel.live?.remove(id, final, signal);
    await harness.channel.live?.remove(id, final, signal);
    expect(fake.answers(room)).toEqual([]);
    const gone = harness.channel.live?.edit(id, { message: final, part, key: "k", signal });
    await expect(gone).rejects.toMatchObject({ failure: { kind: "permanent" } });
  });

  it("is tried again when Discord fails in an edit", async () => {
    const [id = ""] = await sendAll(harness.channel, answer(room, "a"));
    fake.faults.next({ call: PATCH }, { kind: "status", status: 502, hasEffect: true });
    const message = answer(room, "b");
    const [part] = harness.channel.parts(message);
    if (part === undefined) throw new Error("there is a part");
    const edited = harness.channel.live?.edit(id, { message, part, key: "k", signal });
    await expect(edited).rejects.toMatchObject({ failure: { kind: "transient" } });
  });

  it("shows typing and a reaction at the question, and takes it back", async () => {
    const asked = fake.person("ann").says(room, "hm?");
    const message = answer(room, "", { replyTo: asked.id, event: { type: "typing" } });
    await harness.channel.live?.working("begin", message, signal);
    expect(fake.visible(room).at(-1)?.reactions).toEqual(["👀"]);
    await harness.channel.live?.working("again", message, signal);
    expect(fake.journal.calls("POST /channels/:channel/typing")).toHaveLength(2);
    await fake.until(() => harness.channel.live?.working("end", message, signal) && true);
    await fake.until(() => fake.visible(room).at(-1)?.reactions.length === 0);
  });
});

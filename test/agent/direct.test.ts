/** Direct calls: with workers they wait for them, without any they carry their session themselves, together. */
import { afterEach, expect, it } from "vitest";
import type { DirectRequest } from "../../src/agent/direct.js";
import type { OutboundMessage } from "../../src/bus/messages.js";
import { historyFaults } from "../e2e/support/history.js";
import { inbound, sessionKey, until } from "../support/bus-fixture.js";
import type { Line } from "../support/line.js";
import { useLines } from "../support/lines.js";
import { Talker } from "../support/talker.js";

const here = useLines();
const calls: AbortController[] = [];
afterEach(() => {
  for (const call of calls.splice(0)) call.abort(new Error("the test has ended"));
});

/** A process without a worker; `talker` is its own, so that one sees who asked the model. */
async function caller(): Promise<{ line: Line; talker: Talker }> {
  const talker = new Talker();
  return { line: await here.start({ concurrency: 0, provider: talker }), talker };
}

function say(line: Line, content: string, options: Partial<DirectRequest> = {}) {
  const { signal } = new AbortController();
  const request = { sessionKey: sessionKey("cli:direct"), content, channel: "cli", signal, ...options };
  return line.parts.direct.process(request);
}

it("carries its session itself where no worker lives", async () => {
  const { line, talker } = await caller();
  expect(await say(line, "hello")).toMatchObject({ outcome: "completed", text: "re: hello" });
  expect(talker.asked).toEqual(["hello"]);
});

it("leaves the work to a worker where one lives", async () => {
  const { line, talker } = await caller();
  const worker = await here.start({ concurrency: 1 });
  const open = here.talker.hold("busy");
  const begun = here.talker.arrival("busy");
  await worker.accept(inbound("busy"));
  await begun;
  const answer = say(line, "hello");
  // However long the worker is busy: it lives.
  const { looks } = line.parts;
  await until(() => looks.count >= 3);
  open();
  expect(await answer).toMatchObject({ text: "re: hello" });
  expect(talker.asked).toEqual([]);
  expect(here.talker.asked).toEqual(["busy", "hello"]);
});

it("takes over when the only worker goes away", async () => {
  const { line, talker } = await caller();
  const worker = await here.start();
  here.talker.hold("hello");
  const begun = here.talker.arrival("hello");
  const answer = say(line, "hello");
  await begun;
  await worker.close();
  expect(await answer).toMatchObject({ outcome: "completed", text: "re: hello" });
  expect(talker.asked).toEqual(["hello"]);
});

it("gives each of twenty callers of one session, in four processes, its own answer", async () => {
  const callers = await Promise.all([caller(), caller(), caller(), caller()]);
  const texts = Array.from({ length: 20 }, (_, index) => `q${index + 1}.`);
  const answers = await Promise.all(
    texts.map((text, index) => {
      const one = callers[index % callers.length];
      if (one === undefined) throw new Error("no caller");
      return say(one.line, text);
    }),
  );
  expect(answers.map(({ text }) => text)).toEqual(texts.map((text) => `re: ${text}`));
  const rows = await callers[0]?.line.rows("cli:direct");
  expect(rows).toHaveLength(40);
  expect(historyFaults(rows as never)).toEqual([]);
});

it("leaves with its own answer, and the next caller carries on", async () => {
  const [first, second] = [await caller(), await caller()];
  const open = first.talker.hold("one");
  const begun = first.talker.arrival("one");
  const one = say(first.line, "one");
  await begun;
  const two = say(second.line, "two");
  await until(async () => (await first.line.bus.stack.upkeep.depths()).running === 1);
  open();
  expect((await one).text).toBe("re: one");
  expect((await two).text).toBe("re: two");
  expect(first.talker.asked).toEqual(["one"]);
  expect(second.talker.asked).toEqual(["two"]);
});

it("shows what happens on the way: pieces that make up the answer", async () => {
  const { line } = await caller();
  const events: OutboundMessage[] = [];
  const result = await say(line, "hello", { onEvent: (message) => events.push(message) });
  await until(() => events.some(({ event }) => event.type === "turn_end"));
  const deltas = events.filter(({ event }) => event.type === "delta").map(({ content }) => content);
  expect(deltas.join("")).toBe(result.text);
});

it("ends the waiting, and not the turn, when its signal aborts", async () => {
  const { line } = await caller();
  await here.start();
  const open = here.talker.hold("hello");
  const begun = here.talker.arrival("hello");
  const call = new AbortController();
  const answer = say(line, "hello", { signal: call.signal });
  await begun;
  call.abort(new Error("no time"));
  await expect(answer).rejects.toThrow("no time");
  open();
  await until(async () => (await line.rows("cli:direct")).some(({ role }) => role === "assistant"));
  await expect(say(line, "x", { signal: AbortSignal.abort(new Error("never")) })).rejects.toThrow("never");
  expect(here.talker.asked).toEqual(["hello"]);
});

it("stops what it runs itself when another call says so", async () => {
  const [first, second] = [await caller(), await caller()];
  first.talker.hold("long");
  const begun = first.talker.arrival("long");
  const answer = say(first.line, "long");
  await begun;
  expect(await say(second.line, "/stop")).toMatchObject({ outcome: "completed", text: "Stopped 1 message." });
  expect(await answer).toMatchObject({ outcome: "stopped" });
});

it("finds the stored result when its announcement was lost", async () => {
  const { line } = await caller();
  await here.start();
  const open = here.talker.hold("hello");
  const begun = here.talker.arrival("hello");
  const answer = say(line, "hello");
  await begun;
  const admin = here.redis.client();
  // Every subscription is cut again and again until the result stands, so that nobody hears of it.
  const isOver = { now: false };
  void answer.then(() => {
    isOver.now = true;
  });
  open();
  while (!isOver.now) await admin.call("CLIENT", "KILL", "TYPE", "pubsub");
  admin.disconnect();
  expect((await answer).text).toBe("re: hello");
});

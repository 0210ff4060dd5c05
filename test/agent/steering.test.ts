/** Messages that come while a turn runs: taken in at safe points within limits, answered once, whatever they race with. */
import { expect, it } from "vitest";
import { type InboundMessage, inboundKeyOf } from "../../src/bus/messages.js";
import { historyFaults } from "../e2e/support/history.js";
import { eventsRoute, inbound, sessionKey } from "../support/bus-fixture.js";
import type { Line } from "../support/line.js";
import { useLines } from "../support/lines.js";

const here = useLines();

const message = (chat: string, id: string, content = id): InboundMessage =>
  inbound(content, { id, route: eventsRoute(chat) });

async function send(line: Line, chat: string, id: string, content = id): Promise<string> {
  const sent = message(chat, id, content);
  await line.accept(sent);
  return inboundKeyOf(sent);
}

/** What a chat saw: answers, and each end of a turn as its message ids. */
async function story(line: Line, chat: string): Promise<string[]> {
  const said = await line.said(chat);
  return said.flatMap(({ event, content }) => {
    if (event.type === "final" || event.type === "notice") return [content];
    return event.type === "turn_end" ? [`end ${event.outcome}: ${event.messageIds.join(" ")}`] : [];
  });
}

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

it("takes a message in after a batch of tools, so that the model sees it before it goes on", async () => {
  const line = await here.start({ tools: () => [] });
  const open = here.talker.hold("call");
  const begun = here.talker.arrival("call");
  await send(line, "c", "m1", 'call nothing {"a":1}');
  await begun;
  const last = await send(line, "c", "m2", "and this");
  open();
  await line.result(last);
  expect(await story(line, "c")).toEqual(["re: and this", "end completed: m1 m2"]);
  const [, second] = here.talker.requests;
  expect(second?.messages.slice(-3).map(({ role }) => role)).toEqual(["assistant", "tool", "user"]);
});

it("delivers the answer that was ready, then answers what came meanwhile in the same turn", async () => {
  const line = await here.start();
  const open = here.talker.hold("m1");
  const begun = here.talker.arrival("m1");
  const first = await send(line, "c", "m1");
  await begun;
  const second = await send(line, "c", "m2");
  open();
  expect(await line.result(second)).toMatchObject({ text: "re: m2" });
  expect(await line.result(first)).toMatchObject({ text: "re: m1" });
  expect(await story(line, "c")).toEqual(["re: m1", "re: m2", "end completed: m1 m2"]);
});

it("takes in three at once and five times a turn; the next turn goes on", async () => {
  const line = await here.start();
  const open = here.talker.hold("m01");
  const begun = here.talker.arrival("m01");
  const ids = Array.from({ length: 22 }, (_, index) => `m${String(index + 1).padStart(2, "0")}`);
  const keys = [await send(line, "c", ids[0] ?? "")];
  await begun;
  for (const id of ids.slice(1)) keys.push(await send(line, "c", id));
  open();
  for (const key of keys) await line.result(key);
  const ends = (await story(line, "c")).filter((line) => line.startsWith("end"));
  expect(ends).toEqual([`end completed: ${ids.slice(0, 16).join(" ")}`, `end completed: ${ids.slice(16).join(" ")}`]);
  expect(here.talker.asked[1]).toBe("m02\n\nm03\n\nm04");
});

it("loses none and answers none twice when messages race with the end of a turn", async () => {
  const door = await here.start({ concurrency: 0 });
  const workers = [await here.start(), await here.start()];
  for (let round = 0; round < 60; round += 1) {
    const chat = `r${round}`;
    const keys = [await send(door, chat, "m1")];
    for (const id of ["m2", "m3"]) {
      for (let wait = 0; wait < round * 2; wait += 1) await tick();
      keys.push(await send(door, chat, id));
    }
    for (const key of keys) expect(await door.result(key)).toMatchObject({ outcome: "completed" });
    const told = await story(door, chat);
    const ended = told
      .filter((each) => each.startsWith("end"))
      .flatMap((each) => each.split(": ")[1]?.split(" ") ?? []);
    expect(ended).toEqual(["m1", "m2", "m3"]);
    const answers = told.filter((each) => each.startsWith("re: ")).flatMap((each) => each.slice(4).split("\n\n"));
    expect(answers).toEqual(["m1", "m2", "m3"]);
    expect(historyFaults((await workers[0]?.rows(`web:${chat}`)) as never)).toEqual([]);
  }
});

it("keeps routes of one session apart: the other chat's message has its own turn and its answer goes there", async () => {
  const line = await here.start();
  const open = here.talker.hold("m1");
  const begun = here.talker.arrival("m1");
  const shared = { sessionKeyOverride: sessionKey("unified:default") };
  const ids: Array<[string, string]> = [
    ["m1", "a"],
    ["m2", "b"],
    ["m3", "a"],
    ["m4", "b"],
  ];
  const sent = ids.map(([id, chat]) => ({ ...message(chat, id), ...shared }));
  for (const each of sent) {
    await line.accept(each);
    await begun;
  }
  open();
  for (const each of sent) await line.result(inboundKeyOf(each));
  expect(await story(line, "a")).toEqual(["re: m1", "re: m3", "end completed: m1 m3"]);
  expect(await story(line, "b")).toEqual(["re: m2", "re: m4", "end completed: m2 m4"]);
});

it("joins fragments said in one breath into one turn, in any queue mode, each chat of a session apart", async () => {
  for (const queueMode of ["steer", "followup"] as const) {
    const door = await here.start({ concurrency: 0, debounceMs: 300 });
    await here.start({ queueMode });
    const shared = { sessionKeyOverride: sessionKey(`unified:${queueMode}`) };
    const said = [
      ["one", "a"],
      ["uno", "b"],
      ["two", "a"],
      ["due", "b"],
      ["three", "a"],
    ] as const;
    const sent = said.map(([text, chat]) => ({ ...message(`${chat}-${queueMode}`, text), ...shared }));
    for (const each of sent) await door.accept(each);
    for (const each of sent) expect((await door.result(inboundKeyOf(each))).outcome).toBe("completed");
    expect(await story(door, `a-${queueMode}`)).toEqual(["re: one\n\ntwo\n\nthree", "end completed: one two three"]);
    expect(await story(door, `b-${queueMode}`)).toEqual(["re: uno\n\ndue", "end completed: uno due"]);
  }
});

it("slides the wait for fragments five times its length at most, and makes a new turn of what comes later", async () => {
  const door = await here.start({ concurrency: 0, debounceMs: 250 });
  await here.start();
  const isOver = { now: false };
  void door.result(await send(door, "c", "m0")).then(() => {
    isOver.now = true;
  });
  // Somebody who never pauses: an answer must come all the same.
  const began = performance.now();
  let count = 1;
  while (!isOver.now && performance.now() - began < 6000) {
    await send(door, "c", `m${count}`);
    count += 1;
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  expect(isOver.now).toBe(true);
  const last = await send(door, "c", "last");
  expect((await door.result(last)).outcome).toBe("completed");
  const ended = (await story(door, "c")).filter((each) => each.startsWith("end"));
  const ids = [...Array.from({ length: count }, (_, index) => `m${index}`), "last"];
  expect(ended.flatMap((each) => each.split(" ").slice(2))).toEqual(ids);
});

it("does not let a command or a call wait for fragments", async () => {
  const door = await here.start({ concurrency: 0, debounceMs: 60_000 });
  await here.start();
  const first = await send(door, "c", "one");
  const second = await send(door, "c", "two");
  const stop = await door.accept(message("c", "s", "/stop"));
  expect(stop).toMatchObject({ text: "Stopped 2 messages." });
  expect([await door.result(first), await door.result(second)].map(({ outcome }) => outcome)).toEqual([
    "stopped",
    "stopped",
  ]);
  expect(here.talker.asked).toEqual([]);
});

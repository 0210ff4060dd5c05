/** `/stop` against everything it may race with: a message is stopped or answered, never both, never neither. */
import { expect, it } from "vitest";
import { type InboundMessage, inboundKeyOf, type OutboundMessage } from "../../src/bus/messages.js";
import { historyFaults } from "../e2e/support/history.js";
import { eventsRoute, inbound } from "../support/bus-fixture.js";
import type { Line } from "../support/line.js";
import { useLines } from "../support/lines.js";

const here = useLines();

const message = (chat: string, id: string): InboundMessage => inbound(id, { id, route: eventsRoute(chat) });

async function send(line: Line, chat: string, id: string): Promise<string> {
  const sent = message(chat, id);
  await line.accept(sent);
  return inboundKeyOf(sent);
}

/** Says `/stop` in a chat; how many it says it stopped. */
async function stop(line: Line, chat: string): Promise<number> {
  const taken = await line.accept(inbound("/stop", { route: eventsRoute(chat) }));
  if (taken.status !== "command") throw new Error("not a command");
  return Number(/\d+/.exec(taken.text)?.[0] ?? 0);
}

/** Streams of a chat that were begun and not closed exactly once before the turn ended. */
function streamFaults(said: readonly OutboundMessage[]): string[] {
  const open = new Map<string, string>();
  const faults: string[] = [];
  for (const { event, turnId } of said) {
    const stream = "streamId" in event ? event.streamId : null;
    if (event.type === "delta") open.set(event.streamId, turnId);
    else if (event.type === "turn_end") {
      for (const [id, turn] of open) if (turn === turnId) faults.push(`${id} is open at the end of its turn`);
    } else if (stream !== null && !open.delete(stream)) faults.push(`${stream} was closed twice, or never begun`);
  }
  return faults;
}

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));
const typesIn = (said: readonly OutboundMessage[], type: string) => said.filter(({ event }) => event.type === type);

it("stops or loses the race with settle: told the truth, once, and the session goes on", async () => {
  const door = await here.start({ concurrency: 0 });
  await here.start();
  const seen = new Set<string>();
  for (let round = 0; round < 90; round += 1) {
    const chat = `r${round}`;
    const key = await send(door, chat, "m1");
    for (let wait = 0; wait < round; wait += 1) await tick();
    // The last rounds are surely too late.
    if (round >= 85) await door.result(key);
    const count = await stop(door, chat);
    const { outcome } = await door.result(key);
    expect(outcome).toBe(count === 1 ? "stopped" : "completed");
    seen.add(outcome);
    const next = await door.result(await send(door, chat, "m2"));
    expect(next).toMatchObject({ outcome: "completed", text: "re: m2" });
    const said = await door.said(chat);
    expect(typesIn(said, "turn_end").map(({ event }) => event.type === "turn_end" && event.outcome)).toEqual(
      count === 1 ? expect.arrayContaining(["stopped", "completed"]) : ["completed", "completed", "completed"],
    );
    expect(typesIn(said, "final")).toHaveLength(count === 1 ? 1 : 2);
    expect(streamFaults(said)).toEqual([]);
    expect(historyFaults((await door.rows(`web:${chat}`)) as never)).toEqual([]);
  }
  expect(seen).toEqual(new Set(["stopped", "completed"]));
});

it("counts what it stops when steered messages race with it too", async () => {
  const door = await here.start({ concurrency: 0 });
  await here.start();
  for (let round = 0; round < 60; round += 1) {
    const chat = `r${round}`;
    const keys = [];
    for (const id of ["m1", "m2", "m3"]) {
      keys.push(await send(door, chat, id));
      for (let wait = 0; wait < round / 2; wait += 1) await tick();
    }
    const count = await stop(door, chat);
    const results = await Promise.all(keys.map((key) => door.result(key)));
    expect(results.filter(({ outcome }) => outcome === "stopped")).toHaveLength(count);
    await door.result(await send(door, chat, "m4"));
    const said = await door.said(chat);
    const ended = typesIn(said, "turn_end").flatMap(({ event }) => (event.type === "turn_end" ? event.messageIds : []));
    expect(ended.filter((id) => /^m\d$/.test(id)).sort()).toEqual(["m1", "m2", "m3", "m4"]);
    expect(streamFaults(said)).toEqual([]);
    expect(historyFaults((await door.rows(`web:${chat}`)) as never)).toEqual([]);
  }
});

it("aborts the model call of a steered message although the first one has been answered", async () => {
  const door = await here.start({ concurrency: 0 });
  await here.start();
  const open = here.talker.hold("m1");
  const begun = here.talker.arrival("m1");
  here.talker.hold("m2");
  const steered = here.talker.arrival("m2");
  const first = await send(door, "c", "m1");
  await begun;
  const second = await send(door, "c", "m2");
  open();
  await steered;
  const before = performance.now();
  expect(await stop(door, "c")).toBe(1);
  const result = await door.result(second);
  expect(performance.now() - before).toBeLessThan(1000);
  expect(result.outcome).toBe("stopped");
  expect(result.text).not.toContain("m1");
  expect(await door.result(first)).toMatchObject({ outcome: "completed", text: "re: m1" });
  expect(here.talker.aborted).toEqual(["m2"]);
  expect(streamFaults(await door.said("c"))).toEqual([]);
  expect(historyFaults((await door.rows("web:c")) as never)).toEqual([]);
});

it("hears of a stop that came between taking the session and beginning the turn, though the hint was lost", async () => {
  const door = await here.start({ concurrency: 0 });
  const counts: number[] = [];
  await here.start({
    hears: false,
    onOpen: async () => {
      if (counts.length === 0) counts.push(await stop(door, "c"));
    },
  });
  here.talker.hold("m1");
  expect(await door.result(await send(door, "c", "m1"))).toMatchObject({ outcome: "stopped" });
  expect(counts).toEqual([1]);
  expect(here.talker.asked).toEqual([]);
});

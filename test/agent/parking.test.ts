/** Turns that wait for another session: parked without a slot and without a try, whatever happens meanwhile. */
import { expect, it } from "vitest";
import { z } from "zod";
import type { Provider } from "../../src/agent/providers/provider.js";
import type { Tool } from "../../src/agent/tools/tool.js";
import { inboundKeyOf, routeKeyOf, type SessionKey } from "../../src/bus/messages.js";
import { eventsRoute, inbound, sessionKey, until } from "../support/bus-fixture.js";
import { asking, childMessage, childTool } from "../support/child-tool.js";
import type { Line, LineOptions } from "../support/line.js";
import { useLines } from "../support/lines.js";

const here = useLines();

/** A line whose model can ask other sessions. */
async function start(options: Partial<LineOptions> = {}): Promise<Line> {
  const late: { line: Line | null } = { line: null };
  const accept: Line["accept"] = (message) => {
    if (late.line === null) throw new Error("no line yet");
    return late.line.accept(message);
  };
  const line = await here.start({ tools: () => [childTool(accept)], concurrency: 1, ...options });
  late.line = line;
  return line;
}

const message = (chat: string, content: string, id = chat) => inbound(content, { id, route: eventsRoute(chat) });

/** Sends a message and returns its inbound key. */
async function send(line: Line, chat: string, content: string, id?: string): Promise<string> {
  const sent = message(chat, content, id);
  await line.accept(sent);
  return inboundKeyOf(sent);
}

async function parked(line: Line, count = 1): Promise<void> {
  await until(async () => (await line.bus.stack.upkeep.depths()).parked === count);
}

const stop = (line: Line, key: SessionKey, chat: string) =>
  line.bus.bus.stop({ key, inboundKey: null, route: routeKeyOf(eventsRoute(chat)) });

it("parents do not starve their children with one slot, three generations deep", async () => {
  // A slot that was kept would come free only after a minute.
  const line = await start({ maxTurns: 1, leaseMs: 60_000 });
  const innermost = asking("sub:b", "c", "hello");
  const middle = asking("sub:a", "b", innermost);
  const keys = [];
  for (const chat of ["p1", "p2", "p3"]) keys.push(await send(line, chat, asking(`web:${chat}`, "a", middle)));
  for (const key of keys) {
    expect(await line.result(key)).toMatchObject({ outcome: "completed", text: "used: used: used: re: hello" });
  }
  expect(here.talker.peak).toBe(1);
  const depths = await line.bus.stack.upkeep.depths();
  expect(depths).toMatchObject({ parked: 0, running: 0, scheduled: 0, waitingForSlot: 0 });
});

it("waits for every call of a batch, in whatever order the answers come", async () => {
  const line = await start({ concurrency: 4 });
  const first = here.talker.hold(/^slow$/);
  const key = await send(line, "two", [asking("web:two", "x", "slow"), asking("web:two", "y", "quick")].join("\n"));
  await until(async () => (await line.rows("web:two")).some((row) => row.content === "re: quick"));
  await parked(line);
  expect(await line.bus.stack.results.get(key)).toBeNull();
  first();
  expect(await line.result(key)).toMatchObject({ text: "used: re: slow | re: quick" });
  const asked = here.talker.requests.filter(({ messages }) => messages.some((row) => row.role === "tool"));
  expect(asked).toHaveLength(1);
});

it("goes on at once when the answer was there before it began to wait", async () => {
  const late: { line: Line | null } = { line: null };
  const instant: Tool<unknown> = {
    name: "ask",
    description: "is answered before it returns",
    input: z.object({}),
    isReadOnly: false,
    run: async (_input, { callId }) => {
      await late.line?.bus.bus.unpark(sessionKey("web:early"), callId, "early bird");
      return { type: "wait", waitId: callId, untilMs: Date.now() + 60_000 };
    },
  };
  late.line = await here.start({ tools: () => [instant] });
  const key = await send(late.line, "early", "call ask {}");
  expect(await late.line.result(key)).toMatchObject({ outcome: "completed", text: "used: early bird" });
});

it("goes on without the answer when its time has passed", async () => {
  const line = await start();
  const key = await send(line, "late", asking("web:late", "x", "never", { waitMs: 150, isAlone: true }));
  expect(await line.result(key)).toMatchObject({ outcome: "completed", text: "used: No answer came in time." });
});

it("is taken up by another worker when its own is gone", async () => {
  const first = await start();
  const key = await send(first, "gone", asking("web:gone", "x", "hello", { isAlone: true }));
  await parked(first);
  await first.leave();
  const second = await start();
  await second.accept(childMessage("x", "hello", { key: "web:gone", waitId: "web:gone:c1_0" }));
  expect(await second.result(key)).toMatchObject({ text: "used: re: hello" });
  expect((await second.rows("web:gone")).filter((row) => row.role === "tool")).toHaveLength(1);
});

/** Asks another session once more after each answer, five times, then says how many answers there were. */
const insisting: Provider = {
  name: "insisting",
  async *stream({ messages }) {
    const isChild = messages.some((row) => row.role === "user" && row.content === "hi");
    const answers = messages.filter((row) => row.role === "tool").length;
    const args = JSON.stringify({ from: "web:often", child: `x${answers}`, text: "hi" });
    if (isChild) yield { type: "text", text: "yes" };
    else if (answers === 5) yield { type: "text", text: "five answers" };
    else yield { type: "tool_call", call: { id: `c${answers}`, name: "ask", arguments: args } };
    yield { type: "finish", reason: isChild || answers === 5 ? "stop" : "tool_calls", usage: null };
  },
};

it("costs no try, though it waits more often than a message has tries", async () => {
  const line = await start({ provider: insisting });
  const key = await send(line, "often", "begin");
  expect(await line.result(key)).toMatchObject({ outcome: "completed", text: "five answers" });
});

it("keeps its place: the answer comes before that of a message sent meanwhile", async () => {
  const line = await start();
  const open = here.talker.hold(/^deep$/);
  await send(line, "chain", asking("web:chain", "n1", asking("sub:n1", "n2", "deep")), "c1");
  await parked(line, 2);
  const after = await send(line, "chain", "next", "c2");
  open();
  await line.result(after);
  const said = (await line.said("chain")).filter(({ event }) => event.type === "final");
  expect(said.map(({ content }) => content)).toEqual(["used: used: re: deep", "re: next"]);
});

it("can be stopped while it waits; a late answer disturbs nothing", async () => {
  const line = await start({ concurrency: 2 });
  const open = here.talker.hold(/^slow$/);
  const arrived = here.talker.arrival(/^slow$/);
  const key = await send(line, "st", asking("web:st", "x", "slow"));
  await arrived;
  await parked(line);
  expect(await stop(line, sessionKey("web:st"), "st")).toBe(1);
  expect(await line.result(key)).toMatchObject({ outcome: "stopped" });
  open();
  await until(async () => (await line.bus.stack.upkeep.depths()).running === 0);
  const next = await send(line, "st", "next", "st2");
  expect(await line.result(next)).toMatchObject({ outcome: "completed", text: "re: next" });
  const rows = await line.rows("web:st");
  expect(rows.filter((row) => row.role === "tool").map((row) => row.content)).toEqual([
    "Stopped by the user before a result was known.",
  ]);
});

it("is told when its child was stopped, before or after the child began", async () => {
  const line = await start({ concurrency: 2 });
  const hold = here.talker.hold(/^(begun|other)$/);
  const [begun, other] = [here.talker.arrival(/^begun$/), here.talker.arrival(/^other$/)];
  const first = await send(line, "cs1", asking("web:cs1", "k1", "begun"));
  await begun;
  await parked(line);
  expect(await line.bus.bus.stop({ key: sessionKey("sub:k1"), inboundKey: null, route: "*" })).toBe(1);
  expect(await line.result(first)).toMatchObject({ text: "used: re: \n\n[Stopped by the user.]" });
  // The second child waits behind a message of its own session.
  await line.accept(inbound("other", { route: eventsRoute("busy"), sessionKeyOverride: sessionKey("sub:k2") }));
  await other;
  const second = await send(line, "cs2", asking("web:cs2", "k2", "waits"));
  await parked(line);
  expect(await line.bus.bus.stop({ key: sessionKey("sub:k2"), inboundKey: null, route: "*" })).toBe(2);
  expect(await line.result(second)).toMatchObject({ text: "used: Stopped." });
  hold();
});

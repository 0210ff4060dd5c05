/** RESTORE: from every place where a holder may have died, another one goes on, and nothing is made or run twice. */
import { describe, expect, it } from "vitest";
import { type InboundMessage, inboundKeyOf, routeKeyOf } from "../../src/bus/messages.js";
import type { Row } from "../../src/session/row.js";
import { type AgentFixture, brief, briefRows } from "../support/agent-fixture.js";
import { eventsRoute, inbound } from "../support/bus-fixture.js";
import { turnOf } from "../support/turn-row-builders.js";
import { type ScriptedProvider, scripted, text } from "./scripted-provider.js";
import { agentStage, noteTool } from "./stage.js";

const stage = agentStage();
const say = (content: string, id: string, chat = "c") => inbound(content, { id, route: eventsRoute(chat) });
const one = say("one", "m1");
const two = say("two", "m2");
const turn = turnOf(one);

/** A holder has died with these rows; another one, with this model, goes on until the session sleeps. */
async function resume(rows: readonly Row[], provider: ScriptedProvider, messages: InboundMessage[] = [one]) {
  const ran: string[] = [];
  const agent = await stage.open(provider, { tools: noteTool(ran) });
  for (const message of messages) await agent.accept(message);
  await agent.leave(one, { rows });
  await agent.work(one);
  return { agent, ran, said: brief(await agent.said("c")), rows: briefRows(await agent.rows(one)) };
}

const lastAsked = (provider: ScriptedProvider) => provider.requests.at(-1)?.messages.slice(1) ?? [];
const isEnd = (line: string) => line.startsWith("turn_end");

async function settled(agent: AgentFixture, message: InboundMessage) {
  return (await agent.result(inboundKeyOf(message)))?.text;
}

describe("a turn that died", () => {
  it("before its first row begins anew", async () => {
    const { said, rows } = await resume([], scripted(text("hello")));
    expect(rows).toEqual(["user one", "final hello"]);
    expect(said).toEqual(["delta hello", "final hello", "turn_end completed"]);
  });

  it("after the user row asks the model, and stores the message once", async () => {
    const { rows, said } = await resume([turn.user(one)], scripted(text("hello")));
    expect(rows).toEqual(["user one", "final hello"]);
    expect(said.filter(isEnd)).toHaveLength(1);
  });

  it("with no call answered closes them all as interrupted and goes on", async () => {
    const provider = scripted(text("so"));
    const { rows, ran } = await resume([turn.user(one), turn.calls(1, "a", "b")], provider);
    expect(ran).toEqual([]);
    expect(rows).toEqual(["user one", "calls a b", "tool a", "tool b", "final so"]);
    const results = lastAsked(provider).filter((row) => row.role === "tool");
    expect(results.map(({ content }) => content.includes("unknown"))).toEqual([true, true]);
  });

  it("with one call answered closes the other only", async () => {
    const provider = scripted(text("so"));
    const { rows, ran } = await resume([turn.user(one), turn.calls(1, "a", "b"), turn.result(1, "a")], provider);
    expect(ran).toEqual([]);
    expect(rows).toEqual(["user one", "calls a b", "tool a", "tool b", "final so"]);
    expect(lastAsked(provider)[2]).toMatchObject({ toolCallId: "a", content: "result of a" });
  });

  it("with every call answered asks the model for the next step, under the next number", async () => {
    const { agent, ran } = await resume(
      [turn.user(one), turn.calls(1, "a"), turn.result(1, "a")],
      scripted(text("so")),
    );
    expect(ran).toEqual([]);
    expect((await agent.rows(one)).at(-1)).toMatchObject({ step: 2, outbound_id: `${turn.turnId}.2` });
  });

  it("after its final is settled from the file; no model is asked", async () => {
    const provider = scripted();
    const { agent, said, rows } = await resume([turn.user(one), turn.final(1, "stored")], provider);
    expect(provider.requests).toEqual([]);
    expect(said).toEqual(["final stored", "turn_end completed"]);
    expect(rows).toEqual(["user one", "final stored"]);
    expect((await agent.said("c"))[0]?.id).toBe(`${turn.turnId}.1`);
    expect(await settled(agent, one)).toBe("stored");
  });

  it.each([
    ["failed", "[No answer", ["notice", "turn_end failed"], "Sorry"],
    ["stopped", "half\n\n[Stopped by the user.]", ["turn_end stopped"], "half"],
  ] as const)("after it had %s tells so, once", async (outcome, stored, events, result) => {
    const provider = scripted();
    const { agent, said } = await resume([turn.user(one), turn.final(1, stored, outcome)], provider);
    expect(provider.requests).toEqual([]);
    expect(said.map((line) => (line.startsWith("notice") ? "notice" : line))).toEqual(events);
    expect(await settled(agent, one)).toMatch(new RegExp(`^${result}`));
    expect(await settled(agent, one)).not.toContain("[Stopped");
  });
});

describe("a turn that had taken messages in", () => {
  const steered = [turn.user(one), turn.final(1, "first"), turn.user(two)];

  it("sends the answer it had given before, then goes on, and ends once for both", async () => {
    const { agent, said } = await resume(steered, scripted(text("second")), [one, two]);
    expect(said).toEqual(["final first", "delta second", "final second", "turn_end completed"]);
    expect((await agent.said("c")).at(-1)?.event).toMatchObject({ messageIds: ["m1", "m2"] });
    expect([await settled(agent, one), await settled(agent, two)]).toEqual(["first", "second"]);
  });

  it("with both answers stored sends both and asks no model", async () => {
    const provider = scripted();
    const { agent, said } = await resume([...steered, turn.final(2, "second")], provider, [one, two]);
    expect(provider.requests).toEqual([]);
    expect(said).toEqual(["final first", "final second", "turn_end completed"]);
    expect([await settled(agent, one), await settled(agent, two)]).toEqual(["first", "second"]);
  });

  it("after tools answers them together", async () => {
    const rows = [turn.user(one), turn.calls(1, "a"), turn.result(1, "a"), turn.user(two)];
    const { agent, said } = await resume(rows, scripted(text("both")), [one, two]);
    expect(said.filter(isEnd)).toHaveLength(1);
    expect([await settled(agent, one), await settled(agent, two)]).toEqual(["both", "both"]);
  });

  it("before the taken message was stored: each has its own end", async () => {
    const { agent, said, rows } = await resume(steered.slice(0, 2), scripted(text("second")), [one, two]);
    expect(rows).toEqual(["user one", "final first", "user two", "final second"]);
    expect(said.filter(isEnd)).toHaveLength(2);
    expect([await settled(agent, one), await settled(agent, two)]).toEqual(["first", "second"]);
  });
});

describe("other turns", () => {
  const former = turnOf(say("earlier", "m0"));

  it("an unfinished one of another message is closed before the next begins", async () => {
    const provider = scripted(text("hello"));
    const { rows } = await resume([former.user(say("earlier", "m0")), former.calls(1, "x")], provider);
    expect(rows).toEqual([
      "user earlier",
      "calls x",
      "tool x",
      "assistant [This turn was interrupted before it was answered.]",
      "user one",
      "final hello",
    ]);
  });

  it("imported history without turn ids is left alone", async () => {
    const imported: Row[] = [
      { role: "user", content: "old" },
      { role: "assistant", content: "answer of old" },
    ];
    const { rows } = await resume(imported, scripted(text("hello")));
    expect(rows).toEqual(["user old", "assistant answer of old", "user one", "final hello"]);
  });

  it("an import that ends unanswered is closed, so that roles alternate", async () => {
    const { rows } = await resume([{ role: "user", content: "old" }], scripted(text("hello")));
    expect(rows.slice(1)).toEqual([
      "assistant [This turn was interrupted before it was answered.]",
      "user one",
      "final hello",
    ]);
  });

  it("a message whose answer stands in an older turn is settled from there, and what followed stays", async () => {
    const provider = scripted();
    const rows = [turn.user(one), turn.final(1, "stored"), former.user(say("earlier", "m0")), former.final(1, "x")];
    const { said, rows: after } = await resume(rows, provider);
    expect(said).toEqual(["final stored", "turn_end completed"]);
    expect(after).toEqual(["user one", "final stored", "user earlier", "final x"]);
  });

  it("a message that others overtook unanswered is said again, and is what the model answers", async () => {
    const provider = scripted(text("now"));
    const rows = [turn.user(one), former.user(say("earlier", "m0")), former.final(1, "x")];
    const { rows: after, agent } = await resume(rows, provider);
    expect(after).toEqual(["user one", "user earlier", "final x", "user one", "final now"]);
    expect(lastAsked(provider).at(-1)).toEqual({ role: "user", content: "one" });
    expect((await agent.said("c")).at(-1)?.event).toMatchObject({ messageIds: ["m1"] });
  });
});

describe("streams of a dead holder", () => {
  const stream = { streamId: `${turn.turnId}.1.old`, turnId: turn.turnId, text: "hel" };

  async function withStream(rows: Row[], provider: ScriptedProvider) {
    const agent = await stage.open(provider);
    await agent.accept(one);
    await agent.leave(one, { rows, stream });
    await agent.work(one);
    return agent.said("c");
  }

  it("are voided, and the next try has a name of its own", async () => {
    const said = await withStream([turn.user(one)], scripted(text("hello")));
    expect(brief(said)).toEqual(["delta hel", "stream_reset", "delta hello", "final hello", "turn_end completed"]);
    const [first, reset, next] = said.map(({ event }) => ("streamId" in event ? event.streamId : null));
    expect(reset).toBe(first);
    expect(next).not.toBe(first);
  });

  it("are ended by the stored answer that they show", async () => {
    const said = await withStream([turn.user(one), turn.final(1, "hello")], scripted());
    expect(brief(said)).toEqual(["delta hel", "final hello", "turn_end completed"]);
    expect(said[1]?.event).toEqual({ type: "final", streamId: stream.streamId });
  });

  it("are ended with what they showed when the turn had been stopped", async () => {
    const said = await withStream(
      [turn.user(one), turn.final(1, "hel\n\n[Stopped by the user.]", "stopped")],
      scripted(),
    );
    expect(brief(said)).toEqual(["delta hel", "stream_end hel", "turn_end stopped"]);
  });

  it("numbers grow over holders, so that nothing of a dead one counts as late news", async () => {
    const said = await withStream([turn.user(one)], scripted(text("hello")));
    const numbers = said.map(({ seq }) => seq);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(new Set(numbers).size).toBe(numbers.length);
  });
});

describe("iterations", () => {
  it("are counted over resumes: at the limit the turn is closed with words, and the limit is named", async () => {
    const provider = scripted(text(""));
    const agent = await stage.open(provider, { settings: { maxIterations: 2 }, tools: noteTool([]) });
    await agent.accept(one);
    const done = [1, 2].flatMap((step) => [turn.calls(step, `c${step}`), turn.result(step, `c${step}`)]);
    await agent.leave(one, { rows: [turn.user(one), ...done] });
    await agent.work(one);
    expect(provider.requests.map(({ toolChoice }) => toolChoice)).toEqual(["none"]);
    expect(await settled(agent, one)).toContain("its limit of 2 model calls");
  });
});

describe("a stop that came while nobody held the turn", () => {
  it.each([
    ["the user row", [turn.user(one)], ["user one", "final [Stopped by the user.]"]],
    [
      "open calls",
      [turn.user(one), turn.calls(1, "a")],
      ["user one", "calls a", "tool a", "final [Stopped by the user.]"],
    ],
    ["its final", [turn.user(one), turn.final(1, "stored")], ["user one", "final stored"]],
  ])("after %s: no model, no tool, no answer", async (_where, rows, after) => {
    const provider = scripted();
    const ran: string[] = [];
    const agent = await stage.open(provider, { tools: noteTool(ran) });
    await agent.accept(one);
    await agent.leave(one, { rows });
    const key = agent.fixture.bus.sessionOf(one);
    expect(await agent.fixture.bus.stop({ key, inboundKey: null, route: routeKeyOf(one.route) })).toBe(1);
    await agent.work(one);
    expect([provider.requests.length, ran.length]).toEqual([0, 0]);
    expect(briefRows(await agent.rows(one))).toEqual(after);
    expect(brief(await agent.said("c"))).toEqual(["turn_end stopped"]);
  });
});

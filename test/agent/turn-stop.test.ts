/** `/stop` at every place of a turn: what was done stays, nothing more is asked, run, or said, and one end is told. */
import { describe, expect, it } from "vitest";
import type { ProviderEvent } from "../../src/agent/providers/provider.js";
import type { ToolContext } from "../../src/agent/tools/tool.js";
import { inboundKeyOf } from "../../src/bus/messages.js";
import { nodeIo } from "../../src/session/io.js";
import { type AgentFixture, brief, briefRows } from "../support/agent-fixture.js";
import { eventsRoute, inbound, until } from "../support/bus-fixture.js";
import { call, calls, type Script, scripted, text } from "./scripted-provider.js";
import { aborted, agentStage, noteTool } from "./stage.js";

const stage = agentStage();
const say = (content: string, id: string) => inbound(content, { id, route: eventsRoute("c") });
const one = say("one", "m1");
const STOPPED = "[Stopped by the user.]";

interface Late {
  agent: AgentFixture | null;
}

function agentOf({ agent }: Late): AgentFixture {
  if (agent === null) throw new Error("no agent yet");
  return agent;
}

const stopIt = (late: Late) => agentOf(late).accept(say("/stop", "s1"));

/** A model that shows some text, is stopped from outside, and then heeds its signal. */
const stoppedWhileTalking = (late: Late, shown: string) =>
  async function* (signal: AbortSignal): AsyncGenerator<ProviderEvent> {
    yield { type: "text", text: shown };
    await stopIt(late);
    await aborted(signal);
  };

async function open(script: (late: Late) => Script[], act?: (id: string, context: ToolContext) => Promise<never>) {
  const late: Late = { agent: null };
  const ran: string[] = [];
  const provider = scripted(...script(late));
  late.agent = await stage.open(provider, { tools: noteTool(ran, act) });
  return { agent: late.agent, provider, ran, late };
}

const events = async (agent: AgentFixture) =>
  brief(await agent.said("c")).filter((line) => !/^notice Stopped|^turn_end completed/.test(line));

describe("a stop", () => {
  it("before the turn began leaves nothing behind", async () => {
    const { agent, provider } = await open(() => []);
    await agent.accept(one);
    expect(await agent.accept(say("/stop", "s1"))).toMatchObject({ text: "Stopped 1 message." });
    await agent.work(one);
    expect(provider.requests).toEqual([]);
    expect(await agent.rows(one)).toEqual([]);
    expect(await agent.result(inboundKeyOf(one))).toMatchObject({ outcome: "stopped" });
    expect(await events(agent)).toEqual(["turn_end stopped"]);
  });

  it("while the session is being opened, before anybody could hear of it, is heard all the same", async () => {
    const { agent, provider, late } = await open(() => [text("never")]);
    let hints = 0;
    const unhint = await agent.fixture.stack.signals.onHint(() => {
      hints += 1;
    });
    agent.hooks.io.append = async (handle, bytes) => {
      agent.hooks.io.append = nodeIo.append;
      await stopIt(late);
      await until(() => hints > 0);
      return nodeIo.append(handle, bytes);
    };
    await agent.talk(one);
    await unhint();
    expect(provider.requests).toEqual([]);
    expect(await events(agent)).toEqual(["turn_end stopped"]);
  });

  it("during the model call aborts it, and keeps what was shown", async () => {
    const { agent, provider } = await open((late) => [stoppedWhileTalking(late, "half an ans")]);
    const result = await agent.talk(one);
    expect(result).toMatchObject({ outcome: "stopped", text: "half an ans" });
    expect(provider.requests).toHaveLength(1);
    expect(briefRows(await agent.rows(one))).toEqual(["user one", `final half an ans\n\n${STOPPED}`]);
    expect(await events(agent)).toEqual(["delta half an ans", "stream_end half an ans", "turn_end stopped"]);
  });

  it("during a tool that ignores its signal ends the turn without waiting for it", async () => {
    const late: Late = { agent: null };
    const { agent } = await open(
      () => [calls(call("note", { id: "x" }))],
      async () => {
        await stopIt(late);
        return new Promise<never>(() => {});
      },
    );
    late.agent = agent;
    await agent.talk(one);
    expect(briefRows(await agent.rows(one))).toEqual(["user one", "calls id-note", "tool id-note", `final ${STOPPED}`]);
    expect(await events(agent)).toEqual(["tool start id-note", "turn_end stopped"]);
  });

  it("after the final was stored withholds the answer and ends the stream that showed it", async () => {
    const { agent, late } = await open(() => [text("all of it")]);
    agent.hooks.io.sync = async (handle) => {
      agent.hooks.io.sync = nodeIo.sync;
      await stopIt(late);
      return nodeIo.sync(handle);
    };
    const result = await agent.talk(one);
    expect(result).toMatchObject({ outcome: "stopped", text: "all of it" });
    expect(briefRows(await agent.rows(one))).toEqual(["user one", "final all of it"]);
    expect(await events(agent)).toEqual(["delta all of it", "stream_end all of it", "turn_end stopped"]);
  });

  it("of the messages taken in after an answer reaches the model call, and leaves that answer alone", async () => {
    const { agent } = await open((late) => [
      async function* () {
        await agentOf(late).accept(say("two", "m2"));
        yield* text("first");
      },
      stoppedWhileTalking(late, "sec"),
    ]);
    expect(await agent.talk(one)).toMatchObject({ outcome: "completed", text: "first" });
    expect(await agent.result(inboundKeyOf(say("two", "m2")))).toMatchObject({ outcome: "stopped", text: "sec" });
    expect(briefRows(await agent.rows(one))).toEqual([
      "user one",
      "final first",
      "user two",
      `final sec\n\n${STOPPED}`,
    ]);
    const seen = await events(agent);
    expect(seen).toEqual(["delta first", "final first", "delta sec", "stream_end sec", "turn_end stopped"]);
  });

  it("between an answer and what was taken in after it stops both, and repeats nothing", async () => {
    const { agent, late } = await open((here) => [
      async function* () {
        await agentOf(here).accept(say("two", "m2"));
        yield* text("first");
      },
    ]);
    agent.hooks.io.sync = async (handle) => {
      agent.hooks.io.sync = nodeIo.sync;
      await stopIt(late);
      return nodeIo.sync(handle);
    };
    await agent.talk(one);
    for (const message of [one, say("two", "m2")])
      expect(await agent.result(inboundKeyOf(message))).toMatchObject({ outcome: "stopped", text: "first" });
    expect(briefRows(await agent.rows(one))).toEqual(["user one", "final first", "user two", `final ${STOPPED}`]);
    expect(await events(agent)).toEqual(["delta first", "stream_end first", "turn_end stopped"]);
  });

  it("while a call begins to wait ends the turn at once, without counting a try", async () => {
    const late: Late = { agent: null };
    const signals: AbortSignal[] = [];
    const wait = noteTool([], async (_id, { signal }) => {
      signals.push(signal);
      return { type: "wait", waitId: "w1", untilMs: Date.now() + 60_000 };
    });
    const agent = await stage.open(scripted(calls(call("note", { id: "x" }))), { tools: wait });
    late.agent = agent;
    agent.hooks.io.append = async (handle, bytes) => {
      if (String(bytes).includes('"role":"wait"')) {
        await stopIt(late);
        await until(() => signals[0]?.aborted);
      }
      return nodeIo.append(handle, bytes);
    };
    await agent.talk(one);
    expect(signals).toHaveLength(1);
    expect(briefRows(await agent.rows(one)).at(-1)).toBe(`final ${STOPPED}`);
    expect(agent.log.filter((line) => line.includes("a turn failed"))).toEqual([]);
  });
});

/** A turn that nobody interrupts: what is shown, stored and settled, in which order, with and without streaming. */
import { describe, expect, it } from "vitest";
import type { ProviderEvent } from "../../src/agent/providers/provider.js";
import { type InboundMessage, inboundKeyOf, type Route } from "../../src/bus/messages.js";
import { nodeIo } from "../../src/session/io.js";
import { brief, briefRows } from "../support/agent-fixture.js";
import { eventsRoute, inbound } from "../support/bus-fixture.js";
import { call, calls, scripted, text } from "./scripted-provider.js";
import { agentStage, noteTool } from "./stage.js";

const stage = agentStage();
const route: Route = eventsRoute("c");
const silentRoute: Route = { ...route, isStreaming: false };
const say = (content: string, id: string, to: Route = route) => inbound(content, { id, route: to });

const thought: ProviderEvent = { type: "reasoning", text: "hm" };
const withTool = () =>
  scripted(
    [thought, { type: "text", text: "Let me see. " }, ...calls(call("note", { id: "x" }))],
    text("It ", "is so."),
  );

describe("a streaming route", () => {
  it("shows reasoning, text, tools and the answer in order, and one end", async () => {
    const agent = await stage.open(withTool(), { tools: noteTool([]) });
    await agent.talk(say("one", "m1"));
    expect(brief(await agent.said("c"))).toEqual([
      "reasoning_delta hm",
      "delta Let me see. ",
      "reasoning_end",
      "stream_end Let me see. ",
      "tool start id-note",
      "tool end id-note",
      "delta It is so.",
      "final It is so.",
      "turn_end completed",
    ]);
  });

  it("has deltas that join to the text of their stream, at the offsets they say", async () => {
    const pieces = ["Grüß", " dich, ", "\ud83d\ude00", "\n\n", "Ende."];
    const slow = async function* (): AsyncGenerator<ProviderEvent> {
      for (const piece of text(...pieces)) {
        // Longer than the time in which pieces are put together, so that several deltas leave.
        await new Promise((resolve) => setTimeout(resolve, 60));
        yield piece;
      }
    };
    const agent = await stage.open(scripted(slow));
    await agent.talk(say("one", "m1"));
    const said = await agent.said("c");
    let joined = "";
    for (const { event, content } of said) {
      if (event.type !== "delta") continue;
      expect(event.offset).toBe(joined.length);
      joined += content;
    }
    const deltas = said.filter(({ event }) => event.type === "delta");
    expect(deltas.length).toBeGreaterThan(1);
    expect(joined).toBe(pieces.join(""));
    expect(said.at(-2)).toMatchObject({ content: joined, event: { type: "final" } });
    const streams = new Set(said.flatMap(({ event }) => ("streamId" in event ? [event.streamId] : [])));
    expect(streams.size).toBe(1);
  });

  it("voids a try that was of no use; each try has a name of its own", async () => {
    const useless = [thought, { type: "finish" as const, reason: "stop" as const, usage: null }];
    const cut = scripted(useless, useless, text("at last"));
    const agent = await stage.open(cut);
    await agent.talk(say("one", "m1"));
    const said = await agent.said("c");
    expect(brief(said).slice(-3)).toEqual(["delta at last", "final at last", "turn_end completed"]);
    const thoughts = said.flatMap(({ event }) => (event.type === "reasoning_delta" ? [event.streamId] : []));
    expect(new Set(thoughts).size).toBe(2);
  });
});

describe("a route that shows whole answers only", () => {
  it("gets the answer and the end, nothing in between; the rows are the same", async () => {
    const agent = await stage.open(withTool(), { tools: noteTool([]) });
    const message = say("one", "m1", silentRoute);
    await agent.talk(message);
    const said = await agent.said("c");
    expect(brief(said)).toEqual(["final It is so.", "turn_end completed"]);
    expect(said[0]?.event).toEqual({ type: "final", streamId: null });
    expect(briefRows(await agent.rows(message))).toEqual([
      "user one",
      "calls id-note",
      "tool id-note",
      "final It is so.",
    ]);
  });
});

describe("rows and settlements", () => {
  it("each step is on the disk before the next begins, and the file is flushed once before the answer leaves", async () => {
    const agent = await stage.open(withTool(), { tools: noteTool([]) });
    const trace: string[] = [];
    agent.hooks.io.append = async (handle, bytes) => {
      const role = /"role":"(\w+)"/.exec(String(bytes))?.[1];
      if (role !== undefined) trace.push(role);
      return nodeIo.append(handle, bytes);
    };
    agent.hooks.io.sync = async (handle) => {
      if ((await handle.stat()).isFile()) trace.push("flush");
      return nodeIo.sync(handle);
    };
    agent.hooks.fault = (point) => {
      if (point.startsWith("settle") || point === "tool.finished") trace.push(point);
    };
    await agent.talk(say("one", "m1"));
    const order = "user assistant tool.finished tool assistant flush settle.before settle.after";
    expect(trace.join(" ")).toBe(order);
  });

  it("the same message again makes no second turn", async () => {
    const provider = scripted(text("hello"));
    const agent = await stage.open(provider);
    const message = say("one", "m1");
    await agent.talk(message);
    expect((await agent.accept(message)).status).toBe("duplicate");
    await agent.work(message);
    expect(provider.requests).toHaveLength(1);
    expect(brief(await agent.said("c")).filter((line) => line.startsWith("turn_end"))).toHaveLength(1);
  });

  it("a system message is answered like any other, whatever it looks like", async () => {
    const agent = await stage.open(scripted(text("hello"), text("done")));
    await agent.talk(say("one", "m1"));
    const system = inbound("/new", { id: "s1", role: "system", route });
    await agent.talk(system);
    expect(briefRows(await agent.rows(system))).toEqual(["user one", "final hello", "user /new", "final done"]);
  });

  it("/new puts the conversation behind it, in its place in the queue, and is no row itself", async () => {
    const provider = scripted(text("hello"), text("fresh"));
    const agent = await stage.open(provider);
    await agent.talk(say("one", "m1"));
    await agent.talk(say("/new", "m2"));
    await agent.talk(say("two", "m3"));
    expect(provider.requests[1]?.messages.slice(1)).toEqual([{ role: "user", content: "two" }]);
    expect(brief(await agent.said("c")).slice(3, 5)).toEqual([
      "notice A new conversation begins.",
      "turn_end completed",
    ]);
    expect(briefRows(await agent.rows(say("one", "m1")))).toHaveLength(4);
  });

  it("a very long message comes through whole", async () => {
    const long = "äx ".repeat(300_000);
    const provider = scripted(text("read"));
    const agent = await stage.open(provider);
    const message = say(long, "m1");
    expect((await agent.talk(message))?.outcome).toBe("completed");
    expect(provider.requests[0]?.messages.at(-1)).toEqual({ role: "user", content: long });
    expect((await agent.rows(message))[0]?.content).toBe(long);
  });
});

describe("messages taken in", () => {
  /** A model that, before it answers, is written to. */
  const writing = (answer: ProviderEvent[], write: () => Promise<unknown>) =>
    async function* (): AsyncGenerator<ProviderEvent> {
      await write();
      yield* answer;
    };

  async function steer(answers: ProviderEvent[][], arriving: InboundMessage[][]) {
    const parts: { write: (step: number) => Promise<unknown> } = { write: async () => {} };
    const provider = scripted(...answers.map((answer, step) => writing(answer, () => parts.write(step))));
    const agent = await stage.open(provider, { tools: noteTool([]) });
    parts.write = async (step) => {
      for (const message of arriving[step] ?? []) await agent.accept(message);
    };
    return { agent, provider };
  }

  it("after tools: the model sees them with the results, and one answer is for all", async () => {
    const [two, three] = [say("two", "m2"), say("three", "m3")];
    const { agent, provider } = await steer([calls(call("note", { id: "x" })), text("all")], [[two, three]]);
    await agent.talk(say("one", "m1"));
    expect(provider.requests[1]?.messages.at(-1)).toEqual({ role: "user", content: "two\n\nthree" });
    expect(brief(await agent.said("c")).filter((line) => line.startsWith("final"))).toEqual(["final all"]);
    expect((await agent.said("c")).at(-1)?.event).toMatchObject({ messageIds: ["m1", "m2", "m3"] });
    for (const message of [two, three])
      expect(await agent.result(inboundKeyOf(message))).toMatchObject({ text: "all" });
  });

  it("after a final: that answer leaves at once, each caller has its own, and one end is for all", async () => {
    const [one, two] = [say("one", "m1"), say("two", "m2")];
    const { agent } = await steer([text("first"), text("second")], [[two]]);
    await agent.talk(one);
    const said = await agent.said("c");
    expect(brief(said).filter((line) => !line.startsWith("delta"))).toEqual([
      "final first",
      "final second",
      "turn_end completed",
    ]);
    expect(said.at(-1)?.event).toMatchObject({ messageIds: ["m1", "m2"] });
    expect(await agent.result(inboundKeyOf(one))).toMatchObject({ text: "first" });
    expect(await agent.result(inboundKeyOf(two))).toMatchObject({ text: "second" });
    expect(briefRows(await agent.rows(one))).toEqual(["user one", "final first", "user two", "final second"]);
  });

  it("is never a command: /new waits for its own place, and what comes after it too", async () => {
    const { agent } = await steer(
      [calls(call("note", { id: "x" })), text("unused"), text("fresh")],
      [[say("/new", "m2"), say("two", "m3")]],
    );
    await agent.talk(say("one", "m1"));
    const kinds = brief(await agent.said("c")).filter((line) => /^(final|notice|turn_end)/.test(line));
    expect(kinds.slice(0, 3)).toEqual(["turn_end stopped", "notice A new conversation begins.", "turn_end completed"]);
    expect(kinds.at(-1)).toBe("turn_end completed");
  });

  it("its files are named to the model as history will name them", async () => {
    const file = { path: "a/b.pdf", mime: "application/pdf", name: "b.pdf", bytes: 3 };
    const two = inbound("see", { id: "m2", route, media: [file] });
    const { agent, provider } = await steer([calls(call("note", { id: "x" })), text("seen")], [[two]]);
    await agent.talk(say("one", "m1"));
    expect(provider.requests[1]?.messages.at(-1)).toEqual({
      role: "user",
      content: "see\n[file: b.pdf (application/pdf, 3 bytes) at /kept/a/b.pdf]",
    });
  });

  it("with followup each message has its own turn", async () => {
    const parts: { write: () => Promise<unknown> } = { write: async () => {} };
    const provider = scripted(
      writing(text("first"), () => parts.write()),
      text("second"),
    );
    const agent = await stage.open(provider, { settings: { queueMode: "followup" } });
    parts.write = () => agent.accept(say("two", "m2"));
    await agent.talk(say("one", "m1"));
    expect(brief(await agent.said("c")).filter((line) => line.startsWith("turn_end"))).toHaveLength(2);
  });

  it("at most three at once", async () => {
    const many = ["2", "3", "4", "5"].map((n) => say(n, `m${n}`));
    const { agent, provider } = await steer([text("a"), text("b"), text("c")], [many]);
    await agent.talk(say("1", "m1"));
    expect(provider.requests.map(({ messages }) => messages.at(-1)?.content)).toEqual(["1", "2\n\n3\n\n4", "5"]);
  });
});

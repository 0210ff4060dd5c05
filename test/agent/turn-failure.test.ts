/** What goes wrong in a turn: models, files, the lease, the shutdown. Who is told what, and what is left behind. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { apologyFor, FAILED_ROW } from "../../src/agent/apology.js";
import { ProviderError, type ProviderErrorCode, type ProviderEvent } from "../../src/agent/providers/provider.js";
import { inboundKeyOf } from "../../src/bus/messages.js";
import { ERROR_ADVICE } from "../../src/errors.js";
import type { FaultPoint } from "../../src/faults.js";
import { createKeys } from "../../src/redis/keys.js";
import { nodeIo } from "../../src/session/io.js";
import { type AgentFixture, brief, briefRows, keyOf } from "../support/agent-fixture.js";
import { eventsRoute, inbound } from "../support/bus-fixture.js";
import { call, calls, type Script, scripted, text } from "./scripted-provider.js";
import { aborted, agentStage, noteTool } from "./stage.js";

const stage = agentStage();
const one = inbound("one", { id: "m1", route: eventsRoute("c") });
const CODES = Object.keys(ERROR_ADVICE).filter((code): code is ProviderErrorCode => code.startsWith("PROVIDER_"));
const SECRET = "upstream says: org-4711 has no credit";

/** Asks Redis without letting anything else happen meanwhile. */
function ask(...command: string[]): string {
  return String(execFileSync("redis-cli", ["-s", stage.redis.socketPath, ...command])).trim();
}

describe("a model that fails", () => {
  it.each(CODES)(
    "with %s ends the turn with its fixed sentence; what the provider said is in the log only",
    async (code) => {
      const failing = async function* (): AsyncGenerator<ProviderEvent> {
        yield { type: "text", text: "Well, " };
        throw new ProviderError(code, "refused", { status: 400, detail: SECRET });
      };
      const agent = await stage.open(scripted(failing));
      const result = await agent.talk(one);
      expect(result).toMatchObject({ outcome: "failed", text: apologyFor(code) });
      const said = await agent.said("c");
      expect(brief(said)).toEqual(["delta Well, ", "stream_reset", `notice ${apologyFor(code)}`, "turn_end failed"]);
      const rows = await agent.rows(one);
      expect(briefRows(rows)).toEqual(["user one", `final ${FAILED_ROW}`]);
      expect(JSON.stringify([said, rows, result])).not.toContain("org-4711");
      const logged = agent.log.find((line) => line.includes(SECRET));
      expect(JSON.parse(logged ?? "{}")).toMatchObject({ code, session: "web:c" });
    },
  );

  it("leaves the next turn as it was: roles alternate, and no error is learned from", async () => {
    const provider = scripted(new ProviderError("PROVIDER_SERVER", "x", { detail: SECRET }), text("hello"));
    const agent = await stage.open(provider);
    await agent.talk(one);
    await agent.talk(inbound("two", { id: "m2", route: eventsRoute("c") }));
    expect(provider.requests[1]?.messages.slice(1).map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(JSON.stringify(provider.requests[1])).not.toContain("org-4711");
  });

  it("after tools keeps what the tools did", async () => {
    const ran: string[] = [];
    const provider = scripted(calls(call("note", { id: "x" })), new ProviderError("PROVIDER_TIMEOUT", "x"));
    const agent = await stage.open(provider, { tools: noteTool(ran) });
    await agent.talk(one);
    expect(ran).toEqual(["x"]);
    expect(briefRows(await agent.rows(one)).slice(1)).toEqual(["calls id-note", "tool id-note", `final ${FAILED_ROW}`]);
  });
});

describe("a disk that is full", () => {
  const full = () => Object.assign(new Error("no space left on device"), { code: "ENOSPC" });

  it("is tried again after the delays; the third time the message is given up and its sender told", async () => {
    const provider = scripted();
    const agent = await stage.open(provider, { retryDelaysMs: [7000, 9000] });
    agent.hooks.io.append = async () => {
      throw full();
    };
    await agent.accept(one);
    for (const delayMs of [7000, 9000]) {
      const beforeMs = Date.now();
      await agent.work(one, 1);
      const dueMs = Number(ask("ZSCORE", createKeys(agent.prefix, "ws").of("sched"), keyOf(one)));
      expect(dueMs).toBeGreaterThanOrEqual(beforeMs + delayMs);
      expect(dueMs).toBeLessThanOrEqual(Date.now() + delayMs);
    }
    await agent.work(one, 1);
    expect(await agent.fixture.bus.peek(keyOf(one))).toBeNull();
    expect(provider.requests).toEqual([]);
    expect(brief(await agent.said("c"))).toEqual(["notice Given up.", "turn_end failed"]);
    expect(await agent.result(inboundKeyOf(one))).toMatchObject({ outcome: "failed" });
    expect(agent.log.filter((line) => line.includes("a turn failed"))).toHaveLength(3);
  });

  it("in the middle of a turn: the next try goes on from what is stored, and a tool is not run again", async () => {
    const ran: string[] = [];
    const provider = scripted(calls(call("note", { id: "x" })), text("lost"), text("kept"));
    const agent = await stage.open(provider, { tools: noteTool(ran) });
    let appends = 0;
    agent.hooks.io.append = async (handle, bytes) => {
      appends += 1;
      // Fence, user row, calls, result; the answer does not fit.
      if (appends === 5) throw full();
      return nodeIo.append(handle, bytes);
    };
    expect(await agent.talk(one)).toMatchObject({ outcome: "completed", text: "kept" });
    expect(ran).toEqual(["x"]);
    expect(briefRows(await agent.rows(one))).toEqual(["user one", "calls id-note", "tool id-note", "final kept"]);
    expect(brief(await agent.said("c")).filter((line) => line.startsWith("turn_end"))).toEqual(["turn_end completed"]);
  });

  it("when the file cannot be flushed sends no answer before it could", async () => {
    const provider = scripted(text("hello"));
    const agent = await stage.open(provider);
    let said: string[] = [];
    agent.hooks.io.sync = async (handle) => {
      agent.hooks.io.sync = nodeIo.sync;
      said = brief(await agent.said("c"));
      await handle.stat();
      throw full();
    };
    expect(await agent.talk(one)).toMatchObject({ text: "hello" });
    expect(said.filter((line) => line.startsWith("final"))).toEqual([]);
    expect(provider.requests).toHaveLength(1);
    expect(brief(await agent.said("c")).filter((line) => line.startsWith("final"))).toEqual(["final hello"]);
  });
});

/** Another process reaps the session behind its holder's back, in the very moment of the call. */
function takeAway(agent: AgentFixture): void {
  const keys = createKeys(agent.prefix, "ws");
  ask("HINCRBY", keys.of("session", keyOf(one)), "f", "1");
  ask("ZADD", keys.of("lease"), "0", keyOf(one));
}

describe("a lease that is lost", () => {
  const POINTS: FaultPoint[] = [
    "session.fenced",
    "append.before",
    "append.after",
    "tool.finished",
    "emit.before",
    "turn.finished",
    "settle.before",
  ];

  it.each(POINTS)(
    "at %s: nothing more is sent or settled by the old holder, and the next one finishes",
    async (point) => {
      const ran: string[] = [];
      const script = () => scripted(calls(call("note", { id: "x" })), text("hello"), text("hello"));
      const old = await stage.open(script(), { tools: noteTool(ran) });
      const isTaken = { now: false };
      old.hooks.fault = (passed) => {
        if (passed !== point || isTaken.now) return;
        isTaken.now = true;
        takeAway(old);
      };
      await old.accept(one);
      await old.work(one, 1);
      expect(isTaken.now).toBe(true);
      expect(await old.result(inboundKeyOf(one))).toBeNull();
      const before = brief(await old.said("c"));
      expect(before.filter((line) => /^(final|notice|turn_end)/.test(line))).toEqual([]);

      const next = await stage.open(script(), { tools: noteTool(ran), prefix: old.prefix });
      await next.fixture.stack.upkeep.reap();
      await next.work(one);
      const after = brief(await next.said("c"));
      expect(after.slice(0, before.length)).toEqual(before);
      expect(after.filter((line) => /^(final|notice|turn_end)/.test(line)).at(-1)).toBe("turn_end completed");
      expect(after.filter((line) => line.startsWith("turn_end"))).toHaveLength(1);
      const rows = briefRows(await next.rows(one));
      expect([rows[0], rows.at(-1)?.startsWith("final")]).toEqual(["user one", true]);
      expect(rows.filter((row) => row === "user one")).toHaveLength(1);
    },
  );

  it.each(["model", "tool"] as const)("during a %s call ends it at once", async (where) => {
    const late: { agent: AgentFixture | null } = { agent: null };
    const ended: unknown[] = [];
    const lose = async (signal: AbortSignal): Promise<never> => {
      if (late.agent !== null) takeAway(late.agent);
      return aborted(signal).catch((reason: unknown) => {
        ended.push(reason);
        throw reason;
      });
    };
    const hanging: Script = async function* (signal) {
      yield await lose(signal);
    };
    const script = where === "model" ? [hanging] : [calls(call("note", { id: "x" }))];
    const agent = await stage.open(scripted(...script), { tools: noteTool([], (_id, { signal }) => lose(signal)) });
    late.agent = agent;
    await agent.accept(one);
    await agent.work(one, 1);
    expect(ended).toMatchObject([{ code: "LEASE_LOST" }]);
    expect(brief(await agent.said("c")).filter((line) => !line.startsWith("tool"))).toEqual([]);
    expect(agent.log.some((line) => line.includes("taken over by another process"))).toBe(true);
  });
});

describe("a process that drains", () => {
  const POINTS: Array<FaultPoint | "model" | "tool"> = ["append.before", "model", "tool", "tool.finished"];

  it.each(POINTS)("at %s: hands the turn over without a try, and the next process ends it", async (point) => {
    const late: { agent: AgentFixture | null } = { agent: null };
    const drain = () => late.agent?.loop.drain();
    const hanging: Script = async function* (signal) {
      drain();
      yield await aborted(signal);
    };
    const first: Script = point === "model" ? hanging : calls(call("note", { id: "x" }));
    const tools = noteTool([], async (_id, { signal }) => {
      if (point !== "tool") return { type: "done", text: "noted", isError: false };
      drain();
      return aborted(signal);
    });
    const old = await stage.open(scripted(first, text("unused")), { tools });
    late.agent = old;
    old.hooks.fault = (passed) => {
      if (passed === point) drain();
    };
    await old.accept(one);
    await old.work(one, 1);
    expect(old.log.filter((line) => line.includes("a turn failed"))).toEqual([]);
    expect(brief(await old.said("c")).filter((line) => /^(final|turn_end)/.test(line))).toEqual([]);

    const next = await stage.open(scripted(text("hello")), { prefix: old.prefix, tools: noteTool([]) });
    await next.work(one);
    expect(brief(await next.said("c")).slice(-3)).toEqual(["delta hello", "final hello", "turn_end completed"]);
    expect(ask("HGET", createKeys(old.prefix, "ws").of("session", keyOf(one)), "a")).toBe("");
  });

  it("after the final was stored lets it go out, and leaves with what still waits", async () => {
    const old = await stage.open(scripted(text("hello")), { settings: { queueMode: "followup" } });
    old.hooks.fault = (point) => {
      if (point === "turn.finished") old.loop.drain();
    };
    await old.accept(one);
    await old.accept(inbound("two", { id: "m2", route: eventsRoute("c") }));
    await old.work(one, 1);
    expect(brief(await old.said("c"))).toEqual(["delta hello", "final hello", "turn_end completed"]);
    expect(await old.fixture.bus.peek(keyOf(one))).not.toBeNull();
  });
});

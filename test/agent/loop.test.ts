/** The loop: message after message under one lease, and how a session leaves it. */
import { describe, expect, it } from "vitest";
import type { ProviderEvent } from "../../src/agent/providers/provider.js";
import { asSessionKey, inboundKeyOf } from "../../src/bus/messages.js";
import { createKeys } from "../../src/redis/keys.js";
import { brief, keyOf } from "../support/agent-fixture.js";
import { eventsRoute, inbound } from "../support/bus-fixture.js";
import { type Script, scripted, text } from "./scripted-provider.js";
import { aborted, agentStage } from "./stage.js";

const stage = agentStage();
const say = (content: string, id: string, chat = "c") => inbound(content, { id, route: eventsRoute(chat) });
const one = say("one", "m1");
const FOLLOWUP = { settings: { queueMode: "followup" as const } };

describe("a session", () => {
  it("is carried through all its mail in order, under one lease", async () => {
    const provider = scripted(text("1"), text("2"), text("3"));
    const agent = await stage.open(provider, FOLLOWUP);
    const messages = ["one", "two", "three"].map((content) => say(content, content));
    for (const message of messages) await agent.accept(message);
    await agent.work(one, 1);
    expect(provider.requests.map(({ messages: rows }) => rows.at(-1)?.content)).toEqual(["one", "two", "three"]);
    expect(await agent.fixture.bus.peek(keyOf(one))).toBeNull();
    expect(agent.loop.size).toBe(0);
  });

  it("gives others the slot after 16 turns, and comes back with the rest", async () => {
    const provider = scripted(...Array.from({ length: 18 }, (_, n) => text(`a${n}`)));
    const agent = await stage.open(provider, FOLLOWUP);
    for (let n = 0; n < 18; n += 1) await agent.accept(say(`q${n}`, `m${n}`));
    await agent.work(one, 1);
    expect(provider.requests).toHaveLength(16);
    await agent.work(one);
    expect(provider.requests).toHaveLength(18);
    expect(brief(await agent.said("c")).filter((line) => line.startsWith("turn_end"))).toHaveLength(18);
  });

  it("is left when its caller asks, although mail waits", async () => {
    const provider = scripted(text("1"), text("2"));
    const agent = await stage.open(provider, FOLLOWUP);
    await agent.accept(one);
    await agent.accept(say("two", "m2"));
    const wake = await agent.fixture.bus.peek(keyOf(one));
    const leaves = (answered: readonly string[]) => answered.includes(inboundKeyOf(one));
    await agent.loop.run(keyOf(one), wake?.wake ?? -1, { leaves });
    expect(provider.requests).toHaveLength(1);
    expect(await agent.fixture.bus.peek(keyOf(one))).not.toBeNull();
  });

  it("whose failed message is given up goes on with the next one", async () => {
    const broken = () => {
      throw new Error("broken");
    };
    const provider = scripted(broken, broken, broken, text("fine"));
    const agent = await stage.open(provider, FOLLOWUP);
    const two = say("two", "m2");
    await agent.accept(one);
    await agent.accept(two);
    await agent.work(one);
    expect(await agent.result(inboundKeyOf(one))).toMatchObject({ outcome: "failed" });
    expect(await agent.result(inboundKeyOf(two))).toMatchObject({ outcome: "completed", text: "fine" });
    expect(provider.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
    expect(agent.log.some((line) => line.includes("given up"))).toBe(true);
  });
});

describe("a wake-up", () => {
  it("that is stale, or of a session nobody knows, does nothing", async () => {
    const provider = scripted(text("hello"));
    const agent = await stage.open(provider);
    await agent.accept(one);
    await agent.loop.run(keyOf(one), 99);
    await agent.loop.run(asSessionKey("web:nobody"), 1);
    expect(provider.requests).toEqual([]);
    await agent.work(one);
    await agent.loop.run(keyOf(one), 1);
    expect(provider.requests).toHaveLength(1);
    expect(agent.log.filter((line) => line.includes('"level":50'))).toEqual([]);
  });
});

describe("a hint", () => {
  it("for a session that does not run here is nothing", async () => {
    const agent = await stage.open(scripted());
    await agent.loop.onHint(keyOf(one));
    expect(agent.log).toEqual([]);
  });

  it("that is no stop of the running turn leaves it alone", async () => {
    const late: { hint: () => Promise<void> } = { hint: async () => {} };
    const provider = scripted(async function* (): AsyncGenerator<ProviderEvent> {
      await late.hint();
      yield* text("hello");
    });
    const agent = await stage.open(provider);
    late.hint = () => agent.loop.onHint(keyOf(one));
    expect(await agent.talk(one)).toMatchObject({ outcome: "completed" });
  });

  it("reaches the session it names and no other that runs here", async () => {
    const late: { stop: () => Promise<unknown> } = { stop: async () => {} };
    const waiting: Script = async function* (signal) {
      await late.stop();
      yield await aborted(signal);
    };
    const gate: { open: () => void } = { open: () => {} };
    const opened = new Promise<void>((resolve) => {
      gate.open = resolve;
    });
    const other: Script = async function* () {
      await opened;
      yield* text("hello");
    };
    const provider = scripted(other, waiting);
    const agent = await stage.open(provider);
    late.stop = () => agent.accept(say("/stop", "s1"));
    const beside = say("beside", "b1", "d");
    await agent.accept(beside);
    const besideDone = agent.work(beside);
    while (provider.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await agent.talk(one)).toMatchObject({ outcome: "stopped" });
    gate.open();
    await besideDone;
    expect(await agent.result(inboundKeyOf(beside))).toMatchObject({ outcome: "completed" });
  });
});

describe("tries", () => {
  it("are counted by message: the one after a failed one begins with none", async () => {
    const broken = () => {
      throw new Error("broken");
    };
    const agent = await stage.open(scripted(broken, text("1"), broken, text("2")), FOLLOWUP);
    await agent.accept(one);
    await agent.accept(say("two", "m2"));
    await agent.work(one);
    const attempts = agent.log.flatMap((line) => {
      const { msg, attempts: count } = JSON.parse(line) as { msg: string; attempts?: number };
      return msg === "a turn failed" ? [count] : [];
    });
    expect(attempts).toEqual([1, 1]);
    const redis = stage.redis.client();
    expect(await redis.hget(createKeys(agent.prefix, "ws").of("session", keyOf(one)), "a")).toBeNull();
    redis.disconnect();
  });
});

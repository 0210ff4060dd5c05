/** The way in: which text goes where, answered once, and nothing twice. */
import { describe, expect, it, test } from "vitest";
import { type InboundMessage, inboundKeyOf, type Route, turnIdOf } from "../../src/bus/messages.js";
import { brief, keyOf } from "../support/agent-fixture.js";
import { eventsRoute, inbound } from "../support/bus-fixture.js";
import { scripted, text } from "./scripted-provider.js";
import { agentStage } from "./stage.js";

const stage = agentStage();
const say = (content: string, overrides: Partial<InboundMessage> = {}) =>
  inbound(content, { route: eventsRoute("c"), ...overrides });
const NO_COMMAND = "There is no command";
const file = { path: "a.pdf", mime: "application/pdf", name: "a.pdf", bytes: 3 };

describe("a text", () => {
  it.each([
    ["hello", "stored"],
    ["what is /help?", "stored"],
    ["/new", "stored"],
    ["/help", "<help>"],
    ["/STATUS@gate_bot", "<status>"],
    ["/stop", "There is nothing to stop."],
    ["/stop now", "Use /stop, or /stop all."],
    ["/stop all", "Only an owner may stop everything. Use /stop."],
    ["/new thing", "/new takes no arguments."],
    ["/halp", `${NO_COMMAND} /halp. Did you mean /help? /help lists them all.`],
    ["/weather", `${NO_COMMAND} /weather. /help lists them all.`],
    ["//", `${NO_COMMAND} //. /help lists them all.`],
    ["/", `${NO_COMMAND} /. /help lists them all.`],
    ["", "Your message is empty."],
    [" \n ", "Your message is empty."],
  ])("%j", async (content, expected) => {
    const provider = scripted();
    const agent = await stage.open(provider);
    const message = say(content);
    const taken = await agent.accept(message);
    const key = inboundKeyOf(message);
    expect(taken).toMatchObject({ sessionKey: keyOf(message), inboundKey: key, turnId: turnIdOf(key) });
    if (expected === "stored") {
      expect(taken.status).toBe("stored");
      expect(await agent.said("c")).toEqual([]);
      return;
    }
    expect(taken).toMatchObject({ status: "command", text: expected });
    expect(brief(await agent.said("c"))).toEqual([`notice ${expected}`, "turn_end completed"]);
    expect(await agent.fixture.bus.peek(keyOf(message))).toBeNull();
  });

  it.each([
    ["from another session or a program", say("/stop", { role: "system" })],
    ["without words but with a file", say("", { media: [file] })],
    ["without words but with a quoted message", say("", { replyTo: { text: "this", media: [] } })],
  ])("%s is stored", async (_what, message) => {
    const agent = await stage.open(scripted());
    expect((await agent.accept(message)).status).toBe("stored");
  });
});

describe("a repeated message", () => {
  it("is stored once", async () => {
    const agent = await stage.open(scripted());
    const message = say("hello");
    expect((await agent.accept(message)).status).toBe("stored");
    expect((await agent.accept(message)).status).toBe("duplicate");
  });

  it.each(["/help", "/halp", "/stop", " "])("%j is answered once, and says the same", async (content) => {
    const agent = await stage.open(scripted());
    const message = say(content);
    const first = await agent.accept(message);
    expect(await agent.accept(message)).toEqual(first);
    expect(brief(await agent.said("c"))).toHaveLength(2);
  });

  it("/new that begins anew once does not stop what was written after it", async () => {
    const provider = scripted(text("fresh"));
    const agent = await stage.open(provider);
    const fresh = say("/new");
    await agent.talk(fresh);
    const after = say("after");
    await agent.accept(after);
    expect((await agent.accept(fresh)).status).toBe("duplicate");
    await agent.work(after);
    expect(await agent.result(inboundKeyOf(after))).toMatchObject({ outcome: "completed", text: "fresh" });
  });
});

describe("/stop", () => {
  const elsewhere: Route = { ...eventsRoute("d") };
  const shared = { sessionKeyOverride: keyOf(say("x")) };

  test("says how many it stopped, and says it again when it comes again", async () => {
    const agent = await stage.open(scripted());
    await agent.accept(say("one"));
    await agent.accept(say("two"));
    const stop = say("/stop");
    expect(await agent.accept(stop)).toMatchObject({ text: "Stopped 2 messages." });
    expect(await agent.accept(stop)).toMatchObject({ text: "Stopped 2 messages." });
    expect(await agent.accept(say("/stop"))).toMatchObject({ text: "There is nothing to stop." });
  });

  test("stops its own route; `all`, by an owner, every route of the session", async () => {
    const agent = await stage.open(scripted());
    await agent.accept(say("here"));
    await agent.accept(say("there", { route: elsewhere, ...shared }));
    expect(await agent.accept(say("/stop"))).toMatchObject({ text: "Stopped 1 message." });
    expect(await agent.accept(say("/stop all"))).toMatchObject({ text: expect.stringContaining("Only an owner") });
    expect(await agent.fixture.bus.peek(keyOf(say("x")))).not.toBeNull();
    expect(await agent.accept(say("/stop ALL", { isOwner: true }))).toMatchObject({ text: "Stopped 1 message." });
    expect(await agent.fixture.bus.peek(keyOf(say("x")))).toBeNull();
  });
});

describe("debounce", () => {
  const DEBOUNCE_MS = 60_000;
  const waits = async (message: InboundMessage) => {
    const agent = await stage.open(scripted(), { debounceMs: DEBOUNCE_MS });
    await agent.accept(message);
    return ((await agent.fixture.bus.peek(keyOf(message)))?.delayMs ?? 0) > 0;
  };

  it.each([
    ["a person's message", say("hello"), true],
    ["a command", say("/new"), false],
    ["a file", say("see", { media: [file] }), false],
    ["an edit", say("hello", { kind: "edit" }), false],
    ["a pressed button", say("yes", { kind: "callback" }), false],
    ["a system message", say("hello", { role: "system" }), false],
  ])("for %s", async (_what, message, expected) => {
    expect(await waits(message)).toBe(expected);
  });

  it("ends with a command that comes meanwhile", async () => {
    const agent = await stage.open(scripted(), { debounceMs: DEBOUNCE_MS });
    await agent.accept(say("hello"));
    await agent.accept(say("/new", { route: eventsRoute("d"), sessionKeyOverride: keyOf(say("x")) }));
    expect((await agent.fixture.bus.peek(keyOf(say("x"))))?.delayMs).toBe(0);
  });
});

describe("where answers go", () => {
  it("keeps thread and quoted message of the route", async () => {
    const agent = await stage.open(scripted(text("hello")));
    const route: Route = { ...eventsRoute("c"), threadId: "t7", messageId: "p9" };
    await agent.accept(say("/help", { route }));
    await agent.talk(say("hi", { route, id: "m1" }));
    for (const message of await agent.said("c"))
      expect(message).toMatchObject({ channel: "web", chatId: "c", threadId: "t7", replyTo: "p9" });
  });
});

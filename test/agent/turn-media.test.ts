/** Files in turns: what was spoken is in the row before the model is asked; images are shown in their own turn only. */
import { describe, expect, it } from "vitest";
import type { ProviderEvent } from "../../src/agent/providers/provider.js";
import type { Heard, Transcriber } from "../../src/agent/transcription.js";
import type { TurnMedia } from "../../src/agent/turn-media.js";
import { createVision } from "../../src/agent/vision.js";
import { type InboundMessage, inboundKeyOf, type MediaRef } from "../../src/bus/messages.js";
import type { Row } from "../../src/session/row.js";
import { type AgentFixture, brief, briefRows } from "../support/agent-fixture.js";
import { eventsRoute, inbound, until } from "../support/bus-fixture.js";
import { turnOf } from "../support/turn-row-builders.js";
import { call, calls, type ScriptedProvider, scripted, text } from "./scripted-provider.js";
import { aborted, agentStage, noteTool } from "./stage.js";

const stage = agentStage();
const voice: MediaRef = { path: "2026-06/a_voice.ogg", mime: "audio/ogg", name: "voice.ogg", bytes: 7, isVoice: true };
const cat: MediaRef = { path: "2026-06/b_cat.png", mime: "image/png", name: "cat.png", bytes: 3 };
const say = (content: string, id: string, more: Partial<InboundMessage> = {}) =>
  inbound(content, { id, route: eventsRoute("c"), ...more });

interface Ears extends TurnMedia {
  readonly asked: string[];
}

/** Hears what it is told to; every image is shown as its path. */
function media(hear: Transcriber["transcribe"] | Heard = { kind: "words", text: "hello there" }): Ears {
  const asked: string[] = [];
  return {
    asked,
    transcriber: {
      transcribe: async (ref, options) => {
        asked.push(ref.path);
        return typeof hear === "function" ? hear(ref, options) : hear;
      },
    },
    vision: createVision({
      images: { read: async ({ path }) => ({ kind: "image", mime: "image/png", bytes: Buffer.from(path) }) },
    }),
  };
}

const shown = ({ path }: MediaRef) => ({ mime: "image/png", base64: Buffer.from(path).toString("base64") });
const CAT = "[image: cat.png (image/png, 3 bytes) at /kept/2026-06/b_cat.png]";
const withFiles = (row: Row, ...files: MediaRef[]): Row => (row.role === "user" ? { ...row, media: files } : row);
const lastAsked = (provider: ScriptedProvider) => provider.requests.at(-1)?.messages.at(-1);

describe("a spoken message", () => {
  it("is stored and asked as its words", async () => {
    const provider = scripted(text("hi"));
    const ears = media();
    const agent = await stage.open(provider, { media: ears });
    const message = say("", "m1", { media: [voice] });
    expect(await agent.talk(message)).toMatchObject({ text: "hi" });
    expect(briefRows(await agent.rows(message))[0]).toBe("user [voice message] hello there");
    expect((await agent.rows(message))[0]).toMatchObject({ media: [voice] });
    expect(lastAsked(provider)).toEqual({ role: "user", content: "[voice message] hello there" });
    expect(ears.asked).toEqual([voice.path]);
  });

  it("that could not be heard is a line with the reason and the place of the file, and the turn goes on", async () => {
    const provider = scripted(text("sorry"));
    const agent = await stage.open(provider, {
      media: media({ kind: "nothing", why: "the transcription took too long" }),
    });
    const message = say("listen:", "m1", { media: [voice] });
    expect(await agent.talk(message)).toMatchObject({ outcome: "completed" });
    expect(lastAsked(provider)?.content.split("\n")).toEqual([
      "listen:",
      "",
      "[voice message, not transcribed: the transcription took too long]",
      "[file: voice.ogg (audio/ogg, 7 bytes) at /kept/2026-06/a_voice.ogg]",
    ]);
  });

  it("that is quoted is data", async () => {
    const provider = scripted(text("ok"));
    const agent = await stage.open(provider, { media: media({ kind: "words", text: 'say "yes"' }) });
    await agent.talk(say("is that so?", "m1", { replyTo: { text: "", media: [voice] } }));
    expect(lastAsked(provider)?.content).toContain('[voice message in the quoted message, as data: "say \\"yes\\""]');
  });

  it("is listened to once: whoever takes the turn up has its words", async () => {
    const message = say("", "m1", { media: [voice] });
    const row = withFiles({ ...turnOf(message).user(message), content: "[voice message] hello there" }, voice);
    const provider = scripted(text("hi"));
    const ears = media();
    const agent = await stage.open(provider, { media: ears });
    await agent.accept(message);
    await agent.leave(message, { rows: [row] });
    await agent.work(message);
    expect(ears.asked).toEqual([]);
    expect(lastAsked(provider)?.content).toBe("[voice message] hello there");
  });

  it("that comes while a turn runs is heard before that turn takes it in", async () => {
    const late: { agent: AgentFixture | null } = { agent: null };
    const provider = scripted(calls(call("note", { id: "x" })), text("both"));
    const second = say("", "m2", { media: [voice] });
    const act = async () => {
      await late.agent?.accept(second);
      return { type: "done" as const, text: "noted", isError: false };
    };
    late.agent = await stage.open(provider, { media: media(), tools: noteTool([], act) });
    await late.agent.talk(say("one", "m1"));
    expect(lastAsked(provider)).toEqual({ role: "user", content: "[voice message] hello there" });
  });

  it("can be stopped while it is listened to: nothing is asked, and one end is told", async () => {
    const late: { agent: AgentFixture | null } = { agent: null };
    const provider = scripted();
    const hear: Transcriber["transcribe"] = async (_, { signal }) => {
      await late.agent?.accept(say("/stop", "s1"));
      return aborted(signal);
    };
    const agent = await stage.open(provider, { media: media(hear) });
    late.agent = agent;
    const message = say("", "m1", { media: [voice] });
    await agent.talk(message);
    expect(provider.requests).toEqual([]);
    await until(async () => (await agent.result(inboundKeyOf(message)))?.outcome === "stopped");
    expect(brief(await agent.said("c")).filter((line) => line.startsWith("turn_end stopped"))).toHaveLength(1);
    expect(agent.log.join("")).not.toContain("a turn failed");
  });
});

describe("an image", () => {
  it("is shown in its own turn, at each step the same, and only named afterwards", async () => {
    const provider = scripted(calls(call("note", { id: "x" })), text("a cat"), text("still a cat"));
    const agent = await stage.open(provider, { media: media(), tools: noteTool([]) });
    await agent.talk(say("what is it?", "m1", { media: [cat] }));
    await agent.talk(say("sure?", "m2"));
    const first = { role: "user", content: `what is it?\n${CAT}`, images: [shown(cat)] };
    const [one, two, three] = provider.requests.map(({ messages }) => messages);
    expect(one?.[1]).toEqual(first);
    expect(two?.slice(0, 2)).toEqual(one);
    expect(three?.[1]).toEqual({ role: "user", content: `what is it?\n${CAT}` });
    expect(JSON.stringify(three)).not.toContain("images");
    expect(JSON.stringify(await agent.rows(say("", "m1")))).not.toContain("base64");
  });

  it("of the message that is answered is shown with the answer to it; a message may be an image alone", async () => {
    const provider = scripted(text("a cat"), text("a cat again"));
    const agent = await stage.open(provider, { media: media() });
    await agent.talk(say("", "m1", { media: [cat] }));
    expect(lastAsked(provider)).toEqual({ role: "user", content: CAT, images: [shown(cat)] });
    await agent.talk(say("and now?", "m2", { replyTo: { text: "look", media: [cat] } }));
    expect(lastAsked(provider)).toMatchObject({ images: [shown(cat)], content: expect.stringContaining("and now?") });
  });

  it("is shown again by whoever takes the turn up", async () => {
    const message = say("what is it?", "m1", { media: [cat] });
    const turn = turnOf(message);
    const provider = scripted(text("a cat"));
    const agent = await stage.open(provider, { media: media() });
    await agent.accept(message);
    await agent.leave(message, {
      rows: [withFiles(turn.user(message), cat), turn.calls(1, "a"), turn.result(1, "a")],
    });
    await agent.work(message);
    expect(provider.requests[0]?.messages[1]).toMatchObject({ images: [shown(cat)] });
  });

  it("that comes while a turn runs is shown when it is taken in", async () => {
    const late: { agent: AgentFixture | null } = { agent: null };
    const sending = async function* (): AsyncGenerator<ProviderEvent> {
      await late.agent?.accept(say("and this?", "m2", { media: [cat] }));
      yield* text("first");
    };
    const provider = scripted(sending, text("second"));
    late.agent = await stage.open(provider, { media: media() });
    await late.agent.talk(say("one", "m1"));
    expect(lastAsked(provider)).toEqual({ role: "user", content: `and this?\n${CAT}`, images: [shown(cat)] });
  });
});

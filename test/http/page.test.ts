/** The page's own understanding of its chat, and what its files must and must not contain. */
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

interface Entry {
  kind: string;
  key: string;
  text?: string;
  status?: string;
  isOpen?: boolean;
  remark?: string | null;
}
interface State {
  chatId: string | null;
  epoch: number | null;
  seq: number | null;
  entries: Entry[];
  waiting: string[];
  problem: string | null;
}
interface Chat {
  emptyState(): State;
  reviveState(text: unknown): State | null;
  attachFrame(state: State): object;
  unsentFrames(state: State): object[];
  withMessage(state: State, id: string, text: string): State;
  isBusy(state: State): boolean;
  takeFrame(state: State, frame: object): { state: State; ask: object | null };
}

const folder = new URL("../../src/http/page/", import.meta.url);
const chat: Chat = await import(fileURLToPath(new URL("chat.js", folder)));

/** A page that is attached to chat `c` at `seq`. */
function attached(seq = 0): State {
  const { state } = chat.takeFrame(chat.emptyState(), { event: "ready", chat_id: "c", client_id: "x" });
  return chat.takeFrame(state, { event: "attached", chat_id: "c", epoch: 1, seq }).state;
}

/** Takes events in, numbered from where the state stands. */
function take(state: State, ...events: object[]): State {
  return events.reduce<State>(
    (now, event) => chat.takeFrame(now, { chat_id: "c", seq: (now.seq ?? 0) + 1, ...event }).state,
    state,
  );
}

const texts = (state: State) => state.entries.map(({ kind, text }) => `${kind}: ${text}`);

describe("a chat", () => {
  it("adopts its first chat and asks for nothing that it has", () => {
    const { state } = chat.takeFrame(chat.emptyState(), { event: "ready", chat_id: "c" });
    expect(chat.attachFrame(state)).toEqual({ type: "attach", chat_id: "c" });
    expect(chat.attachFrame(attached(4))).toEqual({ type: "attach", chat_id: "c", after: 4, epoch: 1 });
    expect(chat.takeFrame(attached(), { event: "ready", chat_id: "other" }).state.chatId).toBe("c");
  });

  it("shows a streamed answer once, and what a dead worker showed not at all", () => {
    const state = take(
      attached(),
      { event: "delta", stream_id: "s1", text: "wro" },
      { event: "stream_reset", stream_id: "s1" },
      { event: "delta", stream_id: "s2", text: "Hel" },
      { event: "tool", call_id: "k", name: "read_file", phase: "start" },
      { event: "delta", stream_id: "s2", text: "lo" },
      { event: "tool", call_id: "k", name: "read_file", phase: "end" },
      { event: "stream_end", stream_id: "s2", text: "Hello!" },
    );
    expect(texts(state)).toEqual(["answer: Hello!", "tool: undefined"]);
    expect(state.entries[1]).toMatchObject({ phase: "end" });
    expect(state.seq).toBe(7);
  });

  it("ignores what it has seen and other chats, and asks again when a number is missing", () => {
    const state = take(attached(), { event: "message", text: "one" });
    for (const frame of [
      { event: "message", chat_id: "c", seq: 1, text: "again" },
      { event: "message", chat_id: "d", seq: 2, text: "foreign" },
    ])
      expect(chat.takeFrame(state, frame)).toEqual({ state, ask: null });
    const gap = { event: "message", chat_id: "c", seq: 3, text: "three" };
    expect(chat.takeFrame(state, gap)).toEqual({ state, ask: { type: "attach" } });
  });

  it("keeps a message until it is accepted, waits for its turn, and is done when the turn has ended", () => {
    const written = chat.withMessage(attached(), "m1", "hi");
    expect(chat.unsentFrames(written)).toEqual([{ type: "message", chat_id: "c", id: "m1", content: "hi" }]);
    const { state: sent } = chat.takeFrame(written, {
      event: "message_accepted",
      chat_id: "c",
      id: "m1",
      turn_id: "t",
    });
    expect([chat.unsentFrames(sent), chat.isBusy(sent)]).toEqual([[], true]);
    const end = { event: "turn_end", turn_id: "t", message_ids: ["m1"], outcome: "completed" };
    expect(chat.isBusy(take(sent, end))).toBe(false);
    // A quick turn may end before its acceptance is read.
    const early = take(written, end);
    const late = chat.takeFrame(early, { event: "message_accepted", chat_id: "c", id: "m1", turn_id: "t" });
    expect(chat.isBusy(late.state)).toBe(false);
  });

  it("says what was refused, and asks to send again what may yet be stored", () => {
    const written = chat.withMessage(attached(), "m1", "hi");
    const busy = chat.takeFrame(written, { event: "error", code: "overloaded", detail: "d", chat_id: "c", id: "m1" });
    expect(busy.ask).toEqual({ type: "retry", id: "m1", afterMs: 2_000 });
    const hasty = { event: "error", code: "rate_limited", detail: "d", chat_id: "c", id: "m1", retry_after_ms: 40 };
    expect(chat.takeFrame(written, hasty).ask).toEqual({ type: "retry", id: "m1", afterMs: 40 });
    expect(chat.unsentFrames(busy.state)).toHaveLength(1);
    const bad = chat.takeFrame(written, {
      event: "error",
      code: "too_long",
      detail: "too long",
      chat_id: "c",
      id: "m1",
    });
    expect(bad.state.entries[0]).toMatchObject({ status: "failed", remark: "too long" });
    expect(chat.unsentFrames(bad.state)).toEqual([]);
    const denied = chat.takeFrame(written, { event: "error", code: "access_denied", detail: "d", chat_id: "c" });
    expect(denied.ask).toEqual({ type: "new_chat" });
  });

  it("goes on after a resync without what it cannot know", () => {
    const state = take(chat.withMessage(attached(), "m1", "hi"), { event: "delta", stream_id: "s", text: "hal" });
    const { state: resynced } = chat.takeFrame(state, { event: "resync", chat_id: "c", epoch: 2, seq: 40 });
    expect([resynced.epoch, resynced.seq, resynced.entries[1]?.isOpen]).toEqual([2, 40, false]);
    expect(chat.attachFrame(resynced)).toMatchObject({ after: 40, epoch: 2 });
  });

  it("is the same after it was stored and read again", () => {
    const state = take(chat.withMessage(attached(), "m1", "hi"), { event: "message", text: "yo" });
    expect(chat.reviveState(JSON.stringify(state))).toEqual(state);
    for (const bad of [null, "", "{", "[]", '{"chatId":5}']) expect(chat.reviveState(bad)).toBeNull();
  });
});

describe("the files", () => {
  it("make no markup from text, reach no other host, and label what a person uses", async () => {
    const names = (await readdir(folder)).sort();
    expect(names).toEqual(["app.js", "chat.js", "entries.css", "index.html", "style.css"]);
    for (const name of names) {
      const text = await readFile(new URL(name, folder), "utf8");
      expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function/);
      expect(text).not.toMatch(/https?:\/\/|@import|url\(/);
    }
    const html = await readFile(new URL("index.html", folder), "utf8");
    expect(html).not.toMatch(/<script(?![^>]* src=)|\son\w+=|style=/);
    for (const id of ["text", "token"]) expect(html).toContain(`<label for="${id}"`);
    const app = await readFile(new URL("app.js", folder), "utf8");
    for (const [, id] of app.matchAll(/byId\("([^"]+)"\)/g)) expect(html).toContain(`id="${id}"`);
  });
});

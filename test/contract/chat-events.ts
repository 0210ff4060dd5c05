/**
 * What every `ChatEvents` must do, run over each implementation. `make` gives two processes' views of the same logs, and
 * the ways to append and to lose, which are not part of the port. `keep` is how many events of a chat survive at least.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ChatEvent, ChatEvents } from "../../src/bus/delivery-ports.js";
import type { OutboundMessage } from "../../src/bus/messages.js";
import { outbound } from "../fakes/outbound.js";

export interface ChatEventsHarness {
  mine: ChatEvents;
  theirs: ChatEvents;
  append(account: string, chatId: string, messages: readonly OutboundMessage[]): Promise<void>;
  /** The store comes back as another server without the last `count` events of a chat. */
  loseTail(account: string, chatId: string, count: number): Promise<void>;
  /** Removes the oldest events of a chat beyond the newest `count`. */
  trim(account: string, chatId: string, count: number): Promise<void>;
  close(): Promise<void>;
}

const messages = (...texts: string[]) => texts.map((text) => outbound(text));

async function readAll(events: ChatEvents, after: number): Promise<ChatEvent[]> {
  const all: ChatEvent[] = [];
  for (;;) {
    const got = await events.read("acc", "chat", after + all.length, null);
    if (got.kind === "resync") throw new Error("asked to resync");
    all.push(...got.events);
    if (got.events.length === 0 || after + all.length >= got.head.seq) return all;
  }
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !condition(); tries += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(condition()).toBe(true);
}

/** Registers the suite under a name. */
export function chatEventsContract(name: string, make: () => Promise<ChatEventsHarness>): void {
  describe(`chat events: ${name}`, () => {
    let harness: ChatEventsHarness;
    beforeEach(async () => {
      harness = await make();
    });
    afterEach(() => harness.close());

    it("numbers from 1 without a hole, the same for every process", async () => {
      expect(await harness.mine.head("acc", "chat")).toMatchObject({ seq: 0 });
      await harness.append("acc", "chat", messages("a", "b"));
      await harness.append("acc", "chat", messages("c"));
      const read = await readAll(harness.mine, 0);
      expect(read.map(({ seq, message }) => [seq, message.content])).toEqual([
        [1, "a"],
        [2, "b"],
        [3, "c"],
      ]);
      expect(read[0]?.message).toEqual(outbound("a"));
      expect(await readAll(harness.theirs, 0)).toEqual(read);
      expect(await harness.theirs.head("acc", "chat")).toEqual(await harness.mine.head("acc", "chat"));
      expect(await harness.mine.head("acc", "other")).toMatchObject({ seq: 0 });
      expect(await harness.mine.head("other", "chat")).toMatchObject({ seq: 0 });
    });

    it("reads what comes after a number, and nothing at the end", async () => {
      await harness.append("acc", "chat", messages("a", "b", "c"));
      expect((await readAll(harness.mine, 1)).map(({ seq }) => seq)).toEqual([2, 3]);
      expect(await harness.mine.read("acc", "chat", 3, null)).toMatchObject({ kind: "events", events: [] });
    });

    it("tells followers of every process, in order, until they unfollow", async () => {
      const seen: number[] = [];
      const unfollow = await harness.theirs.follow("acc", "chat", ({ seq }) => seen.push(seq));
      await harness.append("acc", "other", messages("x"));
      await harness.append("acc", "chat", messages("a", "b"));
      await until(() => seen.length === 2);
      await unfollow();
      const still: number[] = [];
      await harness.theirs.follow("acc", "chat", ({ seq }) => still.push(seq));
      await harness.append("acc", "chat", messages("c"));
      await until(() => still.length === 1);
      expect([seen, still]).toEqual([[1, 2], [3]]);
    });

    it("asks for a resync when what is missing is no longer kept", async () => {
      await harness.append("acc", "chat", messages("a", "b", "c", "d"));
      await harness.trim("acc", "chat", 2);
      expect(await harness.mine.read("acc", "chat", 1, null)).toMatchObject({ kind: "resync", head: { seq: 4 } });
      expect((await readAll(harness.mine, 2)).map(({ seq }) => seq)).toEqual([3, 4]);
    });

    it("starts a new epoch after a loss, goes on from what survived, and tells who stood beyond it", async () => {
      await harness.append("acc", "chat", messages("a", "b", "c", "d"));
      const before = await harness.mine.head("acc", "chat");
      await harness.loseTail("acc", "chat", 2);
      const after = await harness.mine.head("acc", "chat");
      expect(after.seq).toBe(2);
      expect(after.epoch).toBeGreaterThan(before.epoch);
      await harness.append("acc", "chat", messages("e", "f", "g"));
      expect(await harness.mine.read("acc", "chat", 4, before.epoch)).toMatchObject({
        kind: "resync",
        head: { seq: 5 },
      });
      const stayed = await harness.mine.read("acc", "chat", 2, before.epoch);
      expect(stayed).toMatchObject({ kind: "events", head: { epoch: after.epoch } });
      expect((await readAll(harness.mine, 2)).map(({ message }) => message.content)).toEqual(["e", "f", "g"]);
    });

    it("gives a chat to the first identity that claims it", async () => {
      expect(await harness.mine.claim("acc", "chat", "client:a")).toBe("client:a");
      expect(await harness.theirs.claim("acc", "chat", "client:b")).toBe("client:a");
      expect(await harness.theirs.claim("acc", "chat", "client:a")).toBe("client:a");
      expect(await harness.theirs.claim("acc", "other", "client:b")).toBe("client:b");
    });

    it("gives a contested chat to exactly one", async () => {
      const claims = Array.from({ length: 10 }, (_, i) =>
        (i % 2 === 0 ? harness.mine : harness.theirs).claim("acc", "hot", `client:${i}`),
      );
      expect(new Set(await Promise.all(claims)).size).toBe(1);
    });
  });
}

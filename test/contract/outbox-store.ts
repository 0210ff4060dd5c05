/**
 * What every `OutboxStore` must do, run over each implementation. `make` gives two processes' views of one outbox, and
 * the ways in and out that are not part of the port.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DeadLetter, OutboxStore } from "../../src/bus/delivery-ports.js";
import type { Outgoing } from "../../src/bus/messages.js";
import { outbound, outboxRoute } from "../fakes/outbound.js";

export interface OutboxHarness {
  mine: OutboxStore;
  theirs: OutboxStore;
  put(outgoing: Outgoing): Promise<void>;
  deadLetters(): Promise<DeadLetter[]>;
  close(): Promise<void>;
}

const LONG_MS = 60_000;

function out(id: string, chatId = "c1"): Outgoing {
  return { route: outboxRoute(chatId), message: { ...outbound(id), chatId } };
}

async function owned(store: OutboxStore, leaseMs = LONG_MS): Promise<number> {
  for (let tries = 0; tries < 200; tries += 1) {
    const got = await store.own("bot", leaseMs);
    if (got !== null) return got.fence;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("the account never became free");
}

/** Registers the suite under a name. */
export function outboxStoreContract(name: string, make: () => Promise<OutboxHarness>): void {
  describe(`outbox store: ${name}`, () => {
    let harness: OutboxHarness;
    beforeEach(async () => {
      harness = await make();
    });
    afterEach(() => harness.close());

    it("has one owner, who prolongs under the same fence", async () => {
      const fence = await owned(harness.mine);
      expect(await harness.mine.own("bot", LONG_MS)).toEqual({ fence });
      expect(await harness.theirs.own("bot", LONG_MS)).toBeNull();
      expect(await harness.theirs.own("another", LONG_MS)).not.toBeNull();
    });

    it("is free at once when it is given back, and only its owner can give it back", async () => {
      const fence = await owned(harness.mine);
      expect(await harness.theirs.own("bot", 0)).toBeNull();
      expect(await harness.theirs.own("bot", LONG_MS)).toBeNull();
      expect(await harness.mine.own("bot", 0)).toBeNull();
      const next = await harness.theirs.own("bot", LONG_MS);
      expect(next?.fence).toBeGreaterThan(fence);
    });

    it("passes on when the lease has ended, under a higher fence", async () => {
      const fence = await owned(harness.mine, 60);
      expect(await owned(harness.theirs)).toBeGreaterThan(fence);
    });

    it("refuses receipts and ends under an old fence, and then nothing has happened", async () => {
      await harness.put(out("a"));
      const [delivery] = await harness.mine.read("bot", "0", 0);
      if (delivery === undefined) throw new Error("nothing read");
      const old = await owned(harness.mine, 60);
      await owned(harness.theirs);
      const receipt = { state: "sent", platformId: "1" } as const;
      await expect(harness.mine.receipt("bot", old, "a", "0", receipt)).rejects.toMatchObject({ code: "LEASE_LOST" });
      await expect(harness.mine.consume("bot", old, delivery, null)).rejects.toMatchObject({ code: "LEASE_LOST" });
      expect(await harness.mine.receipts("a")).toEqual(new Map());
      expect(await harness.theirs.read("bot", "0", 0)).toHaveLength(1);
    });

    it("reads in order, from a position, and again from the start until consumed", async () => {
      for (const id of ["a", "b", "c"]) await harness.put(out(id));
      const all = await harness.mine.read("bot", "0", 0);
      expect(all.map(({ outgoing }) => outgoing.message.id)).toEqual(["a", "b", "c"]);
      expect(all[0]?.outgoing).toEqual(out("a"));
      const rest = await harness.mine.read("bot", all[0]?.entryId ?? "", 0);
      expect(rest.map(({ outgoing }) => outgoing.message.id)).toEqual(["b", "c"]);
      expect(await harness.theirs.read("bot", "0", 0)).toEqual(all);
      expect(await harness.mine.read("another", "0", 0)).toEqual([]);
    });

    it("waits for an entry", async () => {
      const reading = harness.mine.read("bot", "0", 10_000);
      await harness.put(out("late"));
      expect((await reading).map(({ outgoing }) => outgoing.message.id)).toEqual(["late"]);
    });

    it("keeps receipts by part until they are forgotten, for every process", async () => {
      const fence = await owned(harness.mine);
      await harness.mine.receipt("bot", fence, "a", "0", { state: "sent", platformId: "17" });
      await harness.mine.receipt("bot", fence, "a", "1", { state: "unknown", reason: "cut off" });
      await harness.mine.receipt("bot", fence, "a", "2", { state: "changed", into: [{ text: "plain" }] });
      await harness.mine.receipt("bot", fence, "a", "2.0", { state: "sent", platformId: "19" });
      await harness.mine.receipt("bot", fence, "a", "3", { state: "sent", platformId: "20" });
      await harness.mine.receipt("bot", fence, "a", "3", null);
      expect(await harness.theirs.receipts("a")).toEqual(
        new Map([
          ["0", { state: "sent", platformId: "17" }],
          ["1", { state: "unknown", reason: "cut off" }],
          ["2", { state: "changed", into: [{ text: "plain" }] }],
          ["2.0", { state: "sent", platformId: "19" }],
        ]),
      );
      expect(await harness.theirs.receipts("b")).toEqual(new Map());
    });

    it("ends a delivery as done or as a dead letter, once", async () => {
      await harness.put(out("a"));
      await harness.put(out("b"));
      const fence = await owned(harness.mine);
      const [a, b] = await harness.mine.read("bot", "0", 0);
      if (a === undefined || b === undefined) throw new Error("nothing read");
      const dead = { id: "b", channel: "recording", chatId: "c1", text: "b", error: "refused", attempts: 3 };
      await harness.mine.consume("bot", fence, a, null);
      await harness.mine.consume("bot", fence, b, dead);
      await harness.mine.consume("bot", fence, a, null);
      expect(await harness.mine.read("bot", "0", 0)).toEqual([]);
      expect(await harness.deadLetters()).toEqual([dead]);
    });
  });
}

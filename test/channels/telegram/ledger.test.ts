import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ledger } from "../../../src/channels/telegram/ledger.js";

const DAY_MS = 24 * 3_600_000;

describe("the offset", () => {
  it("is nothing before anything came", () => {
    expect(new Ledger().offset(0)).toBeNull();
    expect(new Ledger().position()).toBeNull();
  });

  it("stays before the oldest that is not done, then jumps behind all that are", () => {
    const ledger = new Ledger();
    for (const id of [5, 6, 7]) ledger.begin(id, 0);
    ledger.end(6);
    ledger.end(7);
    expect(ledger.offset(0)).toBe(5);
    expect([5, 6, 7].map((id) => ledger.begin(id, 0))).toEqual([false, false, false]);
    ledger.end(5);
    expect(ledger.offset(0)).toBe(8);
  });

  it("is not used when it is old, and follows numbers that began anew", () => {
    const ledger = new Ledger();
    ledger.restore({ next: 900, seenMs: 0 });
    expect(ledger.offset(5 * DAY_MS)).toBe(900);
    expect(ledger.offset(8 * DAY_MS)).toBeNull();
    expect(ledger.begin(3, 8 * DAY_MS)).toBe(true);
    ledger.end(3);
    expect(ledger.offset(8 * DAY_MS)).toBe(4);
  });

  it("never passes what is not done, in whatever order things end, and nothing is begun twice", () => {
    const order = fc.uniqueArray(fc.nat({ max: 29 }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(order, fc.nat({ max: 1000 }), (ends, first) => {
        const ledger = new Ledger();
        const open = new Set(Array.from({ length: 30 }, (_, at) => first + at));
        for (const id of open) expect(ledger.begin(id, 0)).toBe(true);
        for (const end of ends) {
          ledger.end(first + end);
          open.delete(first + end);
          expect(ledger.offset(0)).toBe(open.size === 0 ? first + 30 : Math.min(...open));
          // The platform brings everything from the offset on again.
          for (let id = ledger.offset(0) ?? 0; id < first + 30; id += 1) expect(ledger.begin(id, 0)).toBe(false);
        }
      }),
    );
  });
});

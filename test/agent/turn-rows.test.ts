/** What stored rows say about a turn, at every place where its holder may have died. */
import { describe, expect, test } from "vitest";
import { turnRowsOf } from "../../src/agent/turn-rows.js";
import { inboundKeyOf, turnIdOf } from "../../src/bus/messages.js";
import type { Row } from "../../src/session/row.js";
import { inbound } from "../support/bus-fixture.js";
import { turnOf } from "../support/turn-row-builders.js";

const one = inbound("one", { id: "m1" });
const two = inbound("two", { id: "m2" });
const three = inbound("three", { id: "m3" });
const [k1, k2, k3] = [one, two, three].map(inboundKeyOf) as [string, string, string];
const turn = turnOf(one);
const later = turnOf(three);

/** The turn of `message` in these rows, in short. */
function read(rows: readonly Row[], message = one) {
  const found = turnRowsOf(rows, { inboundKey: inboundKeyOf(message), clientId: message.id });
  return {
    begun: found.hasBegun,
    keys: found.inboundKeys,
    open: found.openCalls.map(({ id }) => id),
    waits: found.waits.map(({ waitId }) => waitId),
    final: found.final?.text ?? null,
    earlier: found.earlier.map(({ final, inboundKeys }) => [final.text, ...inboundKeys]),
    next: found.nextStep,
  };
}

const fresh = { begun: false, keys: [k1], open: [], waits: [], final: null, earlier: [], next: 1 };
const begun = { ...fresh, begun: true };
const called = [turn.user(one), turn.calls(1, "a", "b")];
const answered = [turn.user(one), turn.final(1, "done")];
const steered = [...answered, turn.user(two)];

const POSITIONS: Array<[where: string, rows: Row[], expected: ReturnType<typeof read>]> = [
  ["nothing", [], fresh],
  ["rows of another turn only", [later.user(three), later.final(1, "x")], fresh],
  ["the user row", [turn.user(one)], begun],
  ["an answer with calls", called, { ...begun, open: ["a", "b"], next: 2 }],
  ["one of two results", [...called, turn.result(1, "a")], { ...begun, open: ["b"], next: 2 }],
  ["all results", [...called, turn.result(1, "a"), turn.result(1, "b")], { ...begun, next: 2 }],
  ["a call that waits", [...called, turn.result(1, "a"), turn.wait(1, "b", 9)], { ...begun, waits: ["w-b"], next: 2 }],
  [
    "a call that waited and has its answer",
    [...called, turn.result(1, "a"), turn.wait(1, "b", 9), turn.result(1, "b")],
    { ...begun, next: 2 },
  ],
  ["a wait for a call nobody made", [turn.user(one), turn.wait(1, "x", 9)], { ...begun, next: 2 }],
  ["the final", answered, { ...begun, final: "done", next: 2 }],
  [
    "a message taken in after tools",
    [...called, turn.result(1, "a"), turn.result(1, "b"), turn.user(two)],
    { ...begun, keys: [k1, k2], next: 2 },
  ],
  ["a message taken in after the final", steered, { ...begun, keys: [k1, k2], earlier: [["done", k1]], next: 2 }],
  [
    "two finals",
    [...steered, turn.final(2, "done again")],
    { ...begun, keys: [k1, k2], earlier: [["done", k1]], final: "done again", next: 3 },
  ],
  ["stopped", [turn.user(one), turn.final(1, "so far", "stopped")], { ...begun, final: "so far", next: 2 }],
  ["failed", [turn.user(one), turn.final(1, "x", "failed")], { ...begun, final: "x", next: 2 }],
  [
    "rows of other turns around and within it",
    [later.user(two), later.final(1, "x"), ...called, later.user(three), turn.result(1, "a"), later.calls(1, "c")],
    { ...begun, open: ["b"], next: 2 },
  ],
  [
    "an older turn that others followed",
    [...answered, later.user(three), later.final(1, "x")],
    { ...begun, final: "done", next: 2 },
  ],
  ["a message that was said again", [turn.user(one), later.user(three), later.final(1, "x"), turn.user(one)], begun],
];

describe("the turn of a message", () => {
  test.each(POSITIONS)("after %s", (_where, rows, expected) => {
    expect(read(rows)).toEqual(expected);
  });

  test("a message that was taken in finds the turn that took it in", () => {
    const rows = [...steered, turn.final(2, "done again")];
    expect(read(rows, two)).toEqual(read(rows, one));
    expect(turnRowsOf(rows, { inboundKey: k2, clientId: "m2" }).turnId).toBe(turnIdOf(k1));
  });

  test("three answers in one turn each name what they answer", () => {
    const rows = [...steered, turn.final(2, "again"), turn.user(three), turn.final(3, "and again")];
    expect(read(rows).earlier).toEqual([
      ["done", k1],
      ["again", k2],
    ]);
    expect(read(rows).keys).toEqual([k1, k2, k3]);
  });

  test("a message that has not begun has the id its first key gives", () => {
    expect(turnRowsOf([], { inboundKey: k1, clientId: "m1" })).toMatchObject({
      turnId: turnIdOf(k1),
      clientIds: ["m1"],
    });
  });

  test("the stored end keeps its id, its outcome and its time; usage is summed", () => {
    const found = turnRowsOf([...called, turn.result(1, "a"), turn.final(2, "said", "stopped")], {
      inboundKey: k1,
      clientId: "m1",
    });
    expect(found.final).toEqual({
      text: "said",
      outcome: "stopped",
      outboundId: `${turn.turnId}.2`,
      step: 2,
      latencyMs: 5,
    });
    expect(found.usage).toEqual({ inputTokens: 2, outputTokens: 2, estimated: false });
  });
});

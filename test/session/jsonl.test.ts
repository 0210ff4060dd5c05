/** Reading a session file: rows survive whatever stands between them, and a fence voids what an older writer adds. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SessionReader } from "../../src/session/jsonl.js";
import { assistant, said, user } from "./support.js";

const line = (value: unknown): string => `${JSON.stringify(value)}\n`;
const fence = (value: number): string => `\n${line({ _type: "fence", fence: value })}`;

function readAll(...pieces: Array<string | Buffer>): SessionReader {
  const reader = new SessionReader();
  for (const piece of pieces) reader.feed(Buffer.from(piece));
  return reader;
}

describe("reading a session file", () => {
  it("ignores and counts rows and metadata behind a higher fence", () => {
    const reader = readAll(
      fence(5),
      line({ ...user("kept"), fence: 5 }),
      fence(9),
      line({ ...user("late"), fence: 5 }),
      line({ _type: "metadata", key: "late", fence: 5 }),
      line({ ...assistant("held"), fence: 9 }),
      line(user("by hand")),
      fence(7),
      line({ ...user("later still"), fence: 8 }),
    );
    expect(said(reader.rows)).toEqual(["user:kept", "assistant:held", "user:by hand"]);
    expect(reader.fencedOut).toBe(3);
    expect(reader.metadata).toBeNull();
    expect(reader.fence).toBe(9);
  });

  it("takes the last metadata line", () => {
    const reader = readAll(
      line({ _type: "metadata", key: "a" }),
      line(user("x")),
      line({ _type: "metadata", key: "b" }),
    );
    expect(reader.metadata?.key).toBe("b");
  });

  it.each([
    ["torn", '{"role":"user","content":"hel'],
    ["no JSON", "hello"],
    ["a list", '["role","user"]'],
    ["a number", "7"],
    ["null", "null"],
    ["a wrong role", '{"role":"robot","content":"x"}'],
    ["no role", '{"content":"x"}'],
    ["a number for content", '{"role":"user","content":7}'],
    ["a fence that is none", '{"_type":"fence","fence":"9"}'],
    ["a fence beyond any clock", '{"_type":"fence","fence":9007199254740991}'],
    ["an unknown type", '{"_type":"provider_state","state":{}}'],
    ["a wait without its id", '{"role":"wait","content":null,"call_id":"c"}'],
  ])("keeps a bad line aside: %s", (_name, bad) => {
    const reader = readAll(line(user("before")), `${bad}\n`, line(user("after")));
    expect(said(reader.rows)).toEqual(["user:before", "user:after"]);
    expect(reader.badLines.map(String)).toEqual([bad]);
  });

  it("takes bytes that are no UTF-8 for damage", () => {
    const bad = Buffer.from([0x7b, 0xff, 0xfe, 0x7d]);
    const reader = readAll(Buffer.concat([bad, Buffer.from("\n")]), line(user("after")));
    expect(reader.badLines).toEqual([bad]);
    expect(said(reader.rows)).toEqual(["user:after"]);
  });

  it("does not judge a last line that has not ended", () => {
    const whole = JSON.stringify(user("whole"));
    const reader = readAll(line(user("first")), whole.slice(0, 9));
    expect([reader.rows.length, reader.badLines.length, reader.hasTornTail]).toEqual([1, 0, true]);
    reader.feed(Buffer.from(`${whole.slice(9)}\n`));
    expect(said(reader.rows)).toEqual(["user:first", "user:whole"]);
  });

  it("shows a whole last line to a reader without a lease, and not a torn one", () => {
    const whole = readAll(JSON.stringify(user("whole")));
    whole.finish();
    expect(said(whole.rows)).toEqual(["user:whole"]);
    const torn = readAll('{"role":"user"');
    torn.finish();
    expect([torn.rows.length, torn.badLines.length]).toEqual([0, 0]);
  });

  it("keeps unknown fields and leaves known fields of a wrong type out", () => {
    const [row] = readAll(line({ role: "user", content: "x", mood: { up: 1 }, step: "three", media: [7] })).rows;
    expect(row).toEqual({ role: "user", content: "x", mood: { up: 1 } });
  });

  it("reads lines of other systems: byte order mark, carriage returns, blank lines", () => {
    const reader = readAll(`\ufeff${JSON.stringify(user("a"))}\r\n\r\n \t\n${JSON.stringify(user("b"))}\r\n`);
    expect(said(reader.rows)).toEqual(["user:a", "user:b"]);
    expect(reader.badLines).toEqual([]);
  });
});

type Piece =
  | { kind: "good"; text: string }
  | { kind: "garbage"; bytes: Buffer }
  | { kind: "torn"; text: string }
  | { kind: "fence" };

const garbage = fc
  .uint8Array({ minLength: 1, maxLength: 60 })
  .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 0x0a ? 0x20 : byte))));
const piece: fc.Arbitrary<Piece> = fc.oneof(
  fc.record({ kind: fc.constant("good" as const), text: fc.string({ unit: "binary", maxLength: 30 }) }),
  fc.record({ kind: fc.constant("garbage" as const), bytes: garbage }),
  fc.record({ kind: fc.constant("torn" as const), text: fc.string({ unit: "grapheme", maxLength: 30 }) }),
  fc.record({ kind: fc.constant("fence" as const) }),
);

/** A file of these pieces, with the rows that must be read from it: holders fence, write, are torn, are followed. */
function build(pieces: readonly Piece[], cut: number): { bytes: Buffer; texts: string[] } {
  const parts: Buffer[] = [Buffer.from(fence(1))];
  const texts: string[] = [];
  let holder = 1;
  for (const part of pieces) {
    const row =
      part.kind === "good" || part.kind === "torn" ? line({ role: "user", content: part.text, fence: holder }) : "";
    if (part.kind === "good") texts.push(part.text);
    if (part.kind === "good") parts.push(Buffer.from(row));
    if (part.kind === "garbage") parts.push(part.bytes, Buffer.from("\n"));
    // A killed writer's row is ended by the next holder's fence; a zombie's row comes behind it.
    if (part.kind === "torn") parts.push(Buffer.from(row).subarray(0, 1 + (cut % (row.length - 2))));
    if (part.kind === "fence" || part.kind === "torn") {
      parts.push(Buffer.from(fence(holder + 1)), Buffer.from(line({ role: "user", content: "zombie", fence: holder })));
      holder += 1;
    }
  }
  return { bytes: Buffer.concat(parts), texts };
}

describe("any mixture of rows, garbage, torn rows and fences", () => {
  it("gives every good row in order, however the bytes are cut, and never throws", () => {
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 20 }),
        fc.nat(),
        fc.integer({ min: 1, max: 40 }),
        (pieces, cut, size) => {
          const { bytes, texts } = build(pieces, cut);
          const reader = new SessionReader();
          for (let at = 0; at < bytes.length; at += size) reader.feed(bytes.subarray(at, at + size));
          expect(reader.rows.map((row) => row.content)).toEqual(texts.map((text) => text.toWellFormed()));
          expect(reader.bytes).toBe(bytes.length);
          expect(reader.fencedOut).toBe(pieces.filter(({ kind }) => kind === "fence" || kind === "torn").length);
        },
      ),
      { numRuns: 500 },
    );
  });
});

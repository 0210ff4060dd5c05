/** File names of sessions: readable, injective, safe. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { asSessionKey, type SessionKey } from "../../src/bus/messages.js";
import { sessionFileName, sessionKeyOfFile } from "../../src/session/keys.js";

/** Past the door that makes keys well-formed: names must not rest on it. */
const raw = (text: string): SessionKey => text as SessionKey;

const unit = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(":", "_", "%", ".", "/", "\\", "~", "-", "a", "A", "2", "E", "é", "😀", "\0"),
  },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) },
);
/** Any UTF-16 text, lone surrogates included, with the characters that matter more often than chance would have them. */
const anyKey = fc.array(unit, { minLength: 1, maxLength: 300 }).map((units) => raw(units.join("").slice(0, 512)));

describe("session file names", () => {
  it.each([
    ["cli:direct", "cli_direct.jsonl"],
    ["telegram:-100:topic:7", "telegram_-100_topic_7.jsonl"],
    ["a_b", "a%5Fb.jsonl"],
    ["..", "%2E..jsonl"],
    ["../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd.jsonl"],
    ["é😀", "%C3%A9%F0%9F%98%80.jsonl"],
  ])("%s is kept in %s", (key, name) => {
    expect(sessionFileName(asSessionKey(key))).toBe(name);
    expect(sessionKeyOfFile(name)).toBe(key);
  });

  it("keeps keys apart that differ only in lone surrogates, also when shortened", () => {
    for (const tail of ["", "x".repeat(400)]) {
      const heads = [0xd800, 0xd801, 0xdc00, 0xfffd].map((code) => String.fromCharCode(code));
      const names = heads.map((head) => sessionFileName(raw(head + tail)));
      expect(new Set(names).size).toBe(4);
    }
  });

  it("gives different keys different names", () => {
    fc.assert(
      fc.property(anyKey, anyKey, (a, b) => {
        expect(sessionFileName(a) === sessionFileName(b)).toBe(a === b);
      }),
      { numRuns: 500 },
    );
  });

  it("gives neighbours different names: one character changed, long keys too", () => {
    const place = fc.nat(1000);
    fc.assert(
      fc.property(anyKey, place, unit, (key, at, other) => {
        const index = at % key.length;
        const neighbour = raw((key.slice(0, index) + other + key.slice(index + 1)).slice(0, 512));
        expect(sessionFileName(neighbour) === sessionFileName(key)).toBe(neighbour === key);
      }),
      { numRuns: 500 },
    );
  });

  it("is one safe path segment with room for every suffix", () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const name = sessionFileName(key);
        expect(name).toMatch(/^[A-Za-z0-9_%~-][A-Za-z0-9_%~.-]*\.jsonl$/);
        expect(Buffer.byteLength(`${name}.bad-20260301T120000000Z-99`)).toBeLessThanOrEqual(255);
      }),
      { numRuns: 500 },
    );
  });

  it("finds the key again, a shortened one by what the file says of itself", () => {
    fc.assert(
      fc.property(anyKey, (any) => {
        const key = asSessionKey(any);
        const name = sessionFileName(key);
        expect(sessionKeyOfFile(name, key)).toBe(key);
        expect(sessionKeyOfFile(name, `${key}?`.slice(-500))).not.toBe(`${key}?`.slice(-500));
      }),
      { numRuns: 300 },
    );
  });

  it.each(["a b.jsonl", "a%5f.jsonl", "%zz.jsonl", ".jsonl", "notes.txt", "a~b.jsonl"])(
    "knows no key for %s",
    (name) => {
      expect(sessionKeyOfFile(name)).toBeNull();
    },
  );
});

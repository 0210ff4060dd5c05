/** Export and import as text: the way there and back, nanobot's lines, damage. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { asSessionKey } from "../../src/bus/messages.js";
import type { Row } from "../../src/session/row.js";
import { createSession } from "../../src/session/session.js";
import { exportText, readImport } from "../../src/session/transfer.js";
import { assistant, calling, createStage, KEY, result, said, user } from "./support.js";

const NOW = "2026-03-01T12:00:00.000Z";
const read = (text: string, name = "x.jsonl") => readImport(Buffer.from(text), name, NOW);
const jsonl = (lines: readonly unknown[]): string => lines.map((line) => JSON.stringify(line)).join("\n");

const wellFormed = fc.string({ unit: "binary" });
const row: fc.Arbitrary<Row> = fc.oneof(
  fc.record({ role: fc.constant("user" as const), content: wellFormed, timestamp: fc.constant(NOW) }),
  fc.record({ role: fc.constant("assistant" as const), content: wellFormed, turn_id: wellFormed, step: fc.nat() }),
);

describe("the way out and in", () => {
  it("gives the same session, whatever stands in it; fences stay behind", () => {
    const session = fc.record({
      key: fc.string({ minLength: 1, maxLength: 40, unit: "binary" }).map(asSessionKey),
      rows: fc.array(row, { maxLength: 8 }),
      metadata: fc.dictionary(wellFormed, fc.jsonValue()),
      consolidated: fc.nat({ max: 8 }),
      fence: fc.nat(),
    });
    fc.assert(
      fc.property(session, ({ key, rows, metadata, consolidated, fence }) => {
        const last = Math.min(consolidated, rows.length);
        const stored = { key, created_at: NOW, updated_at: NOW, last_consolidated: last, cleared: last };
        const line = { ...stored, metadata: JSON.parse(JSON.stringify(metadata)) };
        const original = createSession({ key, rows: rows.map((each) => ({ ...each, fence })), line, now: "never" });
        const text = exportText(original);
        expect(text).not.toContain('"fence":');
        const back = read(text);
        expect(back).toEqual({ skipped: 0, session: { ...original, messages: rows } });
      }),
    );
  });
});

describe("import", () => {
  it("leaves out rows behind a higher fence, a provider's state, and counts what is unusable", () => {
    const text = jsonl([
      { _type: "metadata", key: "cli:a" },
      { _type: "provider_state", state: {} },
      { role: "user", content: "one", fence: 5 },
      { _type: "fence", fence: 9 },
      { role: "assistant", content: "zombie", fence: 5 },
      { role: "assistant", content: "two", fence: 9 },
      ["no row"],
    ]);
    const found = read(`${text}\n{"role":"torn\n`);
    expect(found?.session.messages).toEqual([
      { role: "user", content: "one" },
      { role: "assistant", content: "two" },
    ]);
    expect(found?.skipped).toBe(3);
  });

  it("takes the key from the file's name where the metadata has none", () => {
    const rows = jsonl([{ role: "user", content: "hi" }]);
    expect(read(rows, "telegram_42.jsonl")?.session.key).toBe("telegram:42");
    expect(read(rows, "notes.txt")).toBeNull();
  });

  it.each(["", "\n", "no json", '{"a":1}', "[]", "\u0000\u0001"])("takes %j for no session", (text) => {
    expect(read(text)).toBeNull();
  });

  it("never throws, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        readImport(Buffer.from(bytes), "a.jsonl", NOW);
      }),
    );
  });
});

describe("adopting", () => {
  it("takes over times and metadata; indexes move with the rows that no replay could use", async () => {
    const stage = await createStage();
    const rows = [
      user("a"),
      result("nobody asked"),
      assistant("b"),
      calling("c1"),
      result("c1"),
      result("c1"),
      user("c"),
    ];
    const stored = { created_at: "2025-01-01T00:00:00.000Z", updated_at: "2025-02-02T00:00:00.000Z", key: KEY };
    const line = { ...stored, metadata: { title: "T" }, last_consolidated: 6, cleared: 3 };
    const opened = await stage.open(stage.manager());
    await opened.adopt(createSession({ key: KEY, rows, line, now: NOW }));
    await opened.close();
    const view = await stage.manager().readSessionFile(KEY);
    expect(view).toMatchObject({
      createdAt: stored.created_at,
      updatedAt: stored.updated_at,
      metadata: { title: "T" },
    });
    expect(said(view?.messages ?? [])).toEqual(["user:a", "assistant:b", "assistant:null", "tool:done", "user:c"]);
    expect(said(view?.messages.slice(view.clearedRows) ?? [])).toEqual(["assistant:null", "tool:done", "user:c"]);
    expect(said(view?.messages.slice(view.lastConsolidated) ?? [])).toEqual(["user:c"]);
  });
});

/** Repair and rewriting: what was bad is kept aside byte for byte, what was good survives, and nothing is half done. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { FileState } from "../../src/session/ports.js";
import { assistant, createStage, KEY, type Stage, said, user } from "./support.js";

async function kept(stage: Stage): Promise<Buffer[]> {
  const names = (await readdir(stage.folder)).filter((name) => name.includes(".bad-")).sort();
  return await Promise.all(names.map((name) => readFile(join(stage.folder, name))));
}

describe("repair at opening", () => {
  it("keeps valid lines in order and the bad ones aside byte for byte [T028]", async () => {
    const stage = await createStage();
    const bad = [Buffer.from('{"role":"us'), Buffer.from([0xff, 0x00, 0x80]), Buffer.from("[1]")];
    const good = [user("a"), assistant("b"), user("c"), { ...assistant("d"), extra: "é" }].map((row) =>
      JSON.stringify(row),
    );
    await stage.put(
      Buffer.concat(
        good.flatMap((line, at) => [Buffer.from(`${line}\n`), bad[at] ?? Buffer.from(""), Buffer.from("\n")]),
      ),
    );
    const open = await stage.open(stage.manager());
    expect(said(open.session.messages)).toEqual(["user:a", "assistant:b", "user:c", "assistant:d"]);
    expect(open.session.messages[3]).toMatchObject({ extra: "é" });
    expect(await kept(stage)).toEqual([Buffer.concat(bad.flatMap((line) => [line, Buffer.from("\n")]))]);
    expect(stage.authority.known).toEqual(open.state());
    await open.close();
    const view = await stage.manager().readSessionFile(KEY);
    expect(view).toMatchObject({ badLines: 0, messages: open.session.messages });
    expect(stage.log.map((line) => line.msg)).toContain("bad lines kept aside");
  });

  it("uses defaults for a bad metadata line and keeps the rows [T027]", async () => {
    const stage = await createStage();
    await stage.put(
      `{"_type":"metadata","key\n${JSON.stringify({ ...user("a"), timestamp: "2026-01-02T00:00:00Z" })}\n`,
    );
    const open = await stage.open(stage.manager());
    expect(open.session).toMatchObject({ metadata: {}, lastConsolidated: 0, createdAt: "2026-01-02T00:00:00Z" });
    expect(open.session.messages).toHaveLength(1);
    await open.close();
  });

  it.each([-1, 5, true, "2", 0.5, null])(
    "keeps every row and resets a consolidation mark of %s [T010]",
    async (mark) => {
      const stage = await createStage();
      const line = {
        _type: "metadata",
        key: KEY,
        metadata: null,
        created_at: "soon",
        updated_at: 7,
        last_consolidated: mark,
      };
      await stage.put([line, user("a"), assistant("b")].map((row) => `${JSON.stringify(row)}\n`).join(""));
      const open = await stage.open(stage.manager());
      expect(open.session).toMatchObject({ lastConsolidated: 0, metadata: {}, createdAt: "2026-03-01T12:00:00.000Z" });
      expect(open.session.messages).toHaveLength(2);
      await open.close();
    },
  );

  it("keeps a file with nothing usable aside whole and starts anew [X032, T030]", async () => {
    const stage = await createStage();
    const original = Buffer.from("garbage\n\n\u0000\u0000\u0000\n{half");
    await stage.put(original);
    const open = await stage.open(stage.manager());
    expect(open.session.messages).toEqual([]);
    await open.append([user("fresh")]);
    await open.close();
    expect(await kept(stage)).toEqual([original]);
    expect(stage.log.map((line) => line.msg)).toContainEqual(
      expect.stringContaining("nothing in the session file is usable"),
    );
    expect(said((await stage.manager().readSessionFile(KEY))?.messages ?? [])).toEqual(["user:fresh"]);
  });

  it("never overwrites what was kept before", async () => {
    const stage = await createStage();
    for (const text of ["first", "second"]) {
      await stage.put(text);
      stage.authority.known = null;
      await (await stage.open(stage.manager())).close();
    }
    expect((await kept(stage)).map(String).sort()).toEqual(["first", "second"]);
  });

  it("costs a torn last line only that line [SES-21]", async () => {
    const stage = await createStage();
    await stage.put(`${JSON.stringify(user("a"))}\n{"role":"assistant","con`);
    const view = await stage.manager().readSessionFile(KEY);
    expect(view).toMatchObject({ badLines: 0, messages: [{ content: "a" }] });
    const open = await stage.open(stage.manager());
    expect(said(open.session.messages)).toEqual(["user:a"]);
    expect((await kept(stage)).map(String)).toEqual(['{"role":"assistant","con\n']);
    await open.close();
  });
});

describe("reading for display", () => {
  it("shows a whole last line although nothing ended it, as a holder would", async () => {
    const stage = await createStage();
    await stage.put(JSON.stringify(user("by hand")));
    expect(said((await stage.manager().readSessionFile(KEY))?.messages ?? [])).toEqual(["user:by hand"]);
    const open = await stage.open(stage.manager());
    expect(said(open.session.messages)).toEqual(["user:by hand"]);
    await open.close();
  });
});

describe("rewriting", () => {
  it("commits the new file before anything is appended, and leaves only the file", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await open.append([user("a")]);
    const lease = stage.authority.take();
    await open.close();
    const commits: Array<{ file: FileState; names: string[]; text: string }> = [];
    const commit = async (file: FileState) => {
      commits.push({ file, names: await stage.names(), text: await stage.text() });
    };
    const next = await stage.manager().open(lease, null, { check: async () => {}, commit });
    const [compacted] = await Promise.all([next.compact(), next.append([assistant("b")])]);
    expect(compacted).toBeUndefined();
    const size = Number((await stat(stage.path)).size);
    expect(commits).toHaveLength(1);
    expect(commits[0]?.names).toEqual(["cli_direct.jsonl", "cli_direct.jsonl.prev"]);
    expect(commits[0]?.text).not.toContain('"b"');
    expect(commits[0]?.file.bytes).toBe(Buffer.byteLength(commits[0]?.text ?? ""));
    expect(next.state()).toEqual({ ...commits[0]?.file, bytes: size });
    expect(await stage.names()).toEqual(["cli_direct.jsonl"]);
    await next.close();
  });

  it("removes its temporary file and leaves the old one alone when writing fails [T022]", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await open.append([user("a"), assistant("b")]);
    const [before, append] = [await stage.text(), stage.io.append];
    stage.io.append = async (handle, bytes) => {
      if (bytes.length < 100) throw Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" });
      return await append(handle, bytes.subarray(0, bytes.length - 50));
    };
    await expect(open.compact()).rejects.toMatchObject({ code: "SESSION_UNWRITABLE", cause: { code: "ENOSPC" } });
    expect(await stage.text()).toBe(before);
    expect(await stage.names()).toEqual(["cli_direct.jsonl"]);
    await open.close();
  });

  it("happens by itself when stale lines outnumber rows, and loses nothing", async () => {
    const stage = await createStage();
    const manager = stage.manager();
    const first = await stage.open(manager);
    await first.append([user("a"), assistant("b")]);
    await first.setMetadata({ metadata: { title: "T" }, lastConsolidated: 1 });
    await first.close();
    const sizes: number[] = [];
    for (let times = 0; times < 70; times += 1) {
      const open = await stage.open(manager);
      sizes.push(open.state().bytes);
      await open.close();
    }
    expect(Math.max(...sizes)).toBeGreaterThan(sizes.at(-1) ?? 0);
    const view = await stage.manager().readSessionFile(KEY);
    expect(view).toMatchObject({ metadata: { title: "T" }, lastConsolidated: 1, fencedOut: 0 });
    expect(said(view?.messages ?? [])).toEqual(["user:a", "assistant:b"]);
  });

  it("accepts its own rows afterwards: no row stands behind a higher fence", async () => {
    const stage = await createStage();
    for (const text of ["a", "b", "c"]) {
      const open = await stage.open(stage.manager());
      await open.append([user(text)]);
      if (text === "b") await open.compact();
      await open.close();
    }
    const view = await stage.manager().readSessionFile(KEY);
    expect(view).toMatchObject({ fencedOut: 0 });
    expect(said(view?.messages ?? [])).toEqual(["user:a", "user:b", "user:c"]);
  });
});

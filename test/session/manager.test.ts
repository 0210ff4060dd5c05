/** The manager: cache, display, list, delete, flush; and that a turn costs the same however long its session is. */
import { readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { asSessionKey, type SessionKey } from "../../src/bus/messages.js";
import { getHistory } from "../../src/session/history.js";
import { sessionFileName } from "../../src/session/keys.js";
import type { SessionManager } from "../../src/session/manager.js";
import type { Row } from "../../src/session/row.js";
import { assistant, createStage, KEY, type Stage, said, user } from "./support.js";

async function write(stage: Stage, manager: SessionManager, key: SessionKey, ...rows: Row[]): Promise<void> {
  const lease = stage.authority.take(key);
  const open = await manager.open(lease, null, lease.guard);
  if (rows.length > 0) await open.append(rows);
  await open.close();
}

const keys = (...names: string[]): SessionKey[] => names.map(asSessionKey);

describe("the cache", () => {
  it("lets the least recently used go, and using refreshes [T012]", async () => {
    const stage = await createStage();
    const manager = stage.manager({ cacheSize: 2 });
    const [a, b, c] = keys("a", "b", "c") as [SessionKey, SessionKey, SessionKey];
    for (const key of [a, b, a, c]) await write(stage, manager, key, user("x"));
    expect([a, b, c].map((key) => manager.isCached(key))).toEqual([true, false, true]);
    expect(manager.cachedCount).toBe(2);
  });

  it("gives the same object again, also when others went through the cache while it was held [T013]", async () => {
    const stage = await createStage();
    const manager = stage.manager({ cacheSize: 1 });
    const held = await stage.open(manager);
    await held.append([user("a")]);
    for (const key of keys("x", "y")) await write(stage, manager, key, user("other"));
    await held.close();
    const again = await stage.open(manager);
    expect(again.session).toBe(held.session);
    await again.close();
  });

  it("takes in what another process wrote to a file it knows", async () => {
    const stage = await createStage();
    const [here, there] = [stage.manager(), stage.manager()];
    await write(stage, here, KEY, user("a"));
    await write(stage, there, KEY, assistant("b"));
    await write(stage, here, KEY, user("c"));
    const open = await stage.open(here);
    expect(said(open.session.messages)).toEqual(["user:a", "assistant:b", "user:c"]);
    await open.close();
  });

  it("forgets a copy whose file was replaced by another of any size", async () => {
    const stage = await createStage();
    const manager = stage.manager();
    await write(stage, manager, KEY, user("secret of the deleted session"));
    await rm(stage.path);
    await stage.put(`${JSON.stringify(user("new".repeat(200)))}\n`);
    const open = await stage.open(manager);
    expect(said(open.session.messages)).toEqual([`user:${"new".repeat(200)}`]);
    await open.close();
  });

  it("keeps nothing of a session that was invalidated while open", async () => {
    const stage = await createStage();
    const manager = stage.manager();
    const open = await stage.open(manager);
    manager.invalidate(KEY);
    await open.close();
    expect(manager.isCached(KEY)).toBe(false);
  });

  it("is not filled by reading for display or by listing [T037]", async () => {
    const stage = await createStage();
    await write(stage, stage.manager(), KEY, user("a"));
    const manager = stage.manager();
    expect(await manager.readSessionFile(KEY)).toMatchObject({ key: KEY, messages: [{ content: "a" }] });
    await manager.list();
    expect(manager.cachedCount).toBe(0);
    expect(await manager.readSessionFile(asSessionKey("nobody"))).toBeNull();
  });
});

describe("a new conversation", () => {
  it("starts with an empty history and no summary; the old rows stay in the file", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await open.append([user("old"), assistant("answer")]);
    await open.setMetadata({ metadata: { _last_summary: { text: "s" }, title: "T" } });
    await open.clear();
    await open.append([user("new")]);
    expect(getHistory(open.session)).toEqual([{ role: "user", content: "new" }]);
    await open.close();
    const view = await stage.manager().readSessionFile(KEY);
    expect(view).toMatchObject({ metadata: { title: "T" }, lastConsolidated: 2, clearedRows: 2 });
    expect(view?.metadata).not.toHaveProperty("_last_summary");
    expect(view?.messages).toHaveLength(3);
    expect((await stage.manager().list())[0]?.preview).toBe("new");
  });

  it("refuses a consolidation mark beyond the rows", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await expect(open.setMetadata({ lastConsolidated: 1 })).rejects.toThrow(RangeError);
    await open.close();
  });
});

describe("the list", () => {
  it("names sessions newest first, with title and preview", async () => {
    const stage = await createStage();
    const at = (timestamp: string, row: Row): string => `${JSON.stringify({ ...row, timestamp })}\n`;
    const put = (key: string, text: string) => writeFile(join(stage.folder, sessionFileName(asSessionKey(key))), text);
    await put(
      "old",
      at("2026-01-01T00:00:00Z", { ...user("/help"), _command: true }) + at("2026-01-01T00:00:01Z", user("hi\n there")),
    );
    await put("new", at("2026-02-01T00:00:00Z", assistant("unasked")));
    await put(
      "long",
      `{"_type":"metadata","metadata":{"title":"<think>hm</think> Plan"}}\n${at("2026-01-15T00:00:00Z", user("😀".repeat(200)))}`,
    );
    const list = await stage.manager().list();
    expect(list.map(({ key, title, preview }) => [key, title, preview])).toEqual([
      ["new", null, "unasked"],
      ["long", "Plan", `${"😀".repeat(119)}…`],
      ["old", null, "hi there"],
    ]);
    expect(list[2]).toMatchObject({ createdAt: "2026-01-01T00:00:00Z", updatedAt: "2026-01-01T00:00:01Z" });
  });

  it("shows a corrupt file, a hashed name, and hides what is no session [T031, T033]", async () => {
    const stage = await createStage();
    const long = asSessionKey("k".repeat(400));
    await write(stage, stage.manager(), long, user("x"));
    await stage.put("garbage\n");
    for (const name of ["a b.jsonl", "cli_direct.jsonl.bad-1", "notes.txt"])
      await writeFile(join(stage.folder, name), "x\n");
    const list = await stage.manager().list();
    expect(list.map(({ key }) => key).sort()).toEqual([KEY, long].sort());
    expect(await stage.text()).toBe("garbage\n");
  });

  it("stops looking in a huge session, and still knows when it was last used [T039]", async () => {
    const stage = await createStage();
    const line = (timestamp: string, row: Row): string => `${JSON.stringify({ ...row, timestamp })}\n`;
    const filler = line("2026-01-01T00:00:00Z", assistant("z".repeat(1000))).repeat(1500);
    await stage.put(`${filler}${line("2026-02-02T00:00:00Z", user("too late to be seen"))}`);
    const [summary] = await stage.manager().list();
    expect(summary).toMatchObject({ updatedAt: "2026-02-02T00:00:00Z", preview: `${"z".repeat(119)}…` });
  });
});

describe("deleting", () => {
  it("takes the file, what is kept beside it and the cached copy, once [T034]", async () => {
    const stage = await createStage();
    const manager = stage.manager();
    await write(stage, manager, KEY, user("a"));
    await write(stage, manager, asSessionKey("cli:direct2"), user("other"));
    for (const end of ["bad-1", "prev", "tmp-3"]) await writeFile(`${stage.path}.${end}`, "x");
    const lease = stage.authority.take();
    expect(await manager.delete(lease)).toBe(true);
    expect(await manager.delete(lease)).toBe(false);
    expect(await stage.names()).toEqual(["cli_direct2.jsonl"]);
    expect(manager.isCached(KEY)).toBe(false);
    stage.authority.take();
    await expect(manager.delete(lease)).rejects.toMatchObject({ code: "LEASE_LOST" });
  });
});

describe("flushing", () => {
  it("flushes file and folder before a settlement, or only at the end, as it is set [T016]", async () => {
    for (const fsync of ["turn", "exit"] as const) {
      const stage = await createStage();
      const flushed: string[] = [];
      stage.io.sync = async (handle) => void flushed.push((await handle.stat()).isDirectory() ? "folder" : "file");
      const manager = stage.manager({ fsync });
      const open = await stage.open(manager);
      await open.append([user("a")]);
      await open.sync();
      expect(flushed).toEqual(fsync === "turn" ? ["file", "folder"] : []);
      await open.append([user("b")]);
      await open.sync();
      expect(flushed).toEqual(fsync === "turn" ? ["file", "folder", "file"] : []);
      await open.close();
      expect(await manager.flushAll()).toBe(fsync === "turn" ? 0 : 1);
      expect(await manager.flushAll()).toBe(0);
    }
  });

  it("goes on past a file that cannot be flushed, counts the others, and tries that one again [T018, T019]", async () => {
    const stage = await createStage();
    const manager = stage.manager({ fsync: "exit" });
    for (const key of keys("a", "b", "c")) await write(stage, manager, key, user(key));
    const [broken, sync] = [(await stat(join(stage.folder, "b.jsonl"))).ino, stage.io.sync];
    stage.io.sync = async (handle) => {
      if ((await handle.stat()).ino === broken) throw Object.assign(new Error("EIO"), { code: "EIO" });
      await sync(handle);
    };
    expect(await manager.flushAll()).toBe(2);
    stage.io.sync = sync;
    expect(await manager.flushAll()).toBe(1);
    for (const key of keys("a", "b", "c")) {
      expect(said((await stage.manager().readSessionFile(key))?.messages ?? [])).toEqual([`user:${key}`]);
    }
  });
});

describe("a long session", () => {
  it("costs a turn as few bytes as a short one [X042]", async () => {
    const stage = await createStage();
    const rows = Array.from({ length: 50_000 }, (_, index) => `${JSON.stringify(user(`row ${index}`))}\n`);
    await stage.put(rows.join(""));
    const manager = stage.manager();
    await (await stage.open(manager)).close();
    const [before, written, append] = [(await stat(stage.path)).size, [] as number[], stage.io.append];
    stage.io.append = async (handle, bytes) => {
      written.push(bytes.length);
      return await append(handle, bytes);
    };
    const open = await stage.open(manager);
    await open.append([user("q")]);
    await open.append([assistant("a")]);
    await open.sync();
    await open.close();
    const grown = (await stat(stage.path)).size - before;
    expect(written.reduce((sum, bytes) => sum + bytes, 0)).toBe(grown);
    expect(grown).toBeLessThan(500);
    expect(open.session.messages).toHaveLength(50_002);
    expect(await readdir(stage.folder)).toEqual(["cli_direct.jsonl"]);
  });
});

describe("two managers on one folder", () => {
  it("hand a session to and fro without tearing or losing a row [T024]", async () => {
    const stage = await createStage();
    const managers = [stage.manager(), stage.manager(), stage.manager({ cacheSize: 0 })];
    const expected: string[] = [];
    for (let turn = 0; turn < 60; turn += 1) {
      const manager = managers[(turn % 7) % 3];
      if (manager === undefined) continue;
      const open = await stage.open(manager);
      await open.append([user(`q${turn}`), assistant(`a${turn}`)]);
      if (turn % 5 === 0) await open.setMetadata({ metadata: { turn } });
      if (turn % 17 === 0) await open.compact();
      stage.authority.known = open.state();
      await open.close();
      expected.push(`user:q${turn}`, `assistant:a${turn}`);
    }
    const view = await stage.manager().readSessionFile(KEY);
    expect(said(view?.messages ?? [])).toEqual(expected);
    expect(view).toMatchObject({ badLines: 0, fencedOut: 0, metadata: { turn: 55 } });
  });
});

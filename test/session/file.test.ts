/** The session file under a fence: what is written, what a later holder finds, and what a killed or frozen one leaves. */
import { copyFile, link, mkdir, readFile, rename, rm, symlink, truncate } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { inodeOf } from "../../src/session/io.js";
import { addLine, assistant, calling, createStage, KEY, result, said, user } from "./support.js";

describe("writing", () => {
  it("begins a file with its metadata, then the fence, then rows that carry fence and time", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await open.append([{ ...user("hello"), turn_id: "t1", step: 0 }]);
    await open.close();
    const lines = (await stage.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toEqual([
      expect.objectContaining({ _type: "metadata", key: "cli:direct", metadata: {}, last_consolidated: 0 }),
      { _type: "fence", fence: 1 },
      { role: "user", content: "hello", turn_id: "t1", step: 0, fence: 1, timestamp: "2026-03-01T12:00:00.000Z" },
    ]);
  });

  it("gives the same session to a later holder, in another manager too", async () => {
    const stage = await createStage();
    const first = await stage.open(stage.manager());
    await first.append([user("a"), assistant("b")]);
    await first.setMetadata({ metadata: { title: "T" }, lastConsolidated: 1 });
    await first.close();
    const second = await stage.open(stage.manager());
    expect(said(second.session.messages)).toEqual(["user:a", "assistant:b"]);
    expect(second.session).toMatchObject({ metadata: { title: "T" }, lastConsolidated: 1 });
    await second.close();
  });

  it("voids what a frozen holder writes after another took over, and counts it", async () => {
    const stage = await createStage();
    const [managerA, managerB] = [stage.manager(), stage.manager()];
    const leaseA = stage.authority.take();
    const a = await stage.open(managerA, leaseA);
    await a.append([user("a1")]);
    leaseA.isUnaware = true;
    const b = await stage.open(managerB);
    await b.append([user("b1")]);
    await a.append([assistant("late")]);
    await a.setMetadata({ metadata: { title: "late" } });
    await b.append([assistant("b2")]);
    await Promise.all([a.close(), b.close()]);
    const view = await stage.manager().readSessionFile(KEY);
    expect(said(view?.messages ?? [])).toEqual(["user:a1", "user:b1", "assistant:b2"]);
    expect(view).toMatchObject({ fencedOut: 2, metadata: {}, badLines: 0 });
    for (const manager of [managerA, managerB]) {
      const open = await stage.open(manager);
      expect(said(open.session.messages)).toEqual(["user:a1", "user:b1", "assistant:b2"]);
      await open.close();
    }
  });

  it("reads what a frozen holder had written just before the fence line", async () => {
    const stage = await createStage();
    const manager = stage.manager();
    await (await stage.open(manager)).close();
    const [before, append] = [JSON.stringify({ ...user("in time"), fence: 1 }), stage.io.append];
    stage.io.append = async (handle, bytes) => {
      stage.io.append = append;
      await addLine(stage.path, `${before}\n`);
      return await append(handle, bytes);
    };
    const open = await stage.open(manager);
    await open.append([user("mine")]);
    expect(said(open.session.messages)).toEqual(["user:in time", "user:mine"]);
    await open.close();
    expect(said((await stage.manager().readSessionFile(KEY))?.messages ?? [])).toEqual(["user:in time", "user:mine"]);
  });

  it("writes nothing once the lease is lost", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    const before = await stage.text();
    stage.authority.fence += 1;
    await expect(open.append([user("x")])).rejects.toMatchObject({ code: "LEASE_LOST" });
    await expect(open.setMetadata({})).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await stage.text()).toBe(before);
    await open.close();
  });

  it("takes a fence above a higher one found in the file", async () => {
    const stage = await createStage();
    await stage.put('{"_type":"fence","fence":50}\n{"role":"user","content":"kept","fence":50}\n');
    const lease = stage.authority.take();
    const open = await stage.open(stage.manager(), lease);
    await open.append([assistant("mine")]);
    expect(lease.fence).toBe(51);
    expect(open.state().fence).toBe(51);
    await open.close();
    expect(said((await stage.manager().readSessionFile(KEY))?.messages ?? [])).toEqual(["user:kept", "assistant:mine"]);
  });

  it("asks the lease in the same breath as it writes, between the two fault points", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    const passed: string[] = [];
    stage.hooks.fault = (point) => void passed.push(point);
    await open.append([user("x"), assistant("y")]);
    await open.setMetadata({ metadata: { a: 1 } });
    expect(passed).toEqual(["append.before", "append.after"]);
    await open.close();
    await (await stage.open(stage.manager())).close();
    expect(passed.slice(2)).toEqual(["session.fenced"]);
  });

  it("keeps the order of appends that were not waited for", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    const texts = Array.from({ length: 20 }, (_, index) => String(index));
    await Promise.all(texts.map((text) => open.append([user(text)])));
    expect(open.session.messages.map((row) => row.content)).toEqual(texts);
    await open.close();
  });

  it("stores no row that would break replay, and says so", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await open.append([result("a"), calling("a", "a", "b"), result("a"), result("a"), assistant(""), user("")]);
    await open.append([result("b", ""), { role: "tool", content: "no id" }]);
    expect(said(open.session.messages)).toEqual(["assistant:null", "tool:done", "tool:"]);
    expect(open.session.messages[0]).toMatchObject({ tool_calls: [{ id: "a" }, { id: "b" }] });
    expect([...open.openCalls]).toEqual([]);
    expect(stage.log.filter((line) => line.msg === "a row was not stored")).toHaveLength(5);
    await open.append([{ role: "assistant", content: "", final: true }, { ...user(""), inbound_ids: ["k"] } as never]);
    expect(open.session.messages).toHaveLength(5);
    await open.close();
  });
});

describe("when the disk fails", () => {
  it("says so for a short write, keeps whole rows, and ends the torn one before the next", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    const append = stage.io.append;
    stage.io.append = async (handle, bytes) => {
      stage.io.append = append;
      return await append(handle, bytes.subarray(0, bytes.indexOf("\n") + 20));
    };
    await expect(open.append([user("whole"), user("torn")])).rejects.toMatchObject({ code: "SESSION_UNWRITABLE" });
    await open.append([assistant("after")]);
    expect(said(open.session.messages)).toEqual(["user:whole", "assistant:after"]);
    await open.close();
    const next = await stage.open(stage.manager());
    expect(said(next.session.messages)).toEqual(["user:whole", "assistant:after"]);
    await next.close();
    expect(await stage.names()).toContainEqual(expect.stringMatching(/^cli_direct\.jsonl\.bad-/));
  });

  it.each([
    ["all of it", 1000, ["user:unclear", "assistant:after"]],
    ["a part", 20, ["assistant:after"]],
  ])("does not trust its copy after a write that failed with %s on the disk", async (_name, bytesOnDisk, rows) => {
    const stage = await createStage();
    const manager = stage.manager();
    const open = await stage.open(manager);
    const append = stage.io.append;
    stage.io.append = async (handle, bytes) => {
      stage.io.append = append;
      await append(handle, bytes.subarray(0, bytesOnDisk));
      throw Object.assign(new Error("EIO: i/o error, write"), { code: "EIO" });
    };
    const failed = open.append([user("unclear")]);
    await expect(failed).rejects.toMatchObject({ code: "SESSION_UNWRITABLE", cause: { code: "EIO" } });
    await open.append([assistant("after")]);
    await open.close();
    expect(manager.isCached(KEY)).toBe(false);
    const next = await stage.open(manager);
    expect(said(next.session.messages)).toEqual(rows);
    await next.close();
  });

  it("takes a full disk and a name that cannot be opened for errors, not for corruption", async () => {
    const stage = await createStage();
    await symlink("/dev/full", stage.path);
    await expect(stage.open(stage.manager())).rejects.toMatchObject({
      code: "SESSION_UNWRITABLE",
      cause: { code: "ENOSPC" },
    });
    await rm(stage.path);
    await mkdir(stage.path);
    await expect(stage.open(stage.manager())).rejects.toMatchObject({
      code: "SESSION_UNWRITABLE",
      cause: { code: "EISDIR" },
    });
    await expect(stage.manager().readSessionFile(KEY)).rejects.toMatchObject({ code: "SESSION_UNREADABLE" });
    expect(await stage.names()).toEqual(["cli_direct.jsonl"]);
  });

  it("refuses to settle when the name leads to another file", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await open.append([user("x")]);
    await copyFile(stage.path, `${stage.path}.copy`);
    await rename(`${stage.path}.copy`, stage.path);
    await expect(open.sync()).rejects.toMatchObject({ code: "SESSION_UNWRITABLE" });
    await open.close();
  });
});

describe("a file that changed between two holders", () => {
  it("keeps a copy of one that is shorter than it was", async () => {
    const stage = await createStage();
    const manager = stage.manager();
    const open = await stage.open(manager);
    await open.append([user("one"), user("two")]);
    stage.authority.known = open.state();
    await open.close();
    const cut = (await stage.text()).slice(0, -8);
    await truncate(stage.path, Buffer.byteLength(cut));
    const next = await stage.open(manager);
    expect(said(next.session.messages)).toEqual(["user:one"]);
    await next.close();
    const kept = (await stage.names()).filter((name) => name.includes(".bad-"));
    const texts = await Promise.all(kept.map((name) => readFile(`${stage.folder}/${name}`, "utf8")));
    expect(texts).toContain(cut);
    expect(stage.log.map((line) => line.msg)).toContainEqual(expect.stringContaining("shorter than it was"));
  });

  it("reads the legal rows of a killed turn behind what the last settlement knew", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    stage.authority.known = open.state();
    await open.append([user("unsettled")]);
    const next = await stage.open(stage.manager());
    expect(said(next.session.messages)).toEqual(["user:unsettled"]);
    expect(await stage.names()).toEqual(["cli_direct.jsonl"]);
    await next.close();
    await open.close();
  });

  it("is taken as it is, with a log line, when it is another one without a `.prev`", async () => {
    const stage = await createStage();
    await stage.put(`${JSON.stringify(user("restored"))}\n`);
    stage.authority.known = { inode: "1", bytes: 9, fence: 1 };
    const open = await stage.open(stage.manager());
    expect(said(open.session.messages)).toEqual(["user:restored"]);
    expect(stage.log.map((line) => line.msg)).toContainEqual(expect.stringContaining("taken as it is"));
    await open.close();
  });
});

describe("what an unfinished rewrite leaves", () => {
  it("killed between link and rename: the old file stays, the rest goes", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await open.append([user("old")]);
    stage.authority.known = open.state();
    await open.close();
    await link(stage.path, `${stage.path}.prev`);
    await addLine(`${stage.path}.tmp-1`, "half");
    const next = await stage.open(stage.manager());
    expect(said(next.session.messages)).toEqual(["user:old"]);
    expect(await stage.names()).toEqual(["cli_direct.jsonl"]);
    await next.close();
  });

  it("killed after the rename, before the commit: the old file is put back", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await open.append([user("old")]);
    stage.authority.known = open.state();
    await open.close();
    await link(stage.path, `${stage.path}.prev`);
    await addLine(`${stage.path}.tmp-1`, `${JSON.stringify(user("of a fenced-out rewriter"))}\n`);
    await rename(`${stage.path}.tmp-1`, stage.path);
    const next = await stage.open(stage.manager());
    expect(said(next.session.messages)).toEqual(["user:old"]);
    expect(await inodeOf(stage.path)).toBe(stage.authority.known.inode);
    expect(await stage.names()).toEqual(["cli_direct.jsonl"]);
    await next.close();
  });

  it("killed after the commit: the new file stays", async () => {
    const stage = await createStage();
    await stage.put(`${JSON.stringify(user("old"))}\n`);
    await rename(stage.path, `${stage.path}.prev`);
    await stage.put(`${JSON.stringify(user("new"))}\n`);
    stage.authority.known = { inode: (await inodeOf(stage.path)) ?? "", bytes: 5, fence: 0 };
    const next = await stage.open(stage.manager());
    expect(said(next.session.messages)).toEqual(["user:new"]);
    expect(await stage.names()).toEqual(["cli_direct.jsonl"]);
    await next.close();
  });

  it("a rewriter frozen after its check cannot put its file in place any more", async () => {
    const stage = await createStage();
    const lease = stage.authority.take();
    const takenOver = async () => {
      // The bus had said "yes"; then it froze, and another took over, wrote and settled.
      lease.isUnaware = true;
      const next = await stage.open(stage.manager());
      await next.append([assistant("new holder")]);
      stage.authority.known = next.state();
      await next.close();
    };
    const frozen = await stage.manager().open(lease, null, { check: takenOver, commit: lease.guard.commit });
    await frozen.append([user("old")]);
    stage.authority.known = frozen.state();
    await expect(frozen.compact()).rejects.toMatchObject({ code: "SESSION_UNWRITABLE", cause: { code: "ENOENT" } });
    await expect(frozen.append([user("zombie")])).rejects.toMatchObject({ code: "SESSION_UNWRITABLE" });
    await frozen.close();
    const last = await stage.open(stage.manager());
    expect(said(last.session.messages)).toEqual(["user:old", "assistant:new holder"]);
    await last.close();
  });

  it("a rewriter fenced out after its rename writes nothing more, and its file is taken away again", async () => {
    const stage = await createStage();
    const open = await stage.open(stage.manager());
    await open.append([user("old")]);
    stage.authority.known = open.state();
    stage.hooks.fault = (point) => {
      if (point === "rewrite.renamed") stage.authority.fence += 1;
    };
    await expect(open.compact()).rejects.toMatchObject({ code: "LEASE_LOST" });
    await expect(open.append([user("zombie")])).rejects.toMatchObject({ code: "SESSION_UNWRITABLE" });
    await open.close();
    const next = await stage.open(stage.manager());
    expect(await inodeOf(stage.path)).toBe(stage.authority.known.inode);
    expect(said(next.session.messages)).toEqual(["user:old"]);
    expect(await stage.names()).toEqual(["cli_direct.jsonl"]);
    await next.close();
  });
});

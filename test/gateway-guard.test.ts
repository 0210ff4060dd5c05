/** The real guard under the real tools: what people sent can be read by its path, and nothing more. */
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FileReads } from "../src/agent/tools/files.js";
import { createToolRegistry } from "../src/agent/tools/registry.js";
import { createWorkspaceTools } from "../src/agent/tools/workspace-tools.js";
import { createPathGuard } from "../src/gateway-guard.js";

const KEPT = "2026-06/0123_report.txt";
let base: string;
beforeEach(async () => {
  base = await realpath(await mkdtemp(path.join(tmpdir(), "ng-guard-")));
  for (const folder of ["ws/sessions", "ws/internal", "media/2026-06"]) {
    await mkdir(path.join(base, folder), { recursive: true });
  }
  await writeFile(path.join(base, "media", KEPT), "what was sent");
  await writeFile(path.join(base, "media/2026-06/.half.part"), "half");
  await writeFile(path.join(base, "secret"), "not yours");
  await writeFile(path.join(base, "ws/sessions/a.jsonl"), "words of others");
  await writeFile(path.join(base, "ws/mine.txt"), "mine");
});
afterEach(() => rm(base, { recursive: true, force: true }));

async function use(name: string, args: object, isRestricted = true): Promise<{ isError: boolean; text: string }> {
  const root = path.join(base, "ws");
  const workspace = { root, sessions: path.join(root, "sessions"), internal: path.join(root, "internal") };
  const guard = createPathGuard({ workspace, mediaFolder: path.join(base, "media"), isRestricted });
  const registry = createToolRegistry(createWorkspaceTools({ guard, reads: new FileReads() }));
  const call = { id: "1", name, arguments: JSON.stringify(args) };
  const result = await registry.runTool(call, { signal: new AbortController().signal, callId: "1" });
  if (result.type !== "done") throw new Error("a file tool does not wait");
  return result;
}

const media = (name: string) => path.join(base, "media", name);

describe.each([true, false])("restricted to the workspace: %s", (isRestricted) => {
  test("a kept file is read by its path", async () => {
    const read = await use("read_file", { path: media(KEPT) }, isRestricted);
    expect(read).toEqual({ type: "done", isError: false, text: "1| what was sent\n\n(end of file, 1 lines)" });
    expect(await use("read_file", { path: "mine.txt" }, isRestricted)).toMatchObject({ isError: false });
  });

  test("it is neither listed, written, nor edited, and one on its way in is not read", async () => {
    const attempts: Array<[string, object]> = [
      ["list_dir", { path: media("") }],
      ["list_dir", { path: media("2026-06") }],
      ["write_file", { path: media(KEPT), content: "changed" }],
      ["write_file", { path: media("2026-06/new.txt"), content: "new" }],
      ["edit_file", { path: media(KEPT), old_text: "sent", new_text: "changed" }],
      ["read_file", { path: media("2026-06/.half.part") }],
    ];
    for (const [name, args] of attempts) {
      expect(await use(name, args, isRestricted), JSON.stringify(args)).toMatchObject({ isError: true });
    }
    expect(await readFile(media(KEPT), "utf8")).toBe("what was sent");
    expect(await readdir(media("2026-06"))).toEqual([".half.part", path.basename(KEPT)]);
  });

  test("what the gateway writes stays closed, also behind links", async () => {
    await symlink(path.join(base, "ws/sessions"), path.join(base, "ws/link"));
    await symlink(media("2026-06"), path.join(base, "ws/files"));
    for (const closed of ["sessions/a.jsonl", "link/a.jsonl", "files/.half.part"]) {
      expect(await use("read_file", { path: closed }, isRestricted), closed).toMatchObject({ isError: true });
    }
    expect(await use("list_dir", { path: "files" }, isRestricted)).toMatchObject({ isError: true });
  });
});

test("through the folder of files nothing outside it is reached", async () => {
  await symlink(path.join(base, "secret"), media("2026-06/link"));
  await symlink(base, media("2026-07"));
  const ways = ["2026-06/link", "2026-07/secret", "../secret", "2026-06/../../secret", "2026-06", "2026-06/gone.txt"];
  for (const way of [...ways.map(media), path.join(base, "secret"), "../secret", `${base}/media/../secret`]) {
    const { isError, text } = await use("read_file", { path: way });
    expect({ way, isError }).toEqual({ way, isError: true });
    expect(text).not.toContain("not yours");
  }
});

test("a folder of files that is not there yet is no trouble", async () => {
  await rm(media(""), { recursive: true });
  expect(await use("read_file", { path: "mine.txt" })).toMatchObject({ isError: false });
  const gone = await use("read_file", { path: media(KEPT) });
  expect(gone).toMatchObject({ isError: true, text: expect.stringContaining("does not exist") });
});

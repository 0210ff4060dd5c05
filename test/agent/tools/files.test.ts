/**
 * The file tools on a real folder: reading, writing, listing, and staying inside.
 */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve, sep } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FileReads } from "../../../src/agent/tools/files.js";
import type { PathGuard } from "../../../src/agent/tools/ports.js";
import { createToolRegistry } from "../../../src/agent/tools/registry.js";
import { createWorkspaceTools } from "../../../src/agent/tools/workspace-tools.js";

let base: string;
let root: string;
beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), "nanogate-tools-")));
  root = join(base, "ws");
  await mkdir(root);
});
afterEach(() => rm(base, { recursive: true, force: true }));

/** The real path, also of what does not exist yet. */
async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    return join(await realPathOf(dirname(path)), basename(path));
  }
}

async function inside(path: string): Promise<string> {
  const real = await realPathOf(resolve(root, path));
  if (real !== root && !real.startsWith(root + sep)) throw new Error(`${path} is outside the workspace.`);
  return real;
}

const guard: PathGuard = { resolveInside: inside, resolveReadable: inside };

function toolbox() {
  const registry = createToolRegistry(createWorkspaceTools({ guard, reads: new FileReads() }));
  return async (name: string, args: object) => {
    const call = { id: "1", name, arguments: JSON.stringify(args) };
    const result = await registry.runTool(call, { signal: new AbortController().signal, callId: "1" });
    if (result.type !== "done") throw new Error("a file tool does not wait");
    return result;
  };
}

const ok = (text: unknown) => ({ isError: false, text });
const bad = (text: RegExp) => ({ isError: true, text: expect.stringMatching(text) });

describe("read_file", () => {
  test("numbered lines, a window, and how to go on", async () => {
    await writeFile(join(root, "a.txt"), "one\r\ntwo\nthree");
    const use = toolbox();
    expect(await use("read_file", { path: "a.txt" })).toMatchObject(
      ok("1| one\n2| two\n3| three\n\n(end of file, 3 lines)"),
    );
    expect(await use("read_file", { path: "a.txt", offset: 2, limit: "1" })).toMatchObject(
      ok("2| two\n\n(lines 2 to 2; more follow: go on with offset 3)"),
    );
    expect(await use("read_file", { path: "a.txt", offset: 9 })).toMatchObject(bad(/only 3 lines/));
    await writeFile(join(root, "empty"), "");
    expect(await use("read_file", { path: "empty" })).toMatchObject(ok("(the file is empty)"));
  });

  test("an unchanged second read is a short note; after a change, by force, or elsewhere it is whole", async () => {
    await writeFile(join(root, "a.txt"), "one");
    const use = toolbox();
    const whole = await use("read_file", { path: "a.txt" });
    expect((await use("read_file", { path: "./a.txt" })).text).toMatch(/has not changed/);
    expect(await use("read_file", { path: "a.txt", force: true })).toEqual(whole);
    expect(await toolbox()("read_file", { path: "a.txt" })).toEqual(whole);
    await use("write_file", { path: "a.txt", content: "one" });
    expect(await use("read_file", { path: "a.txt" })).toEqual(whole);
    await writeFile(join(root, "a.txt"), "changed outside");
    expect((await use("read_file", { path: "a.txt" })).text).toContain("changed outside");
  });

  test("large files and endless lines are bounded", async () => {
    await writeFile(join(root, "long.txt"), Array.from({ length: 5000 }, (_, n) => `line ${n + 1}`).join("\n"));
    await writeFile(join(root, "wide.txt"), `${"x".repeat(400_000)}\nlast`);
    const use = toolbox();
    expect((await use("read_file", { path: "long.txt" })).text).toContain("go on with offset 2001");
    const wide = (await use("read_file", { path: "wide.txt" })).text;
    expect(wide.length).toBeLessThan(130_000);
    expect(wide).toContain("(line cut)");
    expect(wide).toContain("go on with offset 2");
    expect((await use("read_file", { path: "wide.txt", offset: 2 })).text).toMatch(/^2\| last\n/);
  });

  test("what is not a text file is named", async () => {
    await writeFile(join(root, "b.bin"), Buffer.from([1, 0, 2]));
    await writeFile(join(root, "latin"), Buffer.from([0x63, 0xe9, 0x20, 0x20, 0x20, 0x20]));
    execFileSync("mkfifo", [join(root, "pipe")]);
    const use = toolbox();
    expect(await use("read_file", { path: "b.bin" })).toMatchObject(bad(/binary file \(3 bytes\)/));
    expect(await use("read_file", { path: "latin" })).toMatchObject(bad(/binary file/));
    expect(await use("read_file", { path: "pipe" })).toMatchObject(bad(/device or a pipe/));
    expect(await use("read_file", { path: "." })).toMatchObject(bad(/list_dir/));
    expect(await use("read_file", { path: "none" })).toMatchObject(bad(/does not exist/));
  });
});

describe("write_file and list_dir", () => {
  test("folders on the way are made, the mode is kept, and no temporary file stays", async () => {
    const use = toolbox();
    expect(await use("write_file", { path: "x/y/a.txt", content: "héllo" })).toMatchObject(
      ok("Created x/y/a.txt (6 bytes)."),
    );
    await writeFile(join(root, "run.sh"), "old", { mode: 0o755 });
    expect(await use("write_file", { path: "run.sh", content: "new" })).toMatchObject(ok("Replaced run.sh (3 bytes)."));
    expect((await stat(join(root, "run.sh"))).mode & 0o777).toBe(0o755);
    expect(await readFile(join(root, "x/y/a.txt"), "utf8")).toBe("héllo");
    expect((await use("list_dir", { recursive: true })).text).toBe("run.sh\nx/\nx/y/\nx/y/a.txt");
    expect(await use("write_file", { path: "x", content: "" })).toMatchObject(bad(/not a file/));
    expect(await use("write_file", { path: "run.sh/a", content: "" })).toMatchObject(bad(/./));
    expect(await use("write_file", { path: "big", content: "x".repeat(11 * 1024 * 1024) })).toMatchObject(bad(/limit/));
  });

  test("a listing is sorted and bounded, names links, and enters neither them nor hidden stores", async () => {
    await mkdir(join(root, ".git/objects"), { recursive: true });
    for (const name of ["b", "a", "c"]) await writeFile(join(root, name), "");
    await symlink(base, join(root, "up"));
    const use = toolbox();
    expect((await use("list_dir", { path: ".", recursive: true })).text).toBe(".git/\na\nb\nc\nup (link)");
    expect((await use("list_dir", { max_entries: 2 })).text).toMatch(/^\.git\/\na\n\(more entries left out/);
    expect((await use("list_dir", { path: ".git/objects" })).text).toBe("(the folder is empty)");
    expect(await use("list_dir", { path: "a" })).toMatchObject(bad(/./));
    expect(await use("list_dir", { path: "none" })).toMatchObject(bad(/does not exist/));
  });
});

test("no tool leaves the workspace: not by dots, not by a neighbour's name, not by a link", async () => {
  await mkdir(join(base, "ws-other"));
  await writeFile(join(base, "ws-other/s.txt"), "secret");
  await symlink(join(base, "ws-other"), join(root, "link"));
  await symlink(join(base, "ws-other/new.txt"), join(root, "leaf"));
  const use = toolbox();
  for (const path of ["../ws-other/s.txt", join(base, "ws-other/s.txt"), "link/s.txt"]) {
    expect(await use("read_file", { path })).toMatchObject(bad(/outside the workspace/));
    expect(await use("write_file", { path, content: "x" })).toMatchObject(bad(/outside the workspace/));
    expect(await use("edit_file", { path, old_text: "secret", new_text: "x" })).toMatchObject(bad(/outside/));
  }
  expect(await use("list_dir", { path: "link" })).toMatchObject(bad(/outside the workspace/));
  // A link to what does not exist yet is not followed by this guard; the write must replace the link, not its target.
  await use("write_file", { path: "leaf", content: "x" });
  await expect(stat(join(base, "ws-other/new.txt"))).rejects.toMatchObject({ code: "ENOENT" });
  expect(await readFile(join(base, "ws-other/s.txt"), "utf8")).toBe("secret");
});

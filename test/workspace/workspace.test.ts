/** Opening a workspace: its folders, its first files, and an identity that all processes agree on. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, stat, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "vite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BOOTSTRAP_FILES, openWorkspace, readTemplate } from "../../src/workspace/workspace.js";

const ID = /^[0-9a-f]{32}$/;
let parent: string;
let dir: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "nanogate-workspace-"));
  dir = join(parent, "deep", "workspace");
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

const idFile = (): string => join(dir, ".nanogate", "workspace-id");
const idText = (): Promise<string> => readFile(idFile(), "utf8");

async function putId(text: string | Buffer): Promise<void> {
  await mkdir(join(dir, ".nanogate"), { recursive: true });
  await writeFile(idFile(), text);
}

describe("opening a workspace", () => {
  it("makes the folders, closed to others where conversations are", async () => {
    const workspace = await openWorkspace(dir);
    for (const folder of [workspace.internal, workspace.sessions]) {
      expect((await stat(folder)).mode & 0o777).toBe(0o700);
    }
    expect((await readdir(dir)).sort()).toEqual(
      [".nanogate", "AGENTS.md", "HEARTBEAT.md", "SOUL.md", "USER.md", "memory", "sessions", "skills"].sort(),
    );
    expect(workspace.id).toMatch(ID);
    expect(await idText()).toBe(`${workspace.id}\n`);
    expect(workspace.isNetworkFileSystem).toBe(false);
  });

  it("writes its templates once: neither over a file that is there nor again after it was deleted", async () => {
    await mkdir(dir, { recursive: true });
    await writeFile(join(dir, "SOUL.md"), "mine");
    await openWorkspace(dir);
    expect(await readFile(join(dir, "SOUL.md"), "utf8")).toBe("mine");
    for (const file of BOOTSTRAP_FILES.filter((name) => name !== "SOUL.md")) {
      expect(await readFile(join(dir, file), "utf8")).toBe(await readTemplate(file));
    }
    await unlink(join(dir, "USER.md"));
    await openWorkspace(dir);
    expect(await readdir(dir)).not.toContain("USER.md");
  });

  it("leaves the heartbeat nothing to do until somebody writes a task", async () => {
    const [, tasks = "?"] = (await readTemplate("HEARTBEAT.md")).split("## Active tasks\n");
    expect(tasks.replaceAll(/<!--[\s\S]*?-->/g, "").trim()).toBe("");
  });

  it("goes on after a start that was killed between two templates", async () => {
    await openWorkspace(dir);
    await unlink(idFile());
    await unlink(join(dir, "AGENTS.md"));
    await openWorkspace(dir);
    expect(await readdir(dir)).toContain("AGENTS.md");
  });

  it("says why it cannot be used", async () => {
    await mkdir(parent, { recursive: true });
    await writeFile(join(parent, "deep"), "a file");
    await expect(openWorkspace(dir)).rejects.toMatchObject({
      code: "WORKSPACE_UNUSABLE",
      message: expect.stringMatching(/ENOTDIR|EEXIST/),
    });
  });
});

describe("the identity", () => {
  it("stays when the workspace is opened again or moved, and differs between workspaces", async () => {
    const { id } = await openWorkspace(dir);
    expect((await openWorkspace(dir)).id).toBe(id);
    await cp(dir, `${dir}-moved`, { recursive: true });
    expect((await openWorkspace(`${dir}-moved`)).id).toBe(id);
    expect((await openWorkspace(`${dir}-other`)).id).not.toBe(id);
  });

  it.each([
    ["empty", ""],
    ["torn", "0123456789abc"],
    ["zeros", Buffer.alloc(33)],
  ])("mends a file that a killed creator left %s, the same for all who look", async (_name, text) => {
    await putId(text);
    const ids = await Promise.all(
      Array.from({ length: 20 }, () => openWorkspace(dir).then((workspace) => workspace.id)),
    );
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).toMatch(ID);
    expect(await idText()).toBe(`${ids[0]}\n`);
    expect(await readdir(join(dir, ".nanogate"))).toEqual(["workspace-id"]);
  });

  it.each(["hello", "0123456789ABCDEF0123456789ABCDEF", "0".repeat(33)])(
    "refuses a file that holds %s",
    async (text) => {
      await putId(text);
      await expect(openWorkspace(dir)).rejects.toMatchObject({
        code: "WORKSPACE_UNUSABLE",
        message: expect.stringContaining("workspace-id"),
      });
      expect(await idText()).toBe(text);
    },
  );

  it("is one for twenty processes that open a new workspace at the same time", async () => {
    const out = join(parent, "built");
    await build({
      logLevel: "error",
      configFile: false,
      build: { ssr: "src/workspace/workspace.ts", outDir: out, emptyOutDir: true },
    });
    await cp("src/workspace/templates", join(out, "templates"), { recursive: true });
    const [entry = ""] = (await readdir(out)).filter((name) => /\.m?js$/.test(name));
    const script = `import(${JSON.stringify(join(out, entry))}).then(async (m) => process.stdout.write((await m.openWorkspace(${JSON.stringify(dir)})).id))`;
    const run = () => promisify(execFile)(process.execPath, ["-e", script]).then(({ stdout }) => stdout);
    const ids = await Promise.all(Array.from({ length: 20 }, run));
    expect(ids[0]).toMatch(ID);
    expect(new Set(ids).size).toBe(1);
    expect(await readdir(join(dir, ".nanogate"))).toEqual(["workspace-id"]);
    await rm(out, { recursive: true });
  });
});

/** The bounds of a workspace: traversal, neighbours and links that lead out are refused. [T226] */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OutsideWorkspaceError, resolveInside } from "../../src/workspace/scope.js";

let parent: string;
let root: string;

beforeEach(async () => {
  parent = realpathSync(mkdtempSync(join(tmpdir(), "nanogate-scope-")));
  root = join(parent, "work");
  await mkdir(join(root, "notes"), { recursive: true });
  await mkdir(join(parent, "work-secret"));
  await writeFile(join(parent, "work-secret", "key"), "s");
  await writeFile(join(root, "notes", "a.txt"), "a");
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

describe("a path inside the workspace", () => {
  it.each([
    ["notes/a.txt", "notes/a.txt"],
    [".", ""],
    ["", ""],
    ["notes/../notes/./a.txt", "notes/a.txt"],
    ["new/deep/file.txt", "new/deep/file.txt"],
    ["..hidden", "..hidden"],
  ])("%s is allowed", async (path, where) => {
    expect(await resolveInside(root, path)).toBe(join(root, where));
    expect(await resolveInside(root, join(root, path))).toBe(join(root, where));
  });

  it("is given by where its links lead, as long as they stay inside", async () => {
    await symlink(join(root, "notes"), join(root, "inner"));
    expect(await resolveInside(root, "inner/new.txt")).toBe(join(root, "notes", "new.txt"));
  });

  it("is judged by the real root when the root itself is a link", async () => {
    await symlink(root, join(parent, "alias"));
    expect(await resolveInside(join(parent, "alias"), "notes/a.txt")).toBe(join(root, "notes", "a.txt"));
    expect(await resolveInside(join(parent, "alias"), join(root, "notes"))).toBe(join(root, "notes"));
  });
});

describe("a path out of the workspace", () => {
  it.each(["..", "../work-secret/key", "notes/../../work-secret/key", "/etc/passwd", "a\0b"])(
    "%j is refused",
    async (path) => {
      await expect(resolveInside(root, path)).rejects.toThrow(OutsideWorkspaceError);
    },
  );

  it("is refused for a neighbour whose name begins alike", async () => {
    await expect(resolveInside(root, `${root}-secret/key`)).rejects.toThrow(OutsideWorkspaceError);
  });

  it("is refused behind a link, whether or not its end exists", async () => {
    await symlink(join(parent, "work-secret"), join(root, "out"));
    await symlink(join(parent, "work-secret", "key"), join(root, "key"));
    for (const path of ["out", "out/key", "out/new.txt", "out/new/deep.txt", "key"]) {
      await expect(resolveInside(root, path), path).rejects.toThrow(OutsideWorkspaceError);
    }
  });

  it("is refused for a link that leads nowhere or in a ring: writing would follow it", async () => {
    await symlink(join(parent, "not-yet"), join(root, "dangling"));
    await symlink(join(root, "ring"), join(root, "ring"));
    await expect(resolveInside(root, "dangling")).rejects.toThrow(OutsideWorkspaceError);
    await expect(resolveInside(root, "dangling/x")).rejects.toThrow(OutsideWorkspaceError);
    await expect(resolveInside(root, "ring")).rejects.toThrow(OutsideWorkspaceError);
  });
});

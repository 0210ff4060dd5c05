/** The store on a real disk: what is kept and how, what is refused and why, and that no reference leads out. */
import { lutimes, mkdir, readdir, readFile, realpath, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { MediaRef } from "../../src/bus/messages.js";
import { incoming, mediaStage, PNG } from "./support.js";

const stage = mediaStage();
const outcomes = () => stage.metrics.labelsOf("media_files_total").map(({ outcome }) => outcome);

/** Every file below the store's folder. */
async function everything(): Promise<string[]> {
  const entries = await readdir(stage.folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

describe("a file that is kept", () => {
  test("is whole, private, under a path of its own, and told as it is", async () => {
    const store = stage.store({ nowMs: () => Date.parse("2026-03-31T23:59:59Z") });
    const file = incoming([PNG.subarray(0, 9), PNG.subarray(9)], { name: "../../cat.png", mime: "text/html" });
    const ref = await store.save(file);
    expect(ref).toEqual({
      path: expect.stringMatching(/^2026-03\/[0-9a-f]{24}_cat\.png$/),
      mime: "image/png",
      name: "cat.png",
      bytes: PNG.length,
    });
    const where = await store.pathOf(ref);
    expect(where).toBe(path.join(await realpath(stage.folder), ref.path));
    expect(await readFile(where)).toEqual(PNG);
    expect((await stat(where)).mode & 0o777).toBe(0o600);
    for (const folder of [stage.folder, path.dirname(where)]) expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect(outcomes()).toEqual(["kept"]);
  });

  test("does not meet another of the same name; a spoken one is marked", async () => {
    const store = stage.store();
    const refs = await Promise.all(
      [1, 2].map((n) => store.save(incoming(`${n}`, { name: "a.txt", isVoice: n === 2 }))),
    );
    const texts = await Promise.all(refs.map(async (ref) => readFile(await store.pathOf(ref), "utf8")));
    expect(texts).toEqual(["1", "2"]);
    expect(refs.map(({ isVoice }) => isVoice)).toEqual([undefined, true]);
  });

  test.each<[string, string | Uint8Array, { name?: string; mime?: string }, string]>([
    ["an image by its bytes", PNG, { name: "x.txt", mime: "text/plain" }, "image/png"],
    ["a text that claims to be an image", "hello", { name: "x.png", mime: "image/png" }, "text/plain"],
    ["a text that begins like an image", "GIF is a format", {}, "text/plain"],
    ["a text that begins like a program", "MZ was his name", { name: "a.md" }, "text/markdown"],
    ["SVG", '<svg xmlns="http://www.w3.org/2000/svg"/>', { name: "a.svg", mime: "image/svg+xml" }, "text/xml"],
    ["SVG behind a prolog", '<?xml version="1.0"?><!-- a --><svg/>', { mime: "image/svg+xml" }, "text/xml"],
    ["SVG under another name", "\n<svg/>", { name: "a.png", mime: "image/png" }, "text/xml"],
    ["HTML", "<!-- a --><!DOCTYPE html><script>1</script>", { name: "a.png", mime: "image/png" }, "text/html"],
    ["JSON", '{"a":1}', { name: "a.json" }, "application/json"],
    ["a text of a claimed kind", "print(1)", { mime: "text/x-python; charset=utf-8" }, "text/x-python"],
    ["a PDF that is all ASCII", "%PDF-1.4\n%%EOF", { name: "a.txt" }, "application/pdf"],
    ["bytes that say nothing", Buffer.from([1, 0, 2, 0]), { mime: "audio/amr" }, "audio/amr"],
    [
      "bytes that are said to be an image",
      Buffer.from([1, 0, 2, 0]),
      { mime: "image/png" },
      "application/octet-stream",
    ],
    ["bytes with a NUL said to be text", Buffer.from("a\0b"), { mime: "text/plain" }, "application/octet-stream"],
    ["a claim that is no type", Buffer.from([1, 0, 2]), { mime: "a\nb: c" }, "application/octet-stream"],
    [
      "Opus in Ogg",
      Buffer.from(`4f67675300020000000000000000${"00".repeat(14)}4f707573486561640101`, "hex"),
      {},
      "audio/ogg",
    ],
  ])("is typed: %s", async (_, content, claim, mime) => {
    expect(await stage.store().save(incoming(content, claim))).toMatchObject({ mime });
  });

  test("a text whose characters are cut by the chunks is a text; a broken one is not", async () => {
    const bytes = Buffer.from("Grüße 😀");
    const single = [...bytes].map((byte) => Buffer.from([byte]));
    expect(await stage.store().save(incoming(single))).toMatchObject({ mime: "text/plain" });
    expect(await stage.store().save(incoming(bytes.subarray(0, -1)))).toMatchObject({
      mime: "application/octet-stream",
    });
  });
});

describe("a file that is refused", () => {
  test("too large: nothing more of it is read, and nothing stays", async () => {
    const read = { chunks: 0, isClosed: false };
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          read.chunks += 1;
          yield Buffer.alloc(1000);
        }
      } finally {
        read.isClosed = true;
      }
    }
    const saving = stage.store({ maxBytes: 2500 }).save({ name: "a", mime: null, isVoice: false, body: endless() });
    await expect(saving).rejects.toMatchObject({ code: "MEDIA_REFUSED", message: "The file is larger than 2.5 kB." });
    expect(read).toEqual({ chunks: 3, isClosed: true });
    expect(await everything()).toEqual([]);
    expect(outcomes()).toEqual(["too_large"]);
  });

  test("a file of exactly the limit is kept", async () => {
    expect(await stage.store({ maxBytes: 5 }).save(incoming("12345"))).toMatchObject({ bytes: 5 });
  });

  test("empty", async () => {
    for (const empty of [[], [Buffer.alloc(0), Buffer.alloc(0)]]) {
      const saving = stage.store().save(incoming(empty));
      await expect(saving).rejects.toMatchObject({ code: "MEDIA_REFUSED", message: "The file is empty." });
    }
    expect(await everything()).toEqual([]);
    expect(outcomes()).toEqual(["empty", "empty"]);
  });

  test("broken off on its way: the error is its channel's own, and nothing stays", async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield PNG;
      throw new Error("the line is dead");
    }
    const saving = stage.store().save({ name: "a.png", mime: null, isVoice: false, body: broken() });
    await expect(saving).rejects.toThrow("the line is dead");
    expect(await everything()).toEqual([]);
    expect(outcomes()).toEqual(["broken_off"]);
  });

  test("no disk to keep it on: said in words, without a path, and logged", async () => {
    await writeFile(path.join(stage.base, "taken"), "a file, not a folder");
    const store = stage.store({ folder: path.join(stage.base, "taken") });
    const error: unknown = await store.save(incoming("a")).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "MEDIA_REFUSED", message: expect.stringContaining("could not be kept") });
    expect(String(error)).not.toContain(stage.base);
    expect(outcomes()).toEqual(["no_disk"]);
    expect(stage.log.join("")).toContain("a file could not be kept");
  });
});

describe("a reference", () => {
  const refTo = (to: string): MediaRef => ({ path: to, mime: "text/plain", name: "a.txt", bytes: 1 });
  const refusal = { code: "MEDIA_REFUSED" };

  test("that leads out, to a folder, to nothing, or to a file on its way in, leads nowhere", async () => {
    const store = stage.store();
    const { path: kept } = await store.save(incoming("mine", { name: "a.txt" }));
    const month = path.dirname(kept);
    await writeFile(path.join(stage.base, "secret"), "not yours");
    await writeFile(path.join(stage.folder, month, ".x.part"), "half");
    await symlink(path.join(stage.base, "secret"), path.join(stage.folder, month, "link"));
    await symlink(stage.base, path.join(stage.folder, "2020-01"));
    const bad = ["../../secret", `${month}/../../../secret`, path.join(stage.base, "secret"), `${month}/link`];
    const worse = ["2020-01/secret", month, "", ".", "/", `${month}/.x.part`, `${kept}\0`, `${month}/gone`, `/${kept}`];
    for (const to of [...bad, ...worse]) await expect(store.pathOf(refTo(to)), to).rejects.toMatchObject(refusal);
    expect(await readFile(await store.pathOf(refTo(kept)), "utf8")).toBe("mine");
  });

  test("of any kind leads into the folder or nowhere", async () => {
    const store = stage.store();
    await store.save(incoming("mine"));
    await writeFile(path.join(stage.base, "secret"), "not yours");
    const part = fc.constantFrom(
      "..",
      ".",
      "",
      "secret",
      "home",
      "media",
      "%2e%2e",
      "..\\",
      "a",
      path.basename(stage.base),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 8 }), fc.boolean(), async (parts, isAbsolute) => {
        const to = (isAbsolute ? `${stage.base}/` : "") + parts.join("/");
        await expect(store.pathOf(refTo(to))).rejects.toMatchObject(refusal);
      }),
    );
  });

  test("works where the folder itself is a link to another disk", async () => {
    await mkdir(path.join(stage.base, "disk"));
    await mkdir(path.dirname(stage.folder), { recursive: true });
    await symlink(path.join(stage.base, "disk"), stage.folder);
    const store = stage.store();
    const ref = await store.save(incoming("mine"));
    expect(await store.pathOf(ref)).toBe(path.join(await realpath(stage.base), "disk", ref.path));
  });
});

describe("expiry", () => {
  const DAY_MS = 86_400_000;

  test("takes what is old, half or whole, and nothing else; an old month goes with its last file", async () => {
    const now = Date.parse("2026-06-15T12:00:00Z");
    const store = stage.store({ keepMs: 30 * DAY_MS, nowMs: () => now });
    const put = async (file: string, ageMs: number) => {
      const full = path.join(stage.folder, file);
      await mkdir(path.dirname(full), { recursive: true });
      await writeFile(full, "x");
      const seconds = (now - ageMs) / 1000;
      await utimes(full, seconds, seconds);
    };
    await put("2026-04/old", 40 * DAY_MS);
    await put("2026-05/old", 31 * DAY_MS);
    await put("2026-05/young", 29 * DAY_MS);
    await put("2026-06/.left.part", 2 * DAY_MS);
    await put("2026-06/.coming.part", 1000);
    await put("not-a-month/old", 400 * DAY_MS);
    await writeFile(path.join(stage.base, "secret"), "x");
    await utimes(path.join(stage.base, "secret"), 1, 1);
    await symlink(path.join(stage.base, "secret"), path.join(stage.folder, "2026-05", "link"));
    await lutimes(path.join(stage.folder, "2026-05", "link"), 1, 1);
    expect(await store.sweep()).toBe(3);
    expect((await everything()).sort()).toEqual([".coming.part", "old", "young"]);
    expect((await readdir(stage.folder)).sort()).toEqual(["2026-05", "2026-06", "not-a-month"]);
    expect(await readFile(path.join(stage.folder, "2026-05", "link"), "utf8")).toBe("x");
    expect(stage.metrics.reports).toContainEqual({
      name: "media_files_total",
      labels: { outcome: "expired" },
      value: 3,
    });
  });

  test("of a folder that is not there, and twice at once, is nothing special", async () => {
    const store = stage.store({ keepMs: -1000 });
    expect(await store.sweep()).toBe(0);
    await Promise.all([1, 2, 3].map((n) => store.save(incoming(`${n}`))));
    const removed = await Promise.all([store.sweep(), store.sweep()]);
    expect(removed[0] + removed[1]).toBe(3);
    expect(await everything()).toEqual([]);
    await rm(stage.folder, { recursive: true });
    await expect(store.save(incoming("again"))).resolves.toMatchObject({ bytes: 5 });
  });
});

/**
 * The files in `config/` say what the source says; `npm run schema` writes them. Also the times that follow from a
 * lease, and the token of the home folder.
 */
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultConfig, renderJsonSchema } from "../../src/config/schema.js";
import { timingOf } from "../../src/config/timing.js";
import { ensureToken, readToken } from "../../src/config/token.js";

const read = (file: string) => readFile(new URL(`../../${file}`, import.meta.url), "utf8");

describe("generated files", () => {
  it("config/default.json holds every setting with its default", async () => {
    expect(JSON.parse(await read("config/default.json"))).toEqual({ $schema: "./schema.json", ...defaultConfig() });
  });

  it("config/schema.json is the schema", async () => {
    expect(JSON.parse(await read("config/schema.json"))).toEqual(renderJsonSchema());
  });

  it("docs/configuration.md has a row for every setting, and a word about each", async () => {
    const page = await read("docs/configuration.md");
    const script = new URL("../../scripts/config-page.mjs", import.meta.url);
    const { withSettings } = (await import(fileURLToPath(script))) as {
      withSettings: (page: string, schema: object) => string;
    };
    expect(page).toBe(withSettings(page, renderJsonSchema()));
    const rows = [...page.matchAll(/^\| `([\w.<>]+)` \|.*\| (.*) \|$/gm)].map(([, path, meaning]) => [path, meaning]);
    expect(rows.filter(([, meaning]) => meaning === "")).toEqual([]);
    expect(rows.map(([path]) => path)).toEqual(expect.arrayContaining(["gateway.leaseMs", "providers.<name>.baseUrl"]));
  });

  it("config/example.env names every variable that the source reads, and sets none", async () => {
    const sources = await Promise.all(["paths", "load"].map((name) => read(`src/config/${name}.ts`)));
    const used = [...sources.join().matchAll(/\benv\.([A-Z_]+)/g)].flatMap(([, name]) => name ?? []);
    const example = await read("config/example.env");
    expect(used.length).toBeGreaterThan(4);
    for (const name of used.filter((variable) => variable !== "NANOGATE_FAULT"))
      expect(example).toContain(`# ${name}=`);
    expect(parseEnv(example)).toEqual({});
  });
});

describe("timing", () => {
  it("renews twice before it aborts, and aborts before the lease ends", () => {
    fc.assert(
      fc.property(fc.double({ min: 300, max: 3_600_000, noNaN: true }), (leaseMs) => {
        const timing = timingOf(leaseMs);
        expect(2 * timing.renewEveryMs).toBeLessThan(timing.abortAfterMs);
        expect(timing.abortAfterMs).toBeLessThan(leaseMs);
        expect(timing.reapEveryMs).toBeLessThanOrEqual(1000);
        expect(timing.sweepAfterMs).toBeLessThanOrEqual(3000);
      }),
    );
    expect(timingOf(15_000)).toEqual({
      leaseMs: 15_000,
      renewEveryMs: 5000,
      abortAfterMs: 12_000,
      reapEveryMs: 1000,
      sweepAfterMs: 3000,
      stuckAfterMs: 17_000,
    });
  });
});

describe("the token of the home folder", () => {
  it("is made once, also by many at once, for its owner only, and kept", async () => {
    const home = await mkdtemp(path.join(tmpdir(), "nanogate-token-"));
    try {
      expect(await readToken(home)).toBeNull();
      // One after the other within the time that making one takes, so that some come while others are half way.
      const oneOfMany = async (turn: number) => {
        for (let i = 0; i < turn; i++) await new Promise((resolve) => setImmediate(resolve));
        return ensureToken(home);
      };
      const made = new Set(await Promise.all(Array.from({ length: 40 }, (_, turn) => oneOfMany(turn))));
      expect(made.size).toBe(1);
      expect([...made][0]).toMatch(/^[\w-]{43}$/);
      expect((await stat(path.join(home, "token"))).mode & 0o777).toBe(0o600);
      await writeFile(path.join(home, "token"), "mine\n");
      expect(await ensureToken(home)).toBe("mine");
    } finally {
      await rm(home, { recursive: true });
    }
  });
});

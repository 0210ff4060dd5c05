/**
 * What README, CONTRIBUTING and docs/ name exists: files, commands and their options, npm scripts, error codes, settings,
 * variables; configurations that they show are taken; README denies nothing that is there. docs/errors.md lists exactly
 * the errors there are.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.js";
import { defaultConfig } from "../../src/config/schema.js";
import { valueAt } from "../../src/config/tree.js";
import { ERROR_ADVICE } from "../../src/errors.js";
import { type Claim, claimsOf } from "./claims.js";
import { root } from "./source.js";

const read = (file: string) => readFileSync(path.join(root, file), "utf8");
const inFolder = (folder: string, extension: string) =>
  existsSync(path.join(root, folder))
    ? readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(extension))
        .map((file) => path.join(folder, file))
    : [];

const pages = [
  ...["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].filter((file) => existsSync(path.join(root, file))),
  ...inFolder("docs", ".md"),
];
const config = defaultConfig();
const scripts: Readonly<Record<string, string>> = JSON.parse(read("package.json")).scripts;
const commandLine = inFolder("src", ".ts")
  .filter((file) => /^src\/(?:main|cli\/.*)\.ts$/.test(file))
  .map(read)
  .join("\n");
const environment = [read("config/example.env"), ...inFolder("src/config", ".ts").map(read)].join("\n");

/** What is wrong with a claim of a page; null when it is true. */
function falsehood(claim: Claim, page: string): string | null {
  switch (claim.type) {
    case "file": {
      const places = [path.join(root, claim.path), path.join(root, path.dirname(page), claim.path)];
      return places.some((file) => existsSync(file)) ? null : `the file ${claim.path} does not exist`;
    }
    case "command": {
      if (claim.name !== "" && !existsSync(path.join(root, "src/cli", `${claim.name}.ts`))) {
        return `there is no command "nanogate ${claim.name}" (src/cli/${claim.name}.ts)`;
      }
      const unknown = claim.options.filter((option) => option !== "--help" && !commandLine.includes(option));
      return unknown.length > 0 ? `no command takes ${unknown.join(", ")}` : null;
    }
    case "script":
      return Object.hasOwn(scripts, claim.name) ? null : `package.json has no script ${claim.name}`;
    case "name":
      return Object.hasOwn(ERROR_ADVICE, claim.name) || environment.includes(claim.name)
        ? null
        : `${claim.name} is neither an error code nor a variable that is read`;
    case "setting":
      return valueAt(config, claim.path) === undefined ? `there is no setting ${claim.path.join(".")}` : null;
    default:
      return claim satisfies never;
  }
}

const settings = new Set(Object.keys(config));

describe("documentation", () => {
  it.each(pages)("%s names only what exists", (page) => {
    const wrong = claimsOf(read(page), settings).flatMap((claim) => falsehood(claim, page) ?? []);
    expect(wrong).toEqual([]);
  });

  it("docs/errors.md lists exactly the errors there are, with their advice (npm run schema)", () => {
    const rows = [...read("docs/errors.md").matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(([, code, advice]) => [
      code,
      advice,
    ]);
    expect(rows).toEqual(Object.entries(ERROR_ADVICE));
  });
});

/** Every configuration that a page shows. */
const shown = pages.flatMap((page) =>
  [...read(page).matchAll(/^ *```json5\n([\s\S]*?)^ *```/gm)].map(([, text = ""]) => ({ page, text })),
);

describe("configurations in the documentation", () => {
  it.each(shown)("$page: $text", async ({ text }) => {
    const folder = await mkdtemp(path.join(tmpdir(), "ng-docs-"));
    try {
      const file = path.join(folder, "config.json");
      await writeFile(file, text);
      const variables = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => [name, "a-value-of-this-test"]);
      const env = { NANOGATE_HOME: folder, ...Object.fromEntries(variables) };
      expect((await loadConfig({ file, env, cwd: folder })).warnings).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("are some", () => {
    expect(shown.length).toBeGreaterThan(2);
  });
});

const hasFile = (file: string) => existsSync(path.join(root, file));

describe("README", () => {
  it.each([
    ["No Telegram", hasFile("src/channels/telegram")],
    ["no Discord", hasFile("src/channels/discord")],
    ["no cron", hasFile("src/automation")],
    ["no metrics", hasFile("src/http/metrics.ts")],
    ["no Docker image", hasFile("Dockerfile")],
    ["no OpenAI-compatible API", hasFile("src/http/openai.ts")],
    ["no wizard", hasFile("src/cli/onboard.ts")],
    ["no `pairing`", hasFile("src/cli/pairing.ts")],
  ])("says %j exactly as long as it is true", (words, isThere) => {
    expect(read("README.md").includes(words)).toBe(!isThere);
  });
});

describe("the check itself", () => {
  const wrongIn = (page: string) => claimsOf(page, settings).map((claim) => falsehood(claim, "docs/a.md"));

  it.each([
    "`src/nothing.ts`",
    "`nothing.json`",
    "[a page](nothing.md)",
    "`nanogate nothing`",
    "`npx nanogate --nothing`",
    "`npm run nothing`",
    "`NO_SUCH_CODE`",
    "`gateway.nothing`",
    '`agent.nothing: "x"`',
    "```sh\n$ npm run nothing # why\n```",
    "```\nnpm run setup && LOG_LEVEL=debug nanogate nothing\n```",
  ])("refuses %j", (page) => {
    expect(wrongIn(page).filter((wrong) => wrong !== null)).toHaveLength(1);
  });

  it.each([
    "`src/errors.ts`",
    "`package.json`",
    "[errors](errors.md) and [elsewhere](https://example.com)",
    "`npm run setup` and `npm test`",
    "`BUS_OVERLOADED`, `REDIS_URL`",
    '`gateway.leaseMs`, `session.fsync: "turn"`',
    "```sh\nnpm run setup && npm start\n```",
    "`nanogate --help`",
  ])("believes %j", (page) => {
    const found = wrongIn(page);
    expect(found.length).toBeGreaterThan(0);
    expect(found.filter((wrong) => wrong !== null)).toEqual([]);
  });

  it("leaves alone what only looks like a claim", () => {
    expect(wrongIn("`sessions/<name>.jsonl`, `nanogate`, `a.b`, `src/*.ts`, `GET /healthz`, gateway.nothing")).toEqual(
      [],
    );
  });
});

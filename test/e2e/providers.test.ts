/** A turn through the whole line with Anthropic's wire behind a first model that cannot be used. */
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Stage } from "./support/stage.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
  const settings = JSON.parse(await readFile(stage.configFile, "utf8")) as Record<string, unknown>;
  const providers = {
    // Far and without a key: refused before anything is sent.
    keyless: { baseUrl: "https://models.invalid/v1" },
    claude: { kind: "anthropic", apiKey: "sk-ant-stage-000000", baseUrl: stage.model.baseUrl },
  };
  const agent = { model: "keyless/x", fallbackModels: ["nobody/y", "claude/c"] };
  await writeFile(stage.configFile, JSON.stringify({ ...settings, providers, agent }));
});
afterAll(() => stage.close());

it("the fallback answers, runs its tool, and the rows it left are read by the next turn", async () => {
  const first = await stage.agent('call list_dir {"path":"memory"}');
  expect(first.out).toContain("used: ");
  expect(first.out).toContain("MEMORY.md");
  const second = await stage.agent("and then?");
  expect(second.out).toContain("re: and then?");

  expect(stage.model.requests.every(({ model }) => model === "c")).toBe(true);
  const roles = stage.model.requests.at(-1)?.messages.map(({ role }) => role);
  expect(roles).toEqual(["system", "user", "assistant", "tool", "assistant", "user"]);
  const rows = await stage.rows("cli:direct");
  expect(rows.filter(({ role }) => role === "assistant")).toHaveLength(3);
  expect(JSON.stringify(rows)).not.toContain("keyless");
});

it("a skipped fallback is said in the log at start", async () => {
  const gateway = await stage.gateway();
  const warnings = gateway.log.split("\n").filter((line) => line.includes("nobody/y") && line.includes("is skipped"));
  expect(warnings).toHaveLength(1);
});

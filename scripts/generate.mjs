/**
 * Writes what is made from the source and never edited by hand: `config/default.json`, `config/schema.json`,
 * `docs/errors.md` and the table in `docs/configuration.md`. Needs a build: `npm run schema` does both. Tests compare the
 * results with the source.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { defaultConfig, renderJsonSchema } from "../dist/config/schema.js";
import { ERROR_ADVICE } from "../dist/errors.js";
import { withSettings } from "./config-page.mjs";

const read = (file) => readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
const write = (file, text) => writeFileSync(new URL(`../${file}`, import.meta.url), text);
const json = (value) => `${JSON.stringify(value, null, 2)}\n`;

const errors = Object.entries(ERROR_ADVICE).map(([code, advice]) => `| \`${code}\` | ${advice} |`);

write("config/default.json", json({ $schema: "./schema.json", ...defaultConfig() }));
write("config/schema.json", json(renderJsonSchema()));
write("docs/configuration.md", withSettings(read("docs/configuration.md"), renderJsonSchema()));
write(
  "docs/errors.md",
  `# Errors

Every failure that a person may see has a code that stays the same, and says what to do.
This page is made from \`src/errors.ts\` by \`npm run schema\`.

| code | what to do |
|---|---|
${errors.join("\n")}
`,
);

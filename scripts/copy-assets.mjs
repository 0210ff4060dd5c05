/**
 * Completes a build: copies what `tsc` leaves out (Lua scripts, templates, the page) from src to dist under the same
 * path, and makes the command executable. It deletes nothing. `node scripts/copy-assets.mjs [SOURCE TARGET]`.
 */
import { chmodSync, cpSync, existsSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ASSETS = new Set([".lua", ".md", ".html", ".css", ".js"]);
const root = fileURLToPath(new URL("..", import.meta.url));
const [source = path.join(root, "src"), target = path.join(root, "dist")] = process.argv.slice(2);

cpSync(source, target, {
  recursive: true,
  filter: (file) => statSync(file).isDirectory() || ASSETS.has(path.extname(file)),
});

const command = path.join(target, "main.js");
if (existsSync(command)) chmodSync(command, 0o755);

/**
 * A real Chromium without a window, found on this machine; nothing is downloaded. A test that has none fails with one
 * sentence that says what to do.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { type Browser, chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const MAC_APPS = [
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
/** A test machine may be root, have no graphics and no network; the browser must ask nobody but the page's gateway. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts the browser; end it with `close()`. */
export function openBrowser(): Promise<Browser> {
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter((folder) => folder !== "");
  const candidates = [...folders.flatMap((folder) => NAMES.map((name) => path.join(folder, name))), ...MAC_APPS];
  const executablePath = candidates.find((file) => existsSync(file));
  if (executablePath === undefined)
    throw new Error("No Chromium was found: run `npm run setup:test`, or install chromium or Google Chrome.");
  return chromium.launch({ executablePath, args: FLAGS });
}

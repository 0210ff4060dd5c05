/** The version of this package, read from its `package.json`. It is the only place that does. */
import { readFile } from "node:fs/promises";

export async function packageVersion(): Promise<string> {
  const text = await readFile(new URL("../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { version: string };
  return version;
}

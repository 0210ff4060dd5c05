/**
 * The gateway token kept in the home folder. It does not decide whether a token is needed, and prints none.
 * Invariant: a token that once stood in the file is never replaced, also when several processes start at once.
 */
import { randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { NanogateError } from "../errors.js";
import { tokenFileIn } from "./paths.js";

function hasErrno(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** The token in `<home>/token`; null when there is none. Throws `CONFIG_UNREADABLE`. */
export async function readToken(home: string): Promise<string | null> {
  const file = tokenFileIn(home);
  try {
    return (await readFile(file, "utf8")).trim() || null;
  } catch (cause) {
    if (hasErrno(cause, "ENOENT")) return null;
    throw new NanogateError("CONFIG_UNREADABLE", `The token file ${file} cannot be read.`, { cause });
  }
}

/** The token in `<home>/token`, made with mode 600 where there is none. Throws `CONFIG_UNREADABLE`. */
export async function ensureToken(home: string): Promise<string> {
  const known = await readToken(home);
  if (known !== null) return known;
  const file = tokenFileIn(home);
  const draft = path.join(home, `token.${process.pid}.${randomBytes(4).toString("hex")}`);
  try {
    await mkdir(home, { recursive: true, mode: 0o700 });
    await writeFile(draft, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
    // A link appears whole and only once, so the loser of a race reads the winner's token.
    await link(draft, file).catch((error: unknown) => {
      if (!hasErrno(error, "EEXIST")) throw error;
    });
  } catch (cause) {
    throw new NanogateError("CONFIG_UNREADABLE", `The token file ${file} cannot be written.`, { cause });
  } finally {
    await rm(draft, { force: true });
  }
  const made = await readToken(home);
  if (made === null) throw new NanogateError("CONFIG_UNREADABLE", `The token file ${file} is empty; delete it.`);
  return made;
}

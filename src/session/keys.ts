/**
 * Session key ↔ file name. Readable and injective: `cli:direct` is `cli_direct.jsonl`, and no two keys share a name.
 * It touches no disk and does not know where the folder is.
 *
 * Invariant: a name is one safe path segment of at most 206 bytes, never hidden, and leaves room below 255 for suffixes.
 */
import { createHash } from "node:crypto";
import { asSessionKey, type SessionKey } from "../bus/messages.js";

export const SESSION_SUFFIX = ".jsonl";

const MAX_STEM_BYTES = 200;
const DIGEST_LENGTH = 40;
/** Never part of an encoded stem, so a shortened name cannot equal a whole one. */
const CUT_MARK = "~";
const PLAIN = /^[A-Za-z0-9.-]$/;

/**
 * UTF-8 of one code point. A lone surrogate gets the three bytes that UTF-8 leaves unused; the standard encoder would
 * write the same replacement character for all of them, and different keys would meet in one file.
 */
function bytesOf(codePoint: number): number[] {
  if (codePoint >= 0xd800 && codePoint <= 0xdfff) {
    return [0xe0 | (codePoint >> 12), 0x80 | ((codePoint >> 6) & 0x3f), 0x80 | (codePoint & 0x3f)];
  }
  return [...Buffer.from(String.fromCodePoint(codePoint), "utf8")];
}

function percent(codePoint: number): string {
  return bytesOf(codePoint)
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
    .join("");
}

function encode(key: string): string {
  let stem = "";
  for (const symbol of key) {
    if (symbol === ":") stem += "_";
    else if (PLAIN.test(symbol) && !(symbol === "." && stem === "")) stem += symbol;
    else stem += percent(symbol.codePointAt(0) ?? 0);
  }
  return stem === "" ? "%" : stem;
}

function shorten(stem: string): string {
  const digest = createHash("sha256").update(stem, "latin1").digest("hex").slice(0, DIGEST_LENGTH);
  const cut = stem.slice(0, MAX_STEM_BYTES - DIGEST_LENGTH - CUT_MARK.length).replace(/%[0-9A-F]?$/, "");
  return `${cut}${CUT_MARK}${digest}`;
}

/** The file name of a session, with its suffix. */
export function sessionFileName(key: SessionKey): string {
  const stem = encode(key);
  return (stem.length > MAX_STEM_BYTES ? shorten(stem) : stem) + SESSION_SUFFIX;
}

function decode(stem: string): string | null {
  try {
    return decodeURIComponent(stem.replaceAll("_", ":"));
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

/**
 * The key whose file has this name, or null where none has. A shortened name does not hold its key: `recordedKey`
 * (what the file says of itself) is then believed if it leads to this very name. [SES-30]
 */
export function sessionKeyOfFile(name: string, recordedKey?: string): SessionKey | null {
  if (!name.endsWith(SESSION_SUFFIX)) return null;
  const decoded = decode(name.slice(0, -SESSION_SUFFIX.length));
  for (const candidate of [decoded, recordedKey]) {
    if (candidate === null || candidate === undefined || candidate.length === 0 || candidate.length > 512) continue;
    const key = asSessionKey(candidate);
    if (sessionFileName(key) === name) return key;
  }
  return null;
}

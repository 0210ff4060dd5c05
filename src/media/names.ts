/**
 * The name a kept file gets from the one its sender gave it. Pure; it looks at no file. Invariants, for any text: the result
 * is one path segment of at most 120 bytes that no file system refuses, begins with no dot, holds no character that is
 * unseen or turns the writing round, and naming it again changes nothing.
 */

const MAX_BYTES = 120;
const MAX_EXTENSION_BYTES = 20;

/** Control and format characters and line separators; the two joiners stay, emoji and some scripts are written with them. */
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu;
/** What a file system, a shell's reader or a line in a prompt would take for more than a character. */
const TELLING = /[<>:"|?*[\]`]/g;
const VISIBLE = /[\p{L}\p{N}\p{P}\p{S}]/u;
const RESERVED = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])\s*(?:\.|$)/i;
const EXTENSION = /(?<=.)\.[^.\s]+$/su;

const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ["application/json", ".json"],
  ["application/pdf", ".pdf"],
  ["audio/mp4", ".m4a"],
  ["audio/mpeg", ".mp3"],
  ["audio/ogg", ".ogg"],
  ["audio/wav", ".wav"],
  ["audio/x-m4a", ".m4a"],
  ["image/gif", ".gif"],
  ["image/jpeg", ".jpg"],
  ["image/png", ".png"],
  ["image/webp", ".webp"],
  ["text/html", ".html"],
  ["text/plain", ".txt"],
  ["text/xml", ".xml"],
  ["video/mp4", ".mp4"],
  ["video/webm", ".webm"],
]);

/** The usual ending of a file of this type with its dot; empty where there is none that everybody knows. */
export function extensionOf(mime: string): string {
  return EXTENSIONS.get(mime) ?? "";
}

function namelessFile(mime: string): string {
  const [kind = ""] = mime.split("/");
  return (["image", "audio", "video"].includes(kind) ? kind : "file") + extensionOf(mime);
}

const bytesOf = (text: string): number => Buffer.byteLength(text, "utf8");

/** As many pieces from the front as fit. */
function fitting(pieces: Iterable<string>, maxBytes: number): string {
  let text = "";
  let bytes = 0;
  for (const piece of pieces) {
    bytes += bytesOf(piece);
    if (bytes > maxBytes) break;
    text += piece;
  }
  return text;
}

function* graphemes(text: string): Generator<string> {
  for (const { segment } of new Intl.Segmenter("und", { granularity: "grapheme" }).segment(text)) yield segment;
}

/** Cuts from the stem, so that the name still says what kind of file it is. */
function cut(name: string): string {
  if (bytesOf(name) <= MAX_BYTES) return name;
  const ending = EXTENSION.exec(name)?.[0] ?? "";
  const extension = bytesOf(ending) <= MAX_EXTENSION_BYTES ? ending : "";
  const stem = name.slice(0, name.length - extension.length);
  const room = MAX_BYTES - bytesOf(extension);
  // One grapheme may be of any length: then between its code points.
  const kept = fitting(graphemes(stem), room) || fitting(stem, room);
  return kept.replace(/[\s.]+$/u, "") + extension;
}

/** A safe name; `given` may be anything. Where it says nothing, the name says what kind of file it is. */
export function safeName(given: string | null, mime: string): string {
  const last = (given ?? "").toWellFormed().replace(UNSEEN, "").split(/[\\/]/u).at(-1) ?? "";
  const plain = last.normalize("NFC").replace(TELLING, "_").replace(/\s+/gu, " ");
  const bare = plain.replace(/^[\s.]+|[\s.]+$/gu, "");
  if (!VISIBLE.test(bare)) return namelessFile(mime);
  return cut(RESERVED.test(bare) ? `_${bare}` : bare);
}

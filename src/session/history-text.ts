/**
 * The words of stored rows as a model sees them: breadcrumbs for files, old markers taken out, and what they cost.
 * Pure text work; which rows are shown is decided in `history.ts`.
 *
 * Invariant: cleaning a cleaned text changes nothing, and no stored time gets into a prompt.
 */
import type { MediaRef } from "../bus/messages.js";
import { type RowContent, textOf } from "./row.js";

const IMAGE_NAME = /\.(?:avif|bmp|gif|heic|jpe?g|png|svg|tiff?|webp)$/i;
const TIME_MARK = /^(?:\s*\[Message Time: [^\]\n]*\][ \t]*\n?)+/;
const IMAGE_LINE = /^\s*\[image: [^\]\n]*\]\s*$/;
const ECHOED_CALL = /^\s*(?:message|generate_image)\(.*\)\s*$/;
/** What every line that is taken out begins with. */
const MARKS = /\[Message Time: |\[image: |message\(|generate_image\(/;
const FENCE_LINE = /^\s*(?:```|~~~)/;

/** What would end a breadcrumb early. Names in the store hold none of it; those of imports may. */
const BREAKING = /[[\]\p{Cc}\u2028\u2029]/gu;

function breadcrumb(media: string | MediaRef, folder: string): string {
  if (typeof media === "string") return `[${IMAGE_NAME.test(media) ? "image" : "file"}: ${media}]`;
  const kind = media.mime.startsWith("image/") ? "image" : "file";
  const at = folder === "" ? media.path : `${folder}/${media.path}`;
  const [name, mime, path] = [media.name, media.mime, at].map((text) => text.replace(BREAKING, "_"));
  return `[${kind}: ${name} (${mime}, ${media.bytes} bytes) at ${path}]`;
}

/**
 * A user row's text with a line for each attached file; a spoken message whose words stand in the text needs none. Files of
 * the store are named below `folder`, where a tool finds them. [SES-38]
 */
export function userText(content: RowContent, media: ReadonlyArray<string | MediaRef>, folder = ""): string {
  const text = textOf(content);
  const files = media.filter((file) => typeof file === "string" || file.isVoice !== true);
  return [...(text === "" ? [] : [text]), ...files.map((file) => breadcrumb(file, folder))].join("\n");
}

/**
 * An assistant row's text without what earlier prompts had put into its mouth: time markers, lines that only name an
 * image, lines that spell a tool call out. Quoted code is left alone. [SES-37]
 */
export function assistantText(content: RowContent): string {
  const text = textOf(content);
  // Nearly every text: without one of these no rule below finds anything.
  if (!MARKS.test(text)) return text;
  const lines = text.replace(TIME_MARK, "").split("\n");
  let isCode = false;
  const kept = lines.filter((line) => {
    if (FENCE_LINE.test(line)) isCode = !isCode;
    return isCode || !(IMAGE_LINE.test(line) || ECHOED_CALL.test(line));
  });
  if (kept.length === lines.length) return lines.join("\n");
  // Taking a line out may bring a marker to the front.
  return assistantText(kept.join("\n").trim());
}

/** A tool result's text; never empty, so that the pair of call and result survives. [SES-54] */
export function toolText(content: RowContent): string {
  const text = textOf(content);
  return text === "" ? "(no output)" : text;
}

/**
 * A cheap guess of how many tokens a text is; rather too high than too low. Plain ASCII takes four bytes a token, other
 * scripts three. Never more than one token a UTF-16 unit.
 */
export function estimateTokens(text: string): number {
  const bytes = Buffer.byteLength(text, "utf8");
  return Math.ceil(bytes / (bytes === text.length ? 4 : 3));
}

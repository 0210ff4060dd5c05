/**
 * What a file is, by its bytes. What its sender says is only believed where they say nothing, and never that it is an image
 * or a text. It opens the file for that and changes nothing. Invariants: markup, SVG among it, is `text/…`, so that nobody
 * shows it as an image; the result is a plain `type/subtype` without parameters.
 */
import type { Logger } from "../logger.js";

const HEAD_BYTES = 2048;
const UNKNOWN = "application/octet-stream";
const SOUND = /^[a-z]+\/[a-z0-9][\w.+-]{0,98}$/;
/** Endings of texts that tell more than "text". */
const TEXTS: ReadonlyMap<string, string> = new Map([
  ["csv", "text/csv"],
  ["htm", "text/html"],
  ["html", "text/html"],
  ["json", "application/json"],
  ["md", "text/markdown"],
  ["svg", "text/xml"],
  ["xml", "text/xml"],
]);

/** Watches bytes go by: are they text, and how do they begin? */
export class TextProbe {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  #isText = true;
  #head = "";

  take(bytes: Uint8Array): void {
    if (this.#isText) this.#decode(bytes, { stream: true });
  }

  /** The beginning of the text; null when the bytes are no UTF-8 or hold a NUL. */
  end(): string | null {
    if (this.#isText) this.#decode(new Uint8Array(), {});
    return this.#isText ? this.#head : null;
  }

  #decode(bytes: Uint8Array, options: { stream?: boolean }): void {
    try {
      const text = this.#decoder.decode(bytes, options);
      if (bytes.includes(0)) this.#isText = false;
      else if (this.#head.length < HEAD_BYTES) this.#head += text.slice(0, HEAD_BYTES);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.#isText = false;
    }
  }
}

/** What the sender said of a file. */
export interface Claim {
  name: string | null;
  mime: string | null;
}

function claimedType({ mime }: Claim): string {
  const [bare = ""] = (mime ?? "").toLowerCase().split(";");
  return SOUND.test(bare.trim()) ? bare.trim() : "";
}

function markupType(head: string): string | null {
  const start = head.replace(/^(?:\s|<!--[\s\S]*?-->|<\?xml[\s\S]*?\?>)+/, "");
  if (/^<(?:!doctype\s+html|html|head|body|script)\b/i.test(start)) return "text/html";
  return /^<(?:!doctype\s|svg\b)/i.test(start) || /^\s*<\?xml\b/i.test(head) ? "text/xml" : null;
}

function textType(head: string, claim: Claim): string {
  const markup = markupType(head);
  if (markup !== null) return markup;
  const claimed = claimedType(claim);
  const [, ending = ""] = /\.([a-z]{2,4})$/i.exec(claim.name ?? "") ?? [];
  const byName = TEXTS.get(ending.toLowerCase());
  if (byName !== undefined) return byName;
  if (claimed === "image/svg+xml") return "text/xml";
  return claimed.startsWith("text/") || claimed === "application/json" ? claimed : "text/plain";
}

function binaryType(claim: Claim): string {
  const claimed = claimedType(claim);
  return /^(?:application|audio|video|font|model)\/(?!.*xml)/.test(claimed) ? claimed : UNKNOWN;
}

async function sniffed(path: string, logger: Logger): Promise<string | null> {
  const { fileTypeFromFile } = await import("file-type");
  try {
    const [mime = ""] = ((await fileTypeFromFile(path))?.mime ?? "").split(";");
    return mime === "" ? null : mime.trim();
  } catch (error) {
    logger.debug({ err: error, path }, "the type of a file could not be found out");
    return null;
  }
}

/** The type of the file at `path`. `head`: how it begins, where it is text. */
export async function contentTypeOf(
  path: string,
  { head, claim, logger }: { head: string | null; claim: Claim; logger: Logger },
): Promise<string> {
  const mime = await sniffed(path, logger);
  if (mime !== null && /xml$/.test(mime)) return head === null ? "text/xml" : textType(head, claim);
  // Some types are told by two or three letters, with which a text may begin too.
  const isDoubtful = mime === null || /^(?:image|audio|video)\/|msdownload/.test(mime);
  if (head !== null && isDoubtful) return textType(head, claim);
  return mime ?? binaryType(claim);
}

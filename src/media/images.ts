/**
 * Kept images as a model gets them: scaled down where sharp is installed, in a format that models take, not too many bytes.
 * It decides neither which images are shown nor to whom. Invariants: the same file and limits give the same bytes, so that a
 * provider's cache holds within a turn; what cannot be shown is a reason in words, never an error.
 */
import { readFile, stat } from "node:fs/promises";
import type { MediaRef } from "../bus/messages.js";
import type { MediaShelf } from "../channels/ports.js";
import type { Logger } from "../logger.js";
import type { Picture, Sharp } from "./sharp.js";
import { sizeInWords } from "./size.js";

/** Formats that vision models take. */
export type ImageMime = "image/gif" | "image/jpeg" | "image/png" | "image/webp";

/** An image for a model, or why there is none: words that may stand in a prompt. */
export type ImageRead = { kind: "image"; mime: ImageMime; bytes: Buffer } | { kind: "refused"; why: string };

export interface ImageReader {
  read(ref: MediaRef): Promise<ImageRead>;
}

export interface ImageReaderDeps {
  files: Pick<MediaShelf, "pathOf">;
  /** The longer side, after scaling. */
  maxPixels: number;
  sharp: () => Promise<Sharp | null>;
  logger: Logger;
}

/** 5 MB as base64, which no provider we know refuses. */
const MAX_IMAGE_BYTES = 3_750_000;
const MAX_INPUT_PIXELS = 100_000_000;
const QUALITY = 85;
const LAST_QUALITY = 60;

function isImageMime(mime: string): mime is ImageMime {
  return ["image/gif", "image/jpeg", "image/png", "image/webp"].includes(mime);
}

const refused = (why: string): ImageRead => ({ kind: "refused", why });

interface Original {
  mime: ImageMime;
  bytes: Buffer;
}

/** In its own format where that keeps what it shows; a moving image is shown as its first picture. */
function encoded(picture: Picture, mime: ImageMime): { picture: Picture; mime: ImageMime } {
  switch (mime) {
    case "image/jpeg":
      return { picture: picture.jpeg({ quality: QUALITY }), mime };
    case "image/webp":
      return { picture: picture.webp({ quality: QUALITY }), mime };
    case "image/gif":
    case "image/png":
      return { picture: picture.png(), mime: "image/png" };
    default:
      return mime satisfies never;
  }
}

/** The image within the limits, scaled or turned only where it must be. */
async function scaled({ mime, bytes }: Original, sharp: Sharp, maxPixels: number): Promise<ImageRead> {
  const open = () => sharp(bytes, { limitInputPixels: MAX_INPUT_PIXELS, failOn: "error" });
  const { width = 0, height = 0, orientation = 1 } = await open().metadata();
  const fits = Math.max(width, height) <= maxPixels && bytes.length <= MAX_IMAGE_BYTES;
  if (fits && orientation === 1) return { kind: "image", mime, bytes };
  const size = { width: maxPixels, height: maxPixels, fit: "inside" as const, withoutEnlargement: true as const };
  const small = () => open().autoOrient().resize(size);
  const first = encoded(small(), mime);
  const result = await first.picture.toBuffer();
  if (result.length <= MAX_IMAGE_BYTES) return { kind: "image", mime: first.mime, bytes: result };
  const last = await small().flatten({ background: "#ffffff" }).jpeg({ quality: LAST_QUALITY }).toBuffer();
  if (last.length > MAX_IMAGE_BYTES) return refused("it is too large, however it is scaled");
  return { kind: "image", mime: "image/jpeg", bytes: last };
}

/** Reads kept images for models. */
export function createImageReader({ files, maxPixels, sharp, logger }: ImageReaderDeps): ImageReader {
  async function load(ref: MediaRef): Promise<ImageRead> {
    const { mime } = ref;
    if (!isImageMime(mime)) return refused(`models take no ${mime}`);
    const path = await files.pathOf(ref);
    const scaler = await sharp();
    const { size } = await stat(path);
    if (scaler === null && size > MAX_IMAGE_BYTES) {
      return refused(`it has ${sizeInWords(size)}, and nothing is installed that makes it smaller`);
    }
    const bytes = await readFile(path);
    return scaler === null ? { kind: "image", mime, bytes } : scaled({ mime, bytes }, scaler, maxPixels);
  }

  return {
    async read(ref) {
      try {
        return await load(ref);
      } catch (error) {
        logger.warn({ err: error, file: ref.path }, "an image could not be read for the model");
        return refused("it is not kept any more, or it cannot be read as an image");
      }
    },
  };
}

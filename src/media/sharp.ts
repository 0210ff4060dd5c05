/**
 * The door to sharp, which is installed where it can be and not needed anywhere else. It works on no image itself. Invariant:
 * nothing is loaded before the first image, and where sharp is missing or does not run the answer is null, not an error.
 */
import type { Logger } from "../logger.js";

/** What we use of an image that is being worked on. */
export interface Picture {
  metadata(): Promise<{ width?: number; height?: number; orientation?: number; pages?: number }>;
  /** Turned as its camera says. */
  autoOrient(): Picture;
  resize(size: { width: number; height: number; fit: "inside"; withoutEnlargement: true }): Picture;
  flatten(options: { background: string }): Picture;
  jpeg(options: { quality: number }): Picture;
  png(): Picture;
  webp(options: { quality: number }): Picture;
  toBuffer(): Promise<Buffer>;
}

export interface PictureOptions {
  /** Larger images are refused before their pixels are made: a small file may hold a huge one. */
  limitInputPixels: number;
  /** Phones write images with small faults; only what cannot be read is one to us. */
  failOn: "error";
}

export type Sharp = (bytes: Buffer, options: PictureOptions) => Picture;

/** Named by a variable, so that the build does not need what may be missing. */
const PACKAGE: string = "sharp";

function isModule(value: unknown): value is { default: Sharp } {
  return typeof value === "object" && value !== null && "default" in value && typeof value.default === "function";
}

/** Sharp, or null where there is none; whichever it is, it is looked for once. */
export function createSharpLoader(logger: Logger): () => Promise<Sharp | null> {
  let found: Promise<Sharp | null> | undefined;
  async function load(): Promise<Sharp | null> {
    try {
      const module: unknown = await import(PACKAGE);
      return isModule(module) ? module.default : null;
    } catch (error) {
      logger.info({ err: error }, "sharp is not installed: images go to models as large as they came");
      return null;
    }
  }
  return () => {
    found ??= load();
    return found;
  };
}

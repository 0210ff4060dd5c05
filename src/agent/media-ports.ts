/**
 * What turns need from the store of files: where a kept file lies, and an image as a model takes it. Implemented by the media
 * room, handed in by the composition root. Types only.
 */
import type { MediaRef } from "../bus/messages.js";
import type { ImageMime } from "./providers/provider.js";

export interface MediaFiles {
  /** The absolute path of a kept file. Throws `MEDIA_REFUSED` for one that is gone. */
  pathOf(ref: MediaRef): Promise<string>;
}

export interface ImageSource {
  /** The image within the limits of models, or why it cannot be shown, in words that may stand in a prompt. Never throws. */
  read(ref: MediaRef): Promise<{ kind: "image"; mime: ImageMime; bytes: Buffer } | { kind: "refused"; why: string }>;
}

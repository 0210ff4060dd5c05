/**
 * Shows a model the images of the turn at hand. Which images these are is decided by `session/history.ts`, how they are scaled
 * by whoever reads them. Invariants: an image that is not shown is named in the text with the reason; rows without images pass
 * unchanged; how many and how large the images of one request are is bounded.
 */
import type { MediaRef } from "../bus/messages.js";
import type { PromptRow } from "./context.js";
import type { ImageSource } from "./media-ports.js";
import type { ChatMessage, ModelImage } from "./providers/provider.js";

export interface Vision {
  /** The rows with their images. Throws only the signal's reason. */
  show(rows: readonly PromptRow[], signal: AbortSignal): Promise<ChatMessage[]>;
}

/** Images of one request, and their bytes together: about 20 MB as base64. */
const MAX_IMAGES = 20;
const MAX_BYTES = 15_000_000;

/** An image for the wire, or the reason why there is none. */
type Shown = ModelImage | string;

type UserRow = Extract<PromptRow, { role: "user" }>;

/** Images by path, the newest first, each once. */
function newestFirst(rows: readonly PromptRow[]): MediaRef[] {
  const images = rows.flatMap((row) => (row.role === "user" ? (row.images ?? []) : []));
  return [...new Map(images.toReversed().map((image) => [image.path, image])).values()];
}

async function readAll(images: readonly MediaRef[], source: ImageSource, signal: AbortSignal) {
  const shown = new Map<string, Shown>();
  let room = MAX_BYTES;
  for (const [position, image] of images.entries()) {
    signal.throwIfAborted();
    if (position >= MAX_IMAGES || room <= 0) {
      shown.set(image.path, "there are too many images");
      continue;
    }
    const read = await source.read(image);
    if (read.kind === "image") room -= read.bytes.length;
    const isShown = read.kind === "image" && room >= 0;
    const why = read.kind === "image" ? "there are too many images" : read.why;
    shown.set(image.path, isShown ? { mime: read.mime, base64: read.bytes.toString("base64") } : why);
  }
  return shown;
}

/** The row with what there is to show; an image that a later row repeats is shown there. */
function rowWith({ content, images = [] }: UserRow, shown: Map<string, Shown>, later: Set<string>): ChatMessage {
  const here = images.filter(({ path }) => !later.has(path) && later.add(path));
  const visible = here.flatMap(({ path }) => {
    const image = shown.get(path);
    return image === undefined || typeof image === "string" ? [] : [image];
  });
  const notes = here.flatMap(({ name, path }) => {
    const why = shown.get(path);
    return typeof why === "string" ? [`(${name} is not shown: ${why}.)`] : [];
  });
  const text = [content, ...notes].join("\n");
  return { role: "user", content: text, ...(visible.length === 0 ? {} : { images: visible }) };
}

export function createVision({ images: source }: { images: ImageSource }): Vision {
  return {
    async show(rows, signal) {
      const images = newestFirst(rows);
      const shown = images.length === 0 ? new Map<string, Shown>() : await readAll(images, source, signal);
      const later = new Set<string>();
      const backwards = rows.toReversed().map((row): ChatMessage => {
        if (row.role !== "user") return row;
        return row.images === undefined ? { role: "user", content: row.content } : rowWith(row, shown, later);
      });
      return backwards.toReversed();
    },
  };
}

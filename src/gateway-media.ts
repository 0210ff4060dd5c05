/**
 * The part of the composition root that knows files: where they are kept, how models see them, who listens to what is spoken.
 * It starts nothing. Invariant: channels, turns and upkeep use one store.
 */
import { createTranscriber } from "./agent/transcription.js";
import type { TurnMedia } from "./agent/turn-media.js";
import { createVision } from "./agent/vision.js";
import type { LoadedConfig } from "./config/load.js";
import type { Logger } from "./logger.js";
import { createImageReader } from "./media/images.js";
import { createSharpLoader } from "./media/sharp.js";
import { createMediaStore, type MediaStore } from "./media/store.js";
import type { Metrics } from "./metrics.js";

const DAY_MS = 86_400_000;

export interface MediaParts {
  store: MediaStore;
  turn: TurnMedia;
}

export function assembleMedia({ config, mediaFolder }: LoadedConfig, logger: Logger, metrics: Metrics): MediaParts {
  const { maxBytes, keepDays, imageMaxPixels } = config.media;
  const keepMs = keepDays * DAY_MS;
  const store = createMediaStore({ folder: mediaFolder, maxBytes, keepMs, nowMs: Date.now, logger, metrics });
  const sharp = createSharpLoader(logger);
  const images = createImageReader({ files: store, maxPixels: imageMaxPixels, sharp, logger });
  const { transcription: settings, providers } = config;
  const transcriber = createTranscriber({ settings, providers, files: store, metrics });
  return { store, turn: { transcriber, vision: createVision({ images }) } };
}

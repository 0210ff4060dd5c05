/** A media store in a folder of its own for one test file, and files on their way in. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { IncomingFile } from "../../src/channels/ports.js";
import { createLogger } from "../../src/logger.js";
import { createMediaStore, type MediaStore } from "../../src/media/store.js";
import { KeptMetrics } from "../fakes/kept-metrics.js";

export interface MediaStage {
  /** The folder around the store's: what lies in it is outside. */
  readonly base: string;
  readonly folder: string;
  readonly metrics: KeptMetrics;
  readonly log: string[];
  store(options?: { maxBytes?: number; keepMs?: number; nowMs?: () => number; folder?: string }): MediaStore;
}

/** Registers the hooks of a test file and gives its stage. */
export function mediaStage(): MediaStage {
  const state = { base: "", metrics: new KeptMetrics(), log: [] as string[] };
  beforeEach(async () => {
    state.base = await mkdtemp(path.join(tmpdir(), "ng-media-"));
    state.metrics = new KeptMetrics();
    state.log = [];
  });
  afterEach(() => rm(state.base, { recursive: true, force: true }));
  return {
    get base() {
      return state.base;
    },
    get folder() {
      return path.join(state.base, "home", "media");
    },
    get metrics() {
      return state.metrics;
    },
    get log() {
      return state.log;
    },
    store(options = {}) {
      const { log, metrics } = state;
      const logger = createLogger({ level: "debug", secrets: [], destination: { write: (line) => log.push(line) } });
      const folder = path.join(state.base, "home", "media");
      return createMediaStore({
        folder,
        maxBytes: 10_000_000,
        keepMs: 86_400_000,
        nowMs: Date.now,
        logger,
        metrics,
        ...options,
      });
    },
  };
}

async function* chunksOf(chunks: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

/** A file on its way in; `content` in one chunk or in several. */
export function incoming(
  content: string | Uint8Array | Iterable<Uint8Array>,
  claim: Partial<Omit<IncomingFile, "body">> = {},
): IncomingFile {
  const whole =
    typeof content === "string" ? [Buffer.from(content)] : content instanceof Uint8Array ? [content] : content;
  return { name: null, mime: null, isVoice: false, body: chunksOf(whole), ...claim };
}

/** The smallest PNG: one pixel. */
export const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

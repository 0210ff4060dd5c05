/**
 * Fetches the files of a message into the media shelf, one after the other. It judges nobody: who is not admitted never gets
 * here. Invariant: every file is kept or is named in words with the reason; none of them stops a message.
 */
import type { MediaRef } from "../../bus/messages.js";
import { hasCode } from "../../errors.js";
import type { Logger } from "../../logger.js";
import type { Clock } from "../clock.js";
import type { MediaShelf } from "../ports.js";
import type { WireFile } from "./hear.js";
import { marker } from "./parts.js";

export interface FileDeps {
  media: MediaShelf;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
}

/** Longest time for one file. */
const FETCH_MS = 60_000;
const TRIES = 2;

/** What was kept, and words for what was not. */
export async function keepFiles(
  deps: FileDeps,
  files: readonly WireFile[],
): Promise<{ media: MediaRef[]; notes: string[] }> {
  const media: MediaRef[] = [];
  const notes: string[] = [];
  for (const file of files) {
    const kept = file.size > deps.media.maxBytes ? "larger than this bot takes" : await keepFile(deps, file);
    if (typeof kept === "string") notes.push(marker({ name: file.filename, bytes: file.size }, kept));
    else media.push(kept);
  }
  return { media, notes };
}

async function keepFile(deps: FileDeps, file: WireFile): Promise<MediaRef | string> {
  for (let tries = 1; ; tries += 1) {
    const over = new AbortController();
    const signal = AbortSignal.any([deps.signal, over.signal]);
    const done = new AbortController();
    const limit = deps.clock.sleep(FETCH_MS, done.signal).then(() => over.abort());
    try {
      return await fetchFile(deps, file, signal);
    } catch (error) {
      deps.logger.warn({ err: error, attachment: file.id, tries }, "a file of a message could not be kept");
      if (hasCode(error, "MEDIA_REFUSED")) return error.message;
      if (tries >= TRIES || deps.signal.aborted) return "it could not be fetched from Discord";
    } finally {
      done.abort();
      await limit;
    }
  }
}

async function fetchFile({ media }: FileDeps, file: WireFile, signal: AbortSignal): Promise<MediaRef> {
  const response = await fetch(file.url, { signal, redirect: "error" });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw new Error(`the file server answered ${response.status}`);
  }
  const { filename: name, content_type: mime, isVoice } = file;
  return media.save({ name, mime: mime ?? null, isVoice, body: response.body });
}

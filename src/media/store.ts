/**
 * The one store of files that people send: a folder by months under the home. It knows no channel and asks nobody whether a
 * file is welcome. Invariants: a name in the store leads to a whole file or to nothing; nothing longer than `maxBytes` is
 * read or kept; no reference, whoever made it, leads out of the folder.
 */
import { randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import type { MediaRef } from "../bus/messages.js";
import type { IncomingFile, MediaShelf } from "../channels/ports.js";
import { NanogateError } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import { contentTypeOf, TextProbe } from "./content-type.js";
import { safeName } from "./names.js";
import { sizeInWords } from "./size.js";
import { sweepFolder } from "./sweep.js";

export interface MediaStoreDeps {
  /** Absolute; made when the first file comes. */
  folder: string;
  /** Bytes of one file. */
  maxBytes: number;
  /** How long files are kept. */
  keepMs: number;
  /** Epoch ms. */
  nowMs: () => number;
  logger: Logger;
  metrics: Metrics;
}

export interface MediaStore extends MediaShelf {
  readonly folder: string;
  /** Removes what is older than `keepMs`, and what a killed process left half written. How many files went. */
  sweep(): Promise<number>;
}

type Outcome = "kept" | "too_large" | "empty" | "no_disk" | "broken_off";

/** A refusal and the outcome it is counted under. */
class Refused extends NanogateError {
  constructor(
    readonly outcome: Outcome,
    message: string,
    options?: { cause?: unknown },
  ) {
    super("MEDIA_REFUSED", message, options);
  }
}

/** Work on the disk; what it fails with is told in words that its sender may read. */
async function onDisk<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const isFull = code === "ENOSPC" || code === "EDQUOT";
    const why = isFull ? "the disk of the gateway is full" : "the gateway cannot write to its media folder";
    throw new Refused("no_disk", `The file could not be kept: ${why}.`, { cause: error });
  }
}

interface Written {
  bytes: number;
  head: string | null;
}

async function writeBody(handle: FileHandle, body: IncomingFile["body"], maxBytes: number): Promise<Written> {
  const probe = new TextProbe();
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    // Thrown inside the loop: the sender's stream is closed, and nothing more of it is read.
    if (bytes > maxBytes) throw new Refused("too_large", `The file is larger than ${sizeInWords(maxBytes)}.`);
    probe.take(chunk);
    await onDisk(() => handle.appendFile(chunk));
  }
  if (bytes === 0) throw new Refused("empty", "The file is empty.");
  await onDisk(() => handle.datasync());
  return { bytes, head: probe.end() };
}

async function writeNew(file: string, body: IncomingFile["body"], maxBytes: number): Promise<Written> {
  const handle = await onDisk(() => open(file, "wx", 0o600));
  try {
    return await writeBody(handle, body, maxBytes);
  } finally {
    await handle.close();
  }
}

async function keep(file: IncomingFile, { folder, maxBytes, nowMs, logger }: MediaStoreDeps): Promise<MediaRef> {
  const id = randomBytes(12).toString("hex");
  const month = new Date(nowMs()).toISOString().slice(0, 7);
  const part = path.join(folder, month, `.${id}.part`);
  await onDisk(() => mkdir(path.dirname(part), { recursive: true, mode: 0o700 }));
  try {
    const { bytes, head } = await writeNew(part, file.body, maxBytes);
    const mime = await contentTypeOf(part, { head, claim: file, logger });
    const name = safeName(file.name, mime);
    const kept = `${month}/${id}_${name}`;
    await onDisk(() => rename(part, path.join(folder, kept)));
    return { path: kept, mime, name, bytes, ...(file.isVoice ? { isVoice: true } : {}) };
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

function gone(ref: MediaRef, cause?: unknown): NanogateError {
  return new NanogateError("MEDIA_REFUSED", `The file ${safeName(ref.name, ref.mime)} is not kept here any more.`, {
    cause,
  });
}

/** Where a reference leads after every link is followed. */
async function find(folder: string, ref: MediaRef): Promise<string> {
  const parts = ref.path.split("/");
  const isOurs = parts.every((part) => part !== "" && !part.startsWith(".") && !/[\\\0]/.test(part));
  if (!isOurs) throw gone(ref);
  try {
    const [root, real] = await Promise.all([realpath(folder), realpath(path.join(folder, ...parts))]);
    if (real.startsWith(root + path.sep) && (await stat(real)).isFile()) return real;
  } catch (error) {
    throw gone(ref, error);
  }
  throw gone(ref);
}

function outcomeOf(error: unknown): Outcome {
  return error instanceof Refused ? error.outcome : "broken_off";
}

/** The store of one home. */
export function createMediaStore(deps: MediaStoreDeps): MediaStore {
  const { folder, maxBytes, keepMs, nowMs, logger, metrics } = deps;
  return {
    folder,
    maxBytes,

    async save(file) {
      try {
        const ref = await keep(file, deps);
        metrics.count("media_files_total", { outcome: "kept" });
        return ref;
      } catch (error) {
        const outcome = outcomeOf(error);
        metrics.count("media_files_total", { outcome });
        if (outcome === "no_disk") logger.error({ err: error, folder }, "a file could not be kept");
        throw error;
      }
    },

    pathOf: (ref) => find(folder, ref),

    async sweep() {
      const removed = await sweepFolder({ folder, keepMs, nowMs: nowMs(), logger });
      if (removed > 0) metrics.count("media_files_total", { outcome: "expired" }, removed);
      return removed;
    },
  };
}

/**
 * Files on their way in: asked for, streamed onto the shelf, or a reason in words why not. It decides nothing about who may
 * send. Invariants: a file that is announced as too big is not fetched; whatever fails costs the message its file and never
 * its text; no reason holds an address or a token.
 */
import type { Api } from "grammy";
import pLimit, { type LimitFunction } from "p-limit";
import type { MediaRef } from "../../bus/messages.js";
import { hasCode } from "../../errors.js";
import type { Logger } from "../../logger.js";
import type { Clock } from "../clock.js";
import type { MediaShelf } from "../ports.js";
import { safeError } from "./api-error.js";
import { bareRoot } from "./connection.js";
import { withDeadline } from "./deadline.js";
import type { FileRequest } from "./parse-files.js";
import { sdkSignal } from "./sdk-signal.js";

/** What the Bot API gives out. */
const PLATFORM_MAX_BYTES = 20_000_000;
/** A file that takes longer is given up. */
const FETCH_LIMIT_MS = 120_000;
const RETRY_MS = 1_000;
/** Downloads at once. */
const AT_ONCE = 8;

/** A kept file, or why there is none, for the one who sent it. */
export type Fetched = { kind: "kept"; ref: MediaRef } | { kind: "missed"; why: string };

export interface FileFetcherDeps {
  api: () => Api;
  token: string;
  apiRoot: string;
  clock: Clock;
}

export interface FetchInto {
  shelf: MediaShelf;
  logger: Logger;
  signal: AbortSignal;
}

export class FileFetcher {
  readonly #deps: FileFetcherDeps;
  readonly #limit: LimitFunction = pLimit(AT_ONCE);

  constructor(deps: FileFetcherDeps) {
    this.#deps = deps;
  }

  /** Rejects only when the signal aborts. */
  fetch(file: FileRequest, into: FetchInto): Promise<Fetched> {
    const maxBytes = Math.min(PLATFORM_MAX_BYTES, into.shelf.maxBytes);
    if (file.bytes !== null && file.bytes > maxBytes)
      return Promise.resolve({
        kind: "missed",
        why: `${megabytes(file.bytes)} are more than the ${megabytes(maxBytes)} I can take`,
      });
    return this.#limit(() => this.#tryTwice(file, into));
  }

  async #tryTwice(file: FileRequest, into: FetchInto): Promise<Fetched> {
    for (let tries = 1; ; tries += 1) {
      try {
        const deadline = { clock: this.#deps.clock, ms: FETCH_LIMIT_MS, signal: into.signal };
        return {
          kind: "kept",
          ref: await withDeadline(deadline, (signal) => this.#download(file, into.shelf, signal)),
        };
      } catch (error) {
        into.signal.throwIfAborted();
        if (hasCode(error, "MEDIA_REFUSED")) return { kind: "missed", why: error.message };
        const isLast = tries > 1 || !mayHelpToRepeat(error);
        into.logger.warn({ err: safeError(error), what: file.what, isLast }, "a file could not be fetched");
        if (isLast) return { kind: "missed", why: whyMissed(error) };
      }
      await this.#deps.clock.sleep(RETRY_MS, into.signal);
    }
  }

  async #download(file: FileRequest, shelf: MediaShelf, signal: AbortSignal): Promise<MediaRef> {
    const { api, token, apiRoot } = this.#deps;
    const { file_path: path = "" } = await api().getFile(file.fileId, sdkSignal(signal));
    const parts = path.split("/");
    if (path === "" || parts.includes("..")) throw new FileTrouble("the platform names no place for it", false);
    const place = parts.map(encodeURIComponent).join("/");
    const response = await fetch(`${bareRoot(apiRoot)}/file/bot${token}/${place}`, { signal, redirect: "error" });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      throw new FileTrouble(`the platform answered ${response.status}`, response.status >= 500);
    }
    const { name, mime, isVoice } = file;
    return shelf.save({ name, mime, isVoice, body: response.body });
  }
}

class FileTrouble extends Error {
  override readonly name = "FileTrouble";
  constructor(
    message: string,
    readonly isPassing: boolean,
  ) {
    super(message);
  }
}

/** A refusal stays; networks recover. A time limit has cost enough. */
function mayHelpToRepeat(error: unknown): boolean {
  if (error instanceof FileTrouble) return error.isPassing;
  return error instanceof Error && (error.name === "HttpError" || error instanceof TypeError);
}

function whyMissed(error: unknown): string {
  if (error instanceof Error && error.name === "Late") return "it took too long";
  if (error instanceof Error && /too big/i.test(error.message))
    return `it is bigger than the ${megabytes(PLATFORM_MAX_BYTES)} I can take`;
  return "it could not be fetched";
}

function megabytes(bytes: number): string {
  return `${Number((bytes / 1_000_000).toFixed(1))} MB`;
}

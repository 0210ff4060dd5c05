/**
 * Parts of albums, which come as messages of their own: whether one of them is meant for the bot, and when no more of them
 * is to be expected. It joins nothing; the bus makes one turn of them. Invariants: all parts share what one says about whom
 * the album is meant for; what is known of an album is forgotten by and by.
 */
import type { Knock } from "../channel.js";
import type { Clock } from "../clock.js";

/** The next part of an album follows within this time. */
const QUIET_MS = 900;
const MAX_ALBUMS = 200;

type Scene = Knock["scene"];

interface Album {
  lastMs: number;
  scene: Scene;
  /** Parts on their way in. */
  parts: Set<Promise<unknown>>;
}

export class Albums {
  readonly #clock: Clock;
  readonly #albums = new Map<string, Album>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A part has come. */
  note(name: string, scene: Scene): void {
    const album = this.#albums.get(name) ?? { lastMs: 0, scene, parts: new Set() };
    album.lastMs = this.#clock.nowMs();
    album.scene = both(album.scene, scene);
    // Moved to the end: the first one is the oldest.
    this.#albums.delete(name);
    this.#albums.set(name, album);
    const [oldest] = this.#albums.keys();
    if (this.#albums.size > MAX_ALBUMS && oldest !== undefined) this.#albums.delete(oldest);
  }

  /** What is known of the whole album, as soon as no part has come for a while. */
  async settled(name: string, own: Scene, signal: AbortSignal): Promise<Scene> {
    for (;;) {
      const album = this.#albums.get(name);
      if (album === undefined) return own;
      const leftMs = album.lastMs + QUIET_MS - this.#clock.nowMs();
      if (leftMs <= 0 || signal.aborted) return both(own, album.scene);
      await this.#clock.sleep(leftMs, signal);
    }
  }

  /** A part is being fetched. */
  track(name: string, part: Promise<unknown>): void {
    this.#albums.get(name)?.parts.add(part);
  }

  /** Returns when all parts so far are fetched, so that they are stored in quick succession. */
  async fetched(name: string): Promise<void> {
    await Promise.allSettled(this.#albums.get(name)?.parts ?? []);
  }
}

function both(one: Scene, other: Scene): Scene {
  if (one.kind === "direct" || other.kind === "direct") return one;
  return {
    ...one,
    isMentioned: one.isMentioned || other.isMentioned,
    isReplyToBot: one.isReplyToBot || other.isReplyToBot,
    isCommand: one.isCommand || other.isCommand,
  };
}

/**
 * What becomes of one update: read, let in, its files fetched, stored. It asks for no updates and acknowledges none.
 * Invariants: nothing that anyone could see happens before the sender is admitted; within a chat messages are stored in the
 * order in which they came; it returns only when the update is stored or rightly skipped.
 */
import type { Api } from "grammy";
import type { InboundMessage, MediaRef } from "../../bus/messages.js";
import type { ChannelContext, Knock } from "../channel.js";
import type { Clock } from "../clock.js";
import { Albums } from "./albums.js";
import { ChatOrder } from "./chat-order.js";
import type { FileFetcher } from "./media-in.js";
import { idsOf, noteMove } from "./moved-groups.js";
import { parseUpdate, type Saying } from "./parse.js";
import type { Me } from "./parse-address.js";
import { type FileRequest, missingFile } from "./parse-files.js";
import { acknowledgePress } from "./presses.js";
import type { InboundSettings } from "./settings.js";

export interface IntakeDeps {
  account: string;
  settings: Pick<InboundSettings, "streaming" | "lateEdits">;
  files: FileFetcher;
  api: () => Api;
  clock: Clock;
  /** ms since the epoch. */
  wallMs: () => number;
}

/** How one update is taken in. */
export interface Taking {
  me: Me;
  context: ChannelContext;
  signal: AbortSignal;
  /** How a step is done that fails while the bus is away: again and again, or not. */
  insist: <T>(step: () => Promise<T>) => Promise<T>;
}

const MAX_CHANNELS = 1_000;

export class Intake {
  readonly #deps: IntakeDeps;
  readonly #albums: Albums;
  readonly #order = new ChatOrder();
  /** Channels whose posts were ignored. */
  readonly #channels = new Set<string>();

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
    this.#albums = new Albums(deps.clock);
  }

  /** Throws what `insist` throws; then the update is not stored. */
  async take(update: { update_id: number }, taking: Taking): Promise<void> {
    const { account, settings, wallMs } = this.#deps;
    const { logger } = taking.context;
    const now = new Date(wallMs()).toISOString();
    const { streaming: isStreaming, lateEdits } = settings;
    const parsed = parseUpdate(update, { account, me: taking.me, isStreaming, lateEdits, now });
    switch (parsed.kind) {
      case "saying":
        return this.#takeSaying(parsed, taking);
      case "moved":
        return taking.insist(() => noteMove(parsed, taking.context));
      case "malformed":
        logger.warn({ update: update.update_id, at: parsed.why }, "a malformed update was skipped");
        return;
      case "ignored":
        logger[this.#isNews(parsed.channelId) ? "info" : "debug"](
          { update: update.update_id, why: parsed.why, chatId: parsed.channelId },
          "an update was ignored",
        );
        return;
      default:
        return parsed satisfies never;
    }
  }

  /** A channel's first post is worth a line, its others are not. */
  #isNews(channelId: string | null): boolean {
    if (channelId === null || this.#channels.has(channelId) || this.#channels.size >= MAX_CHANNELS) return false;
    this.#channels.add(channelId);
    return true;
  }

  async #takeSaying(saying: Saying, taking: Taking): Promise<void> {
    const { album, knock } = saying;
    if (album !== null) this.#albums.note(album, knock.scene);
    const prepared = this.#prepare(saying, taking);
    if (album !== null) this.#albums.track(album, prepared);
    // Begun at once, so that files of one chat are fetched side by side; awaited in its place.
    const settled = Promise.allSettled([prepared]);
    await this.#order.after(saying.message.chatId, async () => {
      await settled;
      if (album !== null) await this.#albums.fetched(album);
      const message = await prepared;
      if (message !== null) await taking.insist(() => taking.context.accept(message));
    });
  }

  /** The message as it is stored; null when its sender may not speak. */
  async #prepare(saying: Saying, taking: Taking): Promise<InboundMessage | null> {
    const { context, signal, insist } = taking;
    const knock = await this.#knockOf(saying, taking);
    const admission = await insist(() => context.admit(knock));
    if (admission.kind === "refused") return null;
    if (saying.press !== null) {
      const { api, clock } = this.#deps;
      await acknowledgePress(saying.press, { api: api(), clock, logger: context.logger, signal });
    }
    const own = await this.#fetchAll(saying.files, taking);
    const quote =
      saying.quote === null ? null : { ...saying.quote, ...(await this.#fetchAll(saying.quote.files, taking)) };
    return {
      ...saying.message,
      content: [saying.message.content, ...own.missing].filter((line) => line !== "").join("\n"),
      media: own.media,
      ...(quote === null ? {} : { replyTo: { text: [quote.text, ...quote.missing].join("\n"), media: quote.media } }),
      isOwner: admission.isOwner,
    };
  }

  async #knockOf({ album, knock }: Saying, { context, signal, insist }: Taking): Promise<Knock> {
    const scene = album === null ? knock.scene : await this.#albums.settled(album, knock.scene, signal);
    signal.throwIfAborted();
    if (scene.kind === "direct") return { ...knock, scene };
    const chatIds = await insist(() => idsOf(knock.route.chatId, context.memory));
    return { ...knock, scene: { ...scene, chatIds } };
  }

  async #fetchAll(files: readonly FileRequest[], { context, signal }: Taking): Promise<Files> {
    const { media: shelf, logger } = context;
    const fetched = await Promise.all(
      files.map(async (file) => ({ file, got: await this.#deps.files.fetch(file, { shelf, logger, signal }) })),
    );
    return {
      media: fetched.flatMap(({ got }) => (got.kind === "kept" ? [got.ref] : [])),
      missing: fetched.flatMap(({ file, got }) => (got.kind === "kept" ? [] : [missingFile(file, got.why)])),
    };
  }
}

interface Files {
  media: MediaRef[];
  /** Lines that stand for files which could not be had. */
  missing: string[];
}

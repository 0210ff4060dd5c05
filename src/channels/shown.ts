/**
 * Which messages show the streams of a turn that are not done: kept as receipts under the turn, so that a new owner finds
 * them. It sends nothing and changes no message; it only takes away what turned out to be too much. Invariant: a message
 * that shows a stream is changed into its answer, taken over by a later stream of the turn, or taken away.
 */
import type { Receipt } from "../bus/delivery-ports.js";
import type { OutboundMessage, Outgoing } from "../bus/messages.js";
import type { Logger } from "../logger.js";
import type { Authority } from "./authority.js";
import type { OutboxChannel } from "./channel.js";
import { type Clock, inTime } from "./clock.js";
import type { ReceiptChanges, Receipts } from "./receipts.js";

export interface ShownDeps {
  channel: OutboxChannel;
  receipts: Pick<Receipts, "read" | "store">;
  clock: Clock;
  logger: Logger;
  /** What this process knows of a stream. */
  stateOf: (turnId: string, streamId: string) => "open" | "ended" | "unknown";
}

/** What is shown of a turn, seen from one of its streams. Platform ids, by the index of the part. */
export interface ShownView {
  own: string[];
  /** Of streams that came to nothing. */
  others: string[];
  /** Names of the receipts that say so. */
  names: string[];
}

const NOTHING: ShownView = { own: [], others: [], names: [] };
const REMOVE_LIMIT_MS = 10_000;

export class ShownStreams {
  readonly #deps: ShownDeps;

  constructor(deps: ShownDeps) {
    this.#deps = deps;
  }

  /** What an answer finds of its stream. A short word between finds only what nobody will go on with. */
  async forAnswer(authority: Authority, { route, message }: Outgoing): Promise<ShownView> {
    if (this.#deps.channel.live === null || !route.isStreaming) return NOTHING;
    const streamId = message.event.type === "final" ? message.event.streamId : null;
    const keepsOpen = message.event.type !== "final";
    return this.#view(authority, { turnId: message.turnId, streamId, keepsOpen });
  }

  /** What a stream that begins here finds: its own messages from before a change of owner, or those of a void one. */
  forStream(authority: Authority, turnId: string, streamId: string): Promise<ShownView> {
    return this.#view(authority, { turnId, streamId, keepsOpen: false });
  }

  /** Notes which messages show a stream now, and that they show nothing else. Throws `LEASE_LOST`. */
  async keep(
    authority: Authority,
    shown: { turnId: string; streamId: string; ids: string[]; old: string[] },
  ): Promise<void> {
    const changes = new Map<string, Receipt | null>(shown.old.map((name) => [name, null]));
    for (const [at, platformId] of shown.ids.entries())
      changes.set(`${shown.streamId}.${at}`, { state: "sent", platformId });
    await this.#deps.receipts.store(authority, shown.turnId, changes);
  }

  /** An answer is there: what shows none of its parts is taken away. Throws `LEASE_LOST`. */
  async removeRest(
    authority: Authority,
    message: OutboundMessage,
    { view, receipts }: { view: ShownView; receipts: ReadonlyMap<string, Receipt> },
  ): Promise<void> {
    const used = new Set([...receipts.values()].map((each) => (each.state === "sent" ? each.platformId : null)));
    for (const platformId of [...view.own, ...view.others]) {
      if (!used.has(platformId)) await this.remove(platformId, message, authority.signal);
    }
    if (view.names.length > 0) await this.#deps.receipts.store(authority, message.turnId, forgotten(view.names));
  }

  /** Takes a message away, if the platform lets us. */
  async remove(platformId: string, message: OutboundMessage, signal: AbortSignal): Promise<void> {
    const { channel, clock, logger } = this.#deps;
    const { turnId: turn, chatId } = message;
    try {
      await inTime(clock, { ms: REMOVE_LIMIT_MS, signal }, async (ends) =>
        channel.live?.remove(platformId, message, ends),
      );
    } catch (error) {
      logger.warn({ err: error, turn, chatId }, "a message that shows too much could not be taken away");
    }
  }

  async #view(
    authority: Authority,
    { turnId, streamId, keepsOpen }: { turnId: string; streamId: string | null; keepsOpen: boolean },
  ): Promise<ShownView> {
    const { all } = await this.#deps.receipts.read(authority, turnId);
    const view: ShownView = { own: [], others: [], names: [] };
    for (const [name, receipt] of [...all].sort(byPlace)) {
      const { stream } = placeOf(name);
      const state = this.#deps.stateOf(turnId, stream);
      if (receipt.state !== "sent") continue;
      if (stream !== streamId && (state === "ended" || (keepsOpen && state === "open"))) continue;
      view.names.push(name);
      (stream === streamId ? view.own : view.others).push(receipt.platformId);
    }
    return view;
  }
}

function forgotten(names: readonly string[]): ReceiptChanges {
  return new Map(names.map((name) => [name, null]));
}

function placeOf(name: string): { stream: string; index: number } {
  const at = name.lastIndexOf(".");
  return { stream: name.slice(0, at), index: Number(name.slice(at + 1)) };
}

function byPlace([a]: [string, unknown], [b]: [string, unknown]): number {
  const [left, right] = [placeOf(a), placeOf(b)];
  return left.stream < right.stream ? -1 : left.stream > right.stream ? 1 : left.index - right.index;
}

/**
 * What an owner does with the lossy events of its account: signs of work, and previews at the pace of each chat. The answers
 * themselves are the deliverer's. Invariant: within one interval a chat sees at most one change of a preview, in a lane where
 * nothing else waits; events that come too fast cost memory for the latest text only.
 */
import type { Delivery } from "../bus/delivery-ports.js";
import type { OutboundMessage } from "../bus/messages.js";
import { hasCode } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Authority } from "./authority.js";
import type { LiveView } from "./channel.js";
import { backOffMs, type Clock } from "./clock.js";
import { type Lanes, laneOf } from "./lanes.js";
import type { LivePainter, Painted } from "./live-painter.js";
import type { LiveTurns, Stream } from "./live-turns.js";
import type { LiveEvents } from "./ports.js";
import { SILENCE_MS, type Working } from "./working.js";

export interface LiveDeskDeps {
  account: string;
  live: LiveView<unknown>;
  events: LiveEvents;
  turns: LiveTurns;
  working: Working;
  painter: LivePainter;
  lanes: Lanes;
  clock: Clock;
  logger: Logger;
  authority: Authority;
  /** The account is not ours any more. */
  onLost: () => void;
}

/** One chat with previews to show. */
interface Chat {
  readonly waiting: Set<Stream>;
  /** Not before this. */
  nextMs: number;
}

/** Time between two looks at a chat whose lanes are taken. */
const LOOK_AGAIN_MS = 250;

export class LiveDesk {
  readonly #deps: LiveDeskDeps;
  readonly #chats = new Map<string, Chat>();
  readonly #beganMs: number;
  readonly #following: Promise<void>;

  constructor(deps: LiveDeskDeps) {
    this.#deps = deps;
    this.#beganMs = deps.clock.nowMs();
    this.#following = this.#follow();
  }

  /** An answer was delivered or given up. */
  answered({ outgoing: { message } }: Delivery): void {
    const { turns, working, clock } = this.#deps;
    const isUnknown = !working.end(message.turnId) && !turns.knowsEndOf(message.turnId);
    turns.answered(message);
    // Its turn may have begun under another owner, whose sign nobody takes away.
    const mayBeForeign = message.event.type === "final" && clock.nowMs() - this.#beganMs < SILENCE_MS;
    if (isUnknown && mayBeForeign) void working.endForeign(message);
  }

  /** Returns when the signs of work are gone and nothing is listened to; the authority has ended before. */
  async stop(): Promise<void> {
    await this.#following;
    await this.#deps.working.stop();
  }

  async #follow(): Promise<void> {
    const { account, authority, clock, events, logger } = this.#deps;
    const { ending } = authority;
    for (let tries = 1; !ending.aborted; tries += 1) {
      try {
        const unfollow = await events.follow(account, (message) => this.#take(message));
        await new Promise<void>((resolve) => {
          if (ending.aborted) resolve();
          ending.addEventListener("abort", () => resolve(), { once: true });
        });
        return await unfollow();
      } catch (error) {
        logger.warn({ err: error, account }, "live events could not be followed; trying again");
        await clock.sleep(backOffMs(tries), ending);
      }
    }
  }

  #take(message: OutboundMessage): void {
    const { turns, working, authority } = this.#deps;
    if (authority.ending.aborted) return;
    const change = turns.apply(message);
    if (change === "over") working.end(message.turnId);
    if (change === "over" || change === "late") return;
    working.see(message);
    if (change !== "work") this.#want(message.chatId, change.stream);
  }

  #want(chatId: string, stream: Stream): void {
    const known = this.#chats.get(chatId);
    if (known !== undefined) {
      known.waiting.add(stream);
      return;
    }
    const chat: Chat = { waiting: new Set([stream]), nextMs: this.#deps.clock.nowMs() };
    this.#chats.set(chatId, chat);
    void this.#serve(chatId, chat);
  }

  /** Shows what waits, a change an interval; a chat that was still for one is forgotten. */
  async #serve(chatId: string, chat: Chat): Promise<void> {
    const { authority, clock } = this.#deps;
    const { ending } = authority;
    while (!ending.aborted) {
      const restMs = chat.nextMs - clock.nowMs();
      if (restMs > 0) {
        await clock.sleep(restMs, ending);
        continue;
      }
      if (chat.waiting.size === 0) break;
      await this.#showOne(chat);
    }
    this.#chats.delete(chatId);
  }

  async #showOne(chat: Chat): Promise<void> {
    const { lanes, clock, live } = this.#deps;
    const stream = [...chat.waiting].find(({ message }) => lanes.isFree(laneOf(message)));
    if (stream === undefined) {
      chat.nextMs = clock.nowMs() + LOOK_AGAIN_MS;
      return;
    }
    chat.waiting.delete(stream);
    const painted = await this.#inLane(stream);
    if (painted.kind !== "done") chat.waiting.add(stream);
    // From the end of the change: the platform sees them at least so far apart.
    chat.nextMs = clock.nowMs() + (painted.kind === "later" ? painted.ms : live.intervalMs(stream.message));
  }

  /** In a lane that is free, so that it runs at once. */
  #inLane(stream: Stream): Promise<Painted> {
    return new Promise((resolve) => {
      void this.#deps.lanes.add(laneOf(stream.message), async () => resolve(await this.#paint(stream)));
    });
  }

  async #paint(stream: Stream): Promise<Painted> {
    const { painter, authority, logger, onLost } = this.#deps;
    try {
      return await painter.paint(stream, authority);
    } catch (error) {
      const { turnId: turn, message } = stream;
      if (hasCode(error, "LEASE_LOST")) onLost();
      else logger.error({ err: error, turn, chatId: message.chatId }, "a stream could not be shown");
      stream.isFrozen = true;
      return { kind: "done" };
    }
  }
}

/**
 * Brings what a chat shows of a stream nearer to its text, one change at a time. It keeps no pace and runs in the chat's lane,
 * so nobody else writes the same message meanwhile. Invariant: a message that shows a stream is noted before anything else is
 * done; what cannot be shown is left to the answer, which carries the whole.
 */
import type { OutboundMessage } from "../bus/messages.js";
import type { Logger } from "../logger.js";
import type { Authority } from "./authority.js";
import type { Caller } from "./caller.js";
import { DeliveryError, type LiveView, type OutboxChannel } from "./channel.js";
import { backOffMs, type Clock, inTime } from "./clock.js";
import type { LimitGate } from "./limit-gate.js";
import type { LiveTurns, ShownPart, Stream } from "./live-turns.js";
import type { ShownStreams } from "./shown.js";

export interface PainterDeps {
  channel: OutboxChannel;
  live: LiveView<unknown>;
  turns: LiveTurns;
  shown: Pick<ShownStreams, "forStream" | "keep" | "remove">;
  caller: Pick<Caller, "tryOnce">;
  gate: Pick<LimitGate, "tryPass" | "park">;
  clock: Clock;
  logger: Logger;
  /** A send that takes longer has an unknown outcome, ms. */
  sendTimeoutMs: number;
}

/** What came of one look at a stream. `later`: nothing could be done, the chat rests for so long. */
export type Painted = { kind: "done" | "more" } | { kind: "later"; ms: number };

/** Nobody waits long for a preview: an answer may stand behind it. */
const EDIT_LIMIT_MS = 10_000;
/** Shortest time before the limits are asked again. */
const LOOK_AGAIN_MS = 100;
/** Changes in a row that may fail. */
const MAX_FAILURES = 5;

/** A stream at one look. */
interface Look {
  stream: Stream;
  message: OutboundMessage;
  authority: Authority;
  parts: unknown[];
  shown: ShownPart[];
}

export class LivePainter {
  readonly #deps: PainterDeps;

  constructor(deps: PainterDeps) {
    this.#deps = deps;
  }

  /** Makes one change, if there is one to make. Throws `LEASE_LOST`. */
  async paint(stream: Stream, authority: Authority): Promise<Painted> {
    const { channel, live, turns } = this.#deps;
    if (!turns.has(stream) || stream.hasGap || !authority.isHeld()) return { kind: "done" };
    const { version } = stream;
    const message = previewOf(stream);
    const way = live.way(message);
    const isBlank = stream.text.trim() === "";
    const parts = isBlank || way === "none" ? [] : channel.parts(message);
    stream.shown ??= way === "edits" ? await this.#find(stream, authority) : [];
    const look: Look = { stream, message, authority, parts, shown: stream.shown };
    const painted = stream.isFrozen ? "same" : await (way === "drafts" ? this.#draft(look) : this.#next(look));
    if (typeof painted === "number") return { kind: "later", ms: painted };
    if (painted === "changed" || stream.version !== version) return { kind: "more" };
    if (stream.isEnded) await this.#finish(look, way === "edits");
    return { kind: "done" };
  }

  /** What it showed before a change of owner, or what a void stream of its turn left behind. */
  async #find({ turnId, id: streamId, message }: Stream, authority: Authority): Promise<ShownPart[]> {
    const { shown } = this.#deps;
    const view = await shown.forStream(authority, turnId, streamId);
    if (view.names.length === 0) return [];
    const [ids, rest] = view.own.length > 0 ? [view.own, view.others] : [view.others, []];
    const old = view.names.filter((name) => !name.startsWith(`${streamId}.`));
    if (old.length > 0) await shown.keep(authority, { turnId, streamId, ids, old });
    for (const platformId of rest) await shown.remove(platformId, message, authority.signal);
    return ids.map((platformId) => ({ platformId, shows: "" }));
  }

  /** Changes the first message that differs, or sends the first that is missing. A number: how long to rest, ms. */
  async #next({ stream, message, authority, parts, shown }: Look): Promise<"same" | "changed" | number> {
    const at = parts.findIndex((part, index) => shown[index]?.shows !== JSON.stringify(part));
    const part = parts[at];
    const edits = shown[at]?.platformId ?? null;
    if (at < 0 || (edits === null && this.#deps.turns.isAnswered(stream))) return "same";
    const { channel, caller, gate, sendTimeoutMs, shown: kept } = this.#deps;
    const limits = channel.limits(message, part);
    const waitMs = await gate.tryPass(limits);
    if (waitMs > 0) return Math.max(waitMs, LOOK_AGAIN_MS);
    const limitMs = edits === null ? sendTimeoutMs : EDIT_LIMIT_MS;
    const call = { message, part, key: `${stream.id}.${at}`, edits };
    const sent = await caller.tryOnce(call, { signal: authority.signal, limitMs });
    if (sent instanceof DeliveryError) {
      if (sent.failure.kind === "transient" && sent.failure.retryAfterMs !== null)
        await gate.park(limits, sent.failure.retryAfterMs);
      return this.#restAfter(stream, sent, edits !== null);
    }
    stream.failures = 0;
    shown[at] = { platformId: sent.platformId, shows: JSON.stringify(part) };
    const { turnId, id: streamId } = stream;
    if (edits === null)
      await kept.keep(authority, { turnId, streamId, ids: shown.map(({ platformId }) => platformId), old: [] });
    return "changed";
  }

  /** A draft shows where the text has come to. */
  async #draft({ stream, message, authority, parts, shown }: Look): Promise<"same" | "changed" | number> {
    const part = parts.at(-1);
    const shows = JSON.stringify(part);
    const { channel, clock, gate, live, turns } = this.#deps;
    if (part === undefined || shown[0]?.shows === shows || turns.isAnswered(stream)) return "same";
    const waitMs = await gate.tryPass(channel.limits(message, part));
    if (waitMs > 0) return Math.max(waitMs, LOOK_AGAIN_MS);
    try {
      await inTime(clock, { ms: EDIT_LIMIT_MS, signal: authority.signal }, (signal) =>
        live.draft(stream.id, { message, part, key: stream.id, signal }),
      );
    } catch (error) {
      if (error instanceof DeliveryError) return this.#restAfter(stream, error, true);
      throw error;
    }
    shown[0] = { platformId: "", shows };
    return "changed";
  }

  /** How long to rest after a failure, ms; "same" when the stream is not shown any further. */
  #restAfter(stream: Stream, { failure, message }: DeliveryError, isRepeatable: boolean): "same" | number {
    stream.failures += 1;
    const isPassing = failure.kind === "transient" || (failure.kind === "unknown" && isRepeatable);
    const statedMs = failure.kind === "transient" ? failure.retryAfterMs : null;
    if (isPassing && (statedMs !== null || stream.failures < MAX_FAILURES))
      return statedMs ?? backOffMs(stream.failures);
    stream.isFrozen = true;
    const {
      turnId: turn,
      message: { chatId },
    } = stream;
    this.#deps.logger.info({ turn, chatId, reason: message }, "an answer is not shown while it is made");
    return "same";
  }

  /** A segment that is whole stands for itself: nothing of it is changed or taken away any more. */
  async #finish({ stream, authority, parts, shown }: Look, isKept: boolean): Promise<void> {
    const { turns, shown: kept } = this.#deps;
    const { turnId, id: streamId, message } = stream;
    if (isKept && shown.length > 0) {
      const surplus = stream.isFrozen ? [] : shown.slice(parts.length);
      for (const { platformId } of surplus) await kept.remove(platformId, message, authority.signal);
      await kept.keep(authority, { turnId, streamId, ids: [], old: shown.map((_, at) => `${streamId}.${at}`) });
    }
    turns.forget(turnId, streamId);
  }
}

/** The stream as a message that says what is known of it. */
function previewOf({ id, message, text }: Stream): OutboundMessage {
  return { ...message, id, content: text, media: [], buttons: [] };
}

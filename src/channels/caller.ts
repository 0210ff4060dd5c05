/**
 * One call for one part, until it is known what became of it: limits, time-outs, waits, tries. It stores nothing and knows
 * no message beyond its part. Invariant: no call is made without a place in its limits; a wait that the platform states is
 * kept exactly; a send whose outcome nobody knows is not repeated, an edit is.
 */

import type { OutboundMessage } from "../bus/messages.js";
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import { type Metrics, timed } from "../metrics.js";
import type { Authority } from "./authority.js";
import { DeliveryError, type OutboxChannel, type SendRequest } from "./channel.js";
import { backOffMs, type Clock } from "./clock.js";
import type { LimitGate } from "./limit-gate.js";
import type { RateLimit } from "./ports.js";

/** Tries of one part that fail before it is given up: about half an hour. */
export const MAX_ATTEMPTS = 36;
/** Longest time for one part, waits that the platform states included. */
export const MAX_TOTAL_MS = 3_600_000;
/** How long an aborted call may take to say what became of it. */
const LAST_WORD_MS = 1_000;

export interface CallerDeps {
  channel: OutboxChannel;
  gate: Pick<LimitGate, "pass" | "park">;
  clock: Clock;
  faults: FaultHook;
  logger: Logger;
  metrics: Metrics;
  /** A call that takes longer has an unknown outcome, ms. */
  sendTimeoutMs: number;
}

/** What a call is to show, and where: as a new message, or in place of what a shown one says. */
export interface Call {
  message: OutboundMessage;
  part: unknown;
  key: string;
  /** The message to change; null for a new one. */
  edits: string | null;
}

/** Notes that a call is under way from now on, or that it surely came to nothing. */
export type NoteCall = (isUnderWay: boolean) => Promise<void>;

/** How long one try may take. */
interface Within {
  signal: AbortSignal;
  limitMs: number;
}

/** The tries of one call so far. */
interface Tries {
  /** By the clock. */
  readonly untilMs: number;
  attempts: number;
  failures: number;
}

/** What became of a call. `ended`: the authority ended before anything was sent. */
export type CallEnd =
  | { kind: "sent"; platformId: string }
  | { kind: "unknown"; reason: string }
  | { kind: "refused"; reason: string; attempts: number }
  | { kind: "changed"; into: readonly unknown[]; reason: string; attempts: number }
  | { kind: "ended" };

export class Caller {
  readonly #deps: CallerDeps;

  constructor(deps: CallerDeps) {
    this.#deps = deps;
  }

  /** Never throws for what a platform says or a channel does, only what `note` throws. */
  async call(call: Call, authority: Authority, note: NoteCall): Promise<CallEnd> {
    const { channel, clock, gate } = this.#deps;
    const limits = channel.limits(call.message, call.part);
    const tries: Tries = { untilMs: clock.nowMs() + MAX_TOTAL_MS, attempts: 0, failures: 0 };
    do {
      tries.attempts += 1;
      const sent = await this.#inTurn(call, { limits, tries, authority, note });
      if (!(sent instanceof DeliveryError)) return sent;
      const next = this.#afterFailure(call, sent, tries);
      if ("kind" in next) return next;
      await note(false);
      const parked = next.isStated ? gate.park(limits, next.waitMs) : null;
      await clock.sleep(next.waitMs, authority.ending);
      await parked;
    } while (!authority.ending.aborted);
    return { kind: "ended" };
  }

  /** Waits for a place in the limits, notes that it sends, and tries once. */
  async #inTurn(
    call: Call,
    {
      limits,
      tries,
      authority,
      note,
    }: { limits: readonly RateLimit[]; tries: Tries; authority: Authority; note: NoteCall },
  ): Promise<CallEnd | DeliveryError> {
    const { clock, faults, gate, sendTimeoutMs } = this.#deps;
    const { untilMs, attempts } = tries;
    const isLetThrough = await gate.pass(limits, { signal: authority.ending, untilMs });
    if (!isLetThrough && clock.nowMs() >= untilMs) return refused("the platform's limits left no room", attempts);
    if (!isLetThrough || !authority.isHeld()) return { kind: "ended" };
    await note(true);
    // Storing it takes its time.
    if (!authority.isHeld()) {
      await note(false);
      return { kind: "ended" };
    }
    const sent = await this.tryOnce(call, { signal: authority.signal, limitMs: sendTimeoutMs });
    if (sent instanceof DeliveryError) return sent;
    faults("deliver.sent");
    return { kind: "sent", ...sent };
  }

  /** The end of a call, or how long to wait before the next try. A wait that the platform states is no failure. */
  #afterFailure(call: Call, error: DeliveryError, tries: Tries): CallEnd | { waitMs: number; isStated: boolean } {
    const { failure, message: reason } = error;
    const { attempts, untilMs } = tries;
    if (failure.kind === "change") return { kind: "changed", into: failure.into, reason, attempts };
    if (failure.kind === "permanent") return refused(reason, attempts);
    if (failure.kind === "unknown" && call.edits === null) return { kind: "unknown", reason };
    const statedMs = failure.kind === "transient" ? failure.retryAfterMs : null;
    if (statedMs === null) tries.failures += 1;
    const waitMs = statedMs ?? backOffMs(tries.failures);
    const isTooMuch = tries.failures >= MAX_ATTEMPTS || this.#deps.clock.nowMs() + waitMs > untilMs;
    return isTooMuch ? refused(reason, attempts) : { waitMs, isStated: statedMs !== null };
  }

  /** One try; what it gave, or why not. */
  tryOnce(call: Call, within: Within): Promise<{ platformId: string } | DeliveryError> {
    const { channel, metrics } = this.#deps;
    return timed(() => this.#inTime(call, within), {
      outcomeOf: (end) => (end.ok ? (end.value instanceof DeliveryError ? end.value.failure.kind : "sent") : "unknown"),
      onEnd: (outcome, ms) => metrics.observe("delivery_seconds", { channel: channel.name, outcome }, ms),
    });
  }

  /** An error that does not say what became of the call leaves it unclear. */
  async #inTime(call: Call, { signal, limitMs }: Within): Promise<{ platformId: string } | DeliveryError> {
    const { clock } = this.#deps;
    const done = new AbortController();
    const timeout = new AbortController();
    const limit = clock.sleep(limitMs, AbortSignal.any([signal, done.signal])).then(async () => {
      if (!done.signal.aborted) timeout.abort();
      await clock.sleep(LAST_WORD_MS, done.signal);
      const reason = signal.aborted ? "sending was ended before the platform answered" : "the platform did not answer";
      return new DeliveryError({ kind: "unknown" }, reason);
    });
    try {
      return await Promise.race([this.#show(call, AbortSignal.any([signal, timeout.signal])), limit]);
    } catch (error) {
      if (error instanceof DeliveryError) return error;
      const { id, chatId } = call.message;
      this.#deps.logger.error({ err: error, id, chatId }, "a send failed in an unknown way");
      return new DeliveryError({ kind: "unknown" }, "the send failed in an unknown way", { cause: error });
    } finally {
      done.abort();
    }
  }

  async #show({ edits, ...call }: Call, signal: AbortSignal): Promise<{ platformId: string }> {
    const { channel } = this.#deps;
    const request: SendRequest<unknown> = { ...call, signal };
    if (edits === null) return { platformId: (await channel.send(request)).platformId };
    if (channel.live === null) throw new DeliveryError({ kind: "permanent" }, "this channel changes no messages");
    await channel.live.edit(edits, request);
    return { platformId: edits };
  }
}

function refused(reason: string, attempts: number): CallEnd {
  return { kind: "refused", reason, attempts };
}

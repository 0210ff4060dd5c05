/**
 * Direct calls: the command line, programs, and whoever else wants an answer as a value. They take the same mailbox, lease,
 * slot and `/stop` as channel messages. Where no worker lives, the caller carries its session itself. Invariant: the result
 * is waited for before the message is stored, so none can be missed.
 */
import { randomUUID } from "node:crypto";
import type { Bus } from "../bus/bus.js";
import {
  asSessionKey,
  type InboundMessage,
  inboundKeyOf,
  type OutboundMessage,
  type SessionKey,
  type TurnResult,
  turnIdOf,
} from "../bus/messages.js";
import type { LiveSignals, Results, Upkeep } from "../bus/ports.js";
import { hasCode } from "../errors.js";
import type { Ingress } from "./ingress.js";
import type { AgentLoop } from "./loop.js";

/** How often a caller without workers looks whether its session is ready, ms. */
const LOOK_MS = 250;

export interface DirectDeps {
  bus: Bus;
  ingress: Ingress;
  loop: AgentLoop;
  results: Results;
  signals: LiveSignals;
  upkeep: Upkeep;
  /** The address on which a reply key's live events arrive. */
  liveAddressOf: (replyKey: string) => string;
}

export interface DirectRequest {
  sessionKey: SessionKey;
  content: string;
  /** Who calls; names the channel in the message. */
  channel: string;
  /** Called with what happens on the way; some of it may be missing. */
  onEvent?: (message: OutboundMessage) => void;
  /** Ends the waiting, not the turn. */
  signal: AbortSignal;
}

function messageFrom({ sessionKey, content, channel }: DirectRequest, replyKey: string): InboundMessage {
  const chatId = sessionKey.slice(sessionKey.indexOf(":") + 1);
  return {
    id: randomUUID(),
    kind: "message",
    channel,
    senderId: "local",
    chatId,
    content,
    timestamp: new Date().toISOString(),
    media: [],
    sessionKeyOverride: asSessionKey(sessionKey),
    role: "user",
    isOwner: true,
    route: { via: "result", replyKey, account: channel, channel, chatId, isStreaming: true },
    metadata: {},
  };
}

export class DirectCalls {
  readonly #deps: DirectDeps;

  constructor(deps: DirectDeps) {
    this.#deps = deps;
  }

  /** One message to its answer. Throws `BUS_OVERLOADED`, `BUS_UNAVAILABLE`, or the signal's reason. */
  async process(request: DirectRequest): Promise<TurnResult> {
    const { results, signals, ingress, liveAddressOf } = this.#deps;
    const { signal, onEvent } = request;
    signal.throwIfAborted();
    const replyKey = randomUUID();
    const message = messageFrom(request, replyKey);
    const inboundKey = inboundKeyOf(message);
    const { promise, resolve, reject } = withResolvers<TurnResult>();
    const isSettled = { now: false };
    const onAbort = () => reject(signal.reason);
    const ends: Array<() => Promise<void>> = [];
    try {
      if (onEvent !== undefined) ends.push(await signals.onLive(liveAddressOf(replyKey), onEvent));
      const finish = (result: TurnResult) => {
        isSettled.now = true;
        resolve(result);
      };
      ends.push(await results.watch(inboundKey, finish));
      signal.addEventListener("abort", onAbort);
      const taken = await ingress.accept(message);
      if (taken.status === "command")
        return { outcome: "completed", text: taken.text, turnId: turnIdOf(inboundKey), usage: null };
      const carrying = this.#carry(request, { inboundKey, isSettled, finish });
      const result = await Promise.race([promise, carrying.then(() => promise)]);
      await carrying;
      return result;
    } finally {
      isSettled.now = true;
      signal.removeEventListener("abort", onAbort);
      promise.catch(() => "its reason has been thrown");
      for (const end of ends) await end();
    }
  }

  /** Looks after a stored message until it is settled. */
  async #carry({ sessionKey, signal }: DirectRequest, call: Call): Promise<void> {
    while (!call.isSettled.now && !signal.aborted) {
      try {
        await this.#look(sessionKey, call);
      } catch (error) {
        // The message is stored: a Redis that is away only makes the caller wait.
        if (!hasCode(error, "BUS_UNAVAILABLE")) throw error;
      }
      await pauseUntil(LOOK_MS, call.isSettled);
    }
  }

  /** While no worker lives: takes the session if it is ready. */
  async #look(sessionKey: SessionKey, { inboundKey, isSettled, finish }: Call): Promise<void> {
    const { bus, loop, upkeep, results } = this.#deps;
    const { workers } = await upkeep.depths();
    const wake = workers === 0 ? await bus.peek(sessionKey) : null;
    const leaves = (answered: readonly string[]) => answered.includes(inboundKey);
    if (wake !== null && wake.delayMs === 0) await loop.run(sessionKey, wake.wake, { leaves });
    // An announcement may be lost with a connection; the stored result is not.
    const result = isSettled.now ? null : await results.get(inboundKey);
    if (result !== null) finish(result);
  }
}

/** A call that waits for its result. */
interface Call {
  inboundKey: string;
  isSettled: { now: boolean };
  finish: (result: TurnResult) => void;
}

/** Waits, in steps, so that a settled call is not held up. */
async function pauseUntil(ms: number, isSettled: { now: boolean }): Promise<void> {
  const untilMs = performance.now() + ms;
  while (!isSettled.now && performance.now() < untilMs) await new Promise((resolve) => setTimeout(resolve, 20));
}

function withResolvers<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<T>((onValue, onReason) => {
    resolve = onValue;
    reject = onReason;
  });
  return { promise, resolve, reject };
}

/**
 * The seam to a platform. A channel turns platform events into inbound messages and outbound messages into platform
 * calls; it throws, the manager alone retries. Invariant: it acknowledges nothing to its platform before
 * `context.accept` has returned.
 */
import type { InboundMessage, OutboundMessage, SessionKey } from "../bus/messages.js";
import type { Logger } from "../logger.js";

/** What became of a message that a channel handed in. */
export interface Accepted {
  status: "stored" | "duplicate" | "command";
  sessionKey: SessionKey;
  /** The turn it will start; a message that joins another turn is listed in that turn's end. */
  turnId: string;
}

/** What a channel may ask of the gateway. */
export interface ChannelContext {
  /**
   * Stores the message, or carries out the command in it. Returns only when that is durable. Throws `BUS_OVERLOADED` or
   * `BUS_UNAVAILABLE`, and then nothing was stored and the platform must not be told otherwise.
   */
  accept(message: InboundMessage): Promise<Accepted>;
  logger: Logger;
}

/** How a channel is; a failed one is named with what to do and holds back no other. */
export type ChannelHealth =
  | { state: "starting" | "running" | "standby" | "stopped" }
  | { state: "failed"; problem: string; advice: string };

/** One platform. */
export interface Channel {
  readonly name: string;
  start(context: ChannelContext): Promise<void>;
  /** Takes nothing new in, ends its connections. Idempotent. */
  stop(): Promise<void>;
  health(): ChannelHealth;
}

/** A channel whose answers go through an account's outbox (`via: "outbox"`). */
export interface OutboxChannel extends Channel {
  readonly account: string;
  /** Cuts a message into parts the platform takes; parts joined give the text back. */
  parts(message: OutboundMessage): OutboundMessage[];
  /** Sends one part; the platform's id of what was sent. Throws `DeliveryError`. */
  send(part: OutboundMessage, signal: AbortSignal): Promise<{ platformId: string }>;
}

/** Why a send failed, and so what the manager does about it. */
export type DeliveryFailure =
  /** Not delivered; the same may work after this many ms. */
  | { kind: "transient"; retryAfterMs: number | null }
  /** Refused for good; never repeated unchanged. */
  | { kind: "permanent" }
  /** Nobody knows whether it was delivered; not repeated blindly. */
  | { kind: "unknown" };

export class DeliveryError extends Error {
  override readonly name = "DeliveryError";
  constructor(
    readonly failure: DeliveryFailure,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

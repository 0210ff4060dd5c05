/**
 * The seam to a platform. A channel turns platform events into inbound messages and outbound messages into platform
 * calls; it throws, the manager alone waits and retries. Invariant: it acknowledges nothing to its platform before
 * `context.accept` has returned, and does nothing anyone could see before `context.admit` has admitted the sender.
 */
import type { InboundMessage, OutboundMessage, Route, SessionKey } from "../bus/messages.js";
import type { Logger } from "../logger.js";
import type { AccountMemory, MediaShelf, RateLimit } from "./ports.js";

/** What became of a message that a channel handed in. */
export interface Accepted {
  status: "stored" | "duplicate" | "command" | "ignored";
  sessionKey: SessionKey;
  /** The turn it will start; a message that joins another turn is listed in that turn's end. */
  turnId: string;
}

/** Somebody who wants to speak, before anything was done about it. */
export interface Knock {
  senderId: string;
  /** Other names under which an allow list may know the sender, such as a user name without its `@`. */
  aliases: readonly string[];
  author: "person" | "bot";
  scene:
    | { kind: "direct" }
    /** `chatIds`: names under which a list of chats may know it: itself, its parent, its guild. */
    | { kind: "group"; chatIds: readonly string[]; isMentioned: boolean; isReplyToBot: boolean; isCommand: boolean };
  /** The platform's id of what was said. */
  messageId: string;
  /** Where an answer would go: a stranger's pairing code is sent there. */
  route: Route;
}

/** Whether a sender may speak. `why` is for the log, and for a platform that must answer (a slash command). */
export type Admission = { kind: "admitted"; isOwner: boolean } | { kind: "refused"; why: string };

/** What a channel may ask of the gateway. */
export interface ChannelContext {
  /** The one check of every path, before typing, downloads and reactions. A stranger in a direct chat gets a pairing code. */
  admit(knock: Knock): Promise<Admission>;
  /**
   * Stores the message, or carries out the command in it. Returns only when that is durable. Throws `BUS_OVERLOADED` or
   * `BUS_UNAVAILABLE`, and then nothing was stored and the platform must not be told otherwise.
   */
  accept(message: InboundMessage): Promise<Accepted>;
  media: MediaShelf;
  /** What the account must know again after a restart, on any process. */
  memory: AccountMemory;
  logger: Logger;
}

/**
 * How a channel is; a failed one is named with what to do and holds back no other. `isPermanent`: only a person can mend it.
 * `isDeaf`: it hears nothing, but what it is to say can be said, and it goes on trying by itself: it is left running.
 */
export type ChannelHealth =
  | { state: "starting" | "running" | "standby" | "stopped" }
  | { state: "failed"; problem: string; advice: string; isPermanent?: true; isDeaf?: true };

/** One platform. */
export interface Channel {
  readonly name: string;
  start(context: ChannelContext): Promise<void>;
  /** Takes nothing new in, ends its connections. Idempotent. */
  stop(): Promise<void>;
  health(): ChannelHealth;
}

/** One call that shows a part of a message. */
export interface SendRequest<Part> {
  message: OutboundMessage;
  part: Part;
  /** The same for the same part, however often it is sent: for platforms that know a repeated message by such a key. */
  key: string;
  signal: AbortSignal;
}

/** A channel whose answers go through an account's outbox (`via: "outbox"`). `Part` is what one platform call shows. */
export interface OutboxChannel<Part = unknown> extends Channel {
  readonly account: string;
  /** Cuts a message into parts the platform takes, rendered; texts joined give the text back. At least one, never throws. */
  parts(message: OutboundMessage): Part[];
  /** Sends one part; the platform's id of what was sent. Throws `DeliveryError`. */
  send(request: SendRequest<Part>): Promise<{ platformId: string }>;
  /** For how long the platform knows a repeated part by its key and shows it once, ms; 0: it never does. */
  readonly repeatableMs: number;
  /** What a call for this part counts against; known in advance, so the platform never has to say so. */
  limits(message: OutboundMessage, part: Part): readonly RateLimit[];
  /** How an answer is shown while it is made; null where only whole answers are shown. */
  readonly live: LiveView<Part> | null;
}

/** How a channel shows what is going on. All of it but `edit` may be lost. */
export interface LiveView<Part> {
  /** Whether a stream is shown in this chat, and how: as a message that is edited, or as a draft that its answer replaces. */
  way(message: OutboundMessage): "edits" | "drafts" | "none";
  /** Least time between two changes of what one chat shows, ms. */
  intervalMs(message: OutboundMessage): number;
  /** Replaces what a message shows. Repeating it is harmless; "it shows that already" is success. Throws `DeliveryError`. */
  edit(platformId: string, request: SendRequest<Part>): Promise<void>;
  /** Shows or changes the draft of a stream. */
  draft(streamId: string, request: SendRequest<Part>): Promise<void>;
  /** Takes a message away that turned out to be too much. */
  remove(platformId: string, message: OutboundMessage, signal: AbortSignal): Promise<void>;
  /** Shows that an answer is being made (typing, a reaction): first, then each `workingEveryMs`, then that it is over. */
  working(phase: "begin" | "again" | "end", message: OutboundMessage, signal: AbortSignal): Promise<void>;
  readonly workingEveryMs: number;
}

/** Why a send failed, and so what the manager does about it. */
export type DeliveryFailure =
  /** Not delivered; the same may work after this many ms. null: our own back-off. */
  | { kind: "transient"; retryAfterMs: number | null }
  /** Refused for good; never repeated unchanged. */
  | { kind: "permanent" }
  /** Refused as it is; these parts say the same in a way that may be taken (plain text, no thread, cut). */
  | { kind: "change"; into: readonly unknown[] }
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

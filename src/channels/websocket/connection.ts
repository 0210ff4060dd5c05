/**
 * One client: carries out its frames one after the other and follows its chats. It decides neither who it is nor what a
 * frame means. Invariant: `message_accepted` leaves only after `accept` has returned, in the order in which the messages
 * came.
 */
import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import type { WebSocket } from "ws";
import type { ChannelContext } from "../channel.js";
import type { Feeds } from "./feeds.js";
import type { Follower, Position } from "./follower.js";
import type { Visitor } from "./identity.js";
import { inboundFrom, refusalOf } from "./intake.js";
import { Outlet, type OutletLimits } from "./outlet.js";
import { Pace, type PaceLimits } from "./pace.js";
import { type Intent, namesIn, type Parsed, parseFrame } from "./parse.js";
import type { ChatLog } from "./ports.js";
import { CLOSE, type SoftError, WEBSOCKET } from "./wire.js";

export interface ConnectionLimits extends OutletLimits, PaceLimits {
  /** Chats one connection may follow. */
  maxChats: number;
  /** Frames that may wait; beyond it the socket is not read. */
  maxWaitingFrames: number;
}

export interface ConnectionDeps {
  socket: WebSocket;
  visitor: Visitor;
  feeds: Feeds;
  log: Pick<ChatLog, "claim">;
  context: ChannelContext;
  /** Whether answers are shown while they are made. */
  isStreaming: boolean;
  limits: ConnectionLimits;
}

const NO_TEXT: Parsed = { ok: false, error: { code: "bad_frame", detail: "Send text frames, in UTF-8." } };

type Asked<Type extends Intent["type"]> = Extract<Intent, { type: Type }>;

export class Connection {
  readonly #deps: ConnectionDeps;
  readonly #outlet: Outlet;
  readonly #pace: Pace;
  readonly #defaultChat = randomUUID();
  readonly #granted = new Set<string>();
  readonly #followed = new Map<string, Follower>();
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  #isLeaving = false;

  constructor(deps: ConnectionDeps) {
    this.#deps = deps;
    this.#outlet = new Outlet(deps.socket, deps.limits);
    this.#pace = new Pace(deps.limits, () => performance.now());
  }

  /** Greets the client and takes its frames. */
  open(): void {
    const { socket, visitor } = this.#deps;
    this.#outlet.answer({ event: "ready", chat_id: this.#defaultChat, client_id: visitor.clientId });
    this.#enqueue(() => this.#follow(this.#defaultChat));
    socket.on("message", (bytes: Buffer, isBinary) => {
      if (!this.#outlet.isEnding) this.#onFrame(isBinary || !isUtf8(bytes) ? NO_TEXT : parseFrame(bytes.toString()));
    });
    // Each is answered by the library, so they cost as much as frames.
    socket.on("ping", () => this.#isInPace({}));
    socket.on("close", () => this.#leaveAll());
  }

  /** Finishes the frame at hand, takes no other, and closes; returns when that frame is done. */
  async end(code: number, reason: string): Promise<void> {
    this.#deps.socket.removeAllListeners("message");
    const grace = new Promise<void>((resolve) => setTimeout(resolve, this.#deps.limits.closeGraceMs).unref());
    this.#isLeaving = true;
    await Promise.race([this.#tail, grace]);
    this.#outlet.end(code, reason);
  }

  #onFrame(parsed: Parsed): void {
    if (!this.#isInPace(namesIn(parsed))) return;
    // Whether the connection lives does not depend on whether Redis is quick.
    if (parsed.ok && parsed.intent.type === "ping") this.#outlet.answer({ event: "pong" });
    else
      this.#enqueue(async () => {
        if (parsed.ok) await this.#carryOut(parsed.intent);
        else this.#refuse(parsed.error);
      });
  }

  /** Refuses, in its turn, what comes too fast; ends a connection that does not stop. */
  #isInPace(named: { chat_id?: string; id?: string }): boolean {
    const verdict = this.#pace.take();
    if (verdict.ok) return true;
    if (verdict.isTooMuch) this.#outlet.end(CLOSE.overloaded, "sending too fast");
    const error = { code: "rate_limited", retry_after_ms: verdict.retryAfterMs, ...named } as const;
    this.#enqueue(async () => this.#refuse({ detail: "Too many frames; this one was not carried out.", ...error }));
    return false;
  }

  /** One after the other; a client that sends faster than its messages are stored is not read meanwhile. */
  #enqueue(work: () => Promise<void>): void {
    const { socket, limits } = this.#deps;
    this.#waiting += 1;
    if (this.#waiting >= limits.maxWaitingFrames) socket.pause();
    this.#tail = this.#tail.then(async () => {
      if (!this.#isLeaving && !this.#outlet.isEnding) await this.#guard(work, {});
      this.#waiting -= 1;
      if (socket.isPaused && this.#waiting < limits.maxWaitingFrames / 2) socket.resume();
    });
  }

  async #guard(work: () => Promise<void>, named: { chat_id?: string; id?: string }): Promise<void> {
    try {
      await work();
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal !== null) return this.#refuse({ ...refusal, ...named });
      this.#deps.context.logger.error(
        { err: error, identity: this.#deps.visitor.identity, ...named },
        "a frame failed",
      );
      this.#refuse({ code: "internal", detail: "This frame failed; the log of the gateway has the reason.", ...named });
    }
  }

  async #carryOut(intent: Intent): Promise<void> {
    switch (intent.type) {
      case "nothing":
      case "ping":
        return;
      case "new_chat":
        return this.#attach({ type: "attach", chatId: randomUUID(), after: null, epoch: null });
      case "attach":
        return this.#guard(() => this.#attach(intent), { chat_id: intent.chatId });
      case "message":
        return this.#message(intent);
      case "stop":
        return this.#guard(() => this.#stop(intent), { chat_id: intent.chatId });
      default:
        return intent satisfies never;
    }
  }

  async #attach({ chatId, after, epoch }: Asked<"attach">): Promise<void> {
    if (!(await this.#mayUse(chatId, {}))) return;
    const present = this.#followed.get(chatId);
    if (present !== undefined && after === null && this.#deps.feeds.announce(chatId, present)) return;
    if (present === undefined && this.#isFull(chatId)) return;
    await this.#leave(chatId);
    await this.#join(chatId, { from: after === null ? null : { after, epoch }, isAsked: true });
  }

  async #message({ chatId: named, id: given, content }: Asked<"message">): Promise<void> {
    const chatId = named ?? this.#defaultChat;
    const id = given ?? randomUUID();
    await this.#guard(
      async () => {
        const accepted = await this.#say(chatId, id, content);
        if (accepted === null) return;
        this.#outlet.answer({ event: "message_accepted", chat_id: chatId, id, turn_id: accepted.turnId });
      },
      { chat_id: chatId, id },
    );
  }

  async #stop({ chatId }: Asked<"stop">): Promise<void> {
    await this.#say(chatId, randomUUID(), "/stop");
  }

  /** Null when the client was refused and told so. */
  async #say(chatId: string, id: string, content: string) {
    if (!(await this.#mayUse(chatId, { id }))) return null;
    if (!this.#followed.has(chatId)) {
      if (this.#isFull(chatId)) return null;
      await this.#follow(chatId);
    }
    const { context, visitor, isStreaming } = this.#deps;
    return context.accept(inboundFrom({ id, chatId, content, visitor, isStreaming, atMs: Date.now() }));
  }

  /** The first identity that uses a chat owns it; the owner of the gateway sees every chat. */
  async #mayUse(chatId: string, named: { id?: string }): Promise<boolean> {
    if (this.#granted.has(chatId)) return true;
    const { log, visitor } = this.#deps;
    const holder = await log.claim(WEBSOCKET, chatId, visitor.identity);
    if (holder !== visitor.identity && !visitor.isOwner) {
      this.#refuse({ code: "access_denied", detail: "This chat belongs to someone else.", chat_id: chatId, ...named });
      return false;
    }
    this.#granted.add(chatId);
    return true;
  }

  #isFull(chatId: string): boolean {
    if (this.#followed.size < this.#deps.limits.maxChats) return false;
    const detail = `One connection follows at most ${this.#deps.limits.maxChats} chats; open another one.`;
    this.#refuse({ code: "too_many_chats", detail, chat_id: chatId });
    return true;
  }

  #follow(chatId: string): Promise<void> {
    return this.#join(chatId, { from: null, isAsked: false });
  }

  async #join(chatId: string, { from, isAsked }: { from: Position | null; isAsked: boolean }): Promise<void> {
    const outlet = this.#outlet;
    // A connection that has gone meanwhile has left its chats already.
    if (outlet.isEnding) return;
    let isSilent = !isAsked;
    const follower: Follower = {
      isGone: () => outlet.isEnding || this.#followed.get(chatId) !== follower,
      attached: (head) => {
        if (!isSilent) outlet.answer({ event: "attached", chat_id: chatId, ...head });
        isSilent = false;
      },
      resync: (head) => outlet.answer({ event: "resync", chat_id: chatId, ...head }),
      deliver: (text) => outlet.write(text),
      flushed: () => outlet.flushed(),
    };
    this.#followed.set(chatId, follower);
    try {
      await this.#deps.feeds.join(chatId, follower, from);
    } catch (error) {
      this.#followed.delete(chatId);
      throw error;
    }
  }

  async #leave(chatId: string): Promise<void> {
    const follower = this.#followed.get(chatId);
    this.#followed.delete(chatId);
    if (follower !== undefined) await this.#deps.feeds.leave(chatId, follower);
  }

  #leaveAll(): void {
    for (const chatId of [...this.#followed.keys()]) {
      this.#leave(chatId).catch((error: unknown) => {
        this.#deps.context.logger.warn({ err: error, chatId }, "a chat could not be left");
      });
    }
  }

  #refuse(error: SoftError): void {
    this.#outlet.answer({ event: "error", ...error });
  }
}

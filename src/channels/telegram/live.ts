/**
 * How Telegram shows an answer in the making: edits of a message, or a draft in a private chat, typing, a reaction. It
 * keeps no state and sets no pace. Invariant: an edit may be repeated without harm, and only edits and drafts can fail.
 */
import { createHash } from "node:crypto";
import { type Api, GrammyError } from "grammy";
import type { ReactionTypeEmoji } from "grammy/types";
import type { OutboundMessage } from "../../bus/messages.js";
import type { Logger } from "../../logger.js";
import { DeliveryError, type LiveView, type SendRequest } from "../channel.js";
import { whatFailed } from "./api-error.js";
import { chatOf, idOf, isGroup, type TelegramOutletConfig, type TelegramPart } from "./part.js";
import { refusalOf } from "./refusal.js";
import { entitiesOf, keyboardOf } from "./render.js";
import { sdkSignal } from "./sdk-signal.js";
import { messageIdsOf } from "./send.js";

/** Telegram shows typing for 5 s. */
const TYPING_MS = 4_000;
/** A group takes 20 messages a minute, edits included. */
const GROUP_FACTOR = 3;

export interface LiveDeps {
  /** Asked for each call: connections are renewed. */
  readonly api: Api;
  config: TelegramOutletConfig;
  logger: Logger;
}

type Request = SendRequest<TelegramPart>;

export class TelegramLiveView implements LiveView<TelegramPart> {
  readonly workingEveryMs = TYPING_MS;
  readonly #deps: LiveDeps;

  constructor(deps: LiveDeps) {
    this.#deps = deps;
  }

  way(message: OutboundMessage): "edits" | "drafts" | "none" {
    const { drafts, streaming } = this.#deps.config;
    if (drafts && typeof chatOf(message.chatId) === "number" && !isGroup(chatOf(message.chatId))) return "drafts";
    return streaming ? "edits" : "none";
  }

  intervalMs(message: OutboundMessage): number {
    return this.#deps.config.editIntervalMs * (isGroup(chatOf(message.chatId)) ? GROUP_FACTOR : 1);
  }

  async edit(platformId: string, { part, signal }: Request): Promise<void> {
    const [message_id] = messageIdsOf(platformId);
    if (message_id === undefined) throw new DeliveryError({ kind: "permanent" }, "there is no message to change");
    try {
      await this.#edit(part, message_id, signal);
    } catch (error) {
      if (!isRefusal(error, /message is not modified/i)) throw refusalOf(error, part, "edit");
    }
  }

  async draft(streamId: string, { part, signal }: Request): Promise<void> {
    if (part.kind !== "text" || typeof part.chat !== "number") return;
    const { text, entities } = part.text;
    const thread = part.thread === undefined ? {} : { message_thread_id: part.thread };
    const content = { text, entities: entitiesOf(entities) };
    try {
      const draft = { chat_id: part.chat, draft_id: draftIdOf(streamId), ...thread, ...content };
      await this.#deps.api.raw.sendMessageDraft(draft, sdkSignal(signal));
    } catch (error) {
      throw refusalOf(error, part, "edit");
    }
  }

  async remove(platformId: string, message: OutboundMessage, signal: AbortSignal): Promise<void> {
    const chat_id = chatOf(message.chatId);
    for (const message_id of messageIdsOf(platformId)) {
      await this.#quietly("deleteMessage", message, () =>
        this.#deps.api.raw.deleteMessage({ chat_id, message_id }, sdkSignal(signal)),
      );
    }
  }

  async working(phase: "begin" | "again" | "end", message: OutboundMessage, signal: AbortSignal): Promise<void> {
    const { api, config } = this.#deps;
    const chat_id = chatOf(message.chatId);
    const message_id = idOf(message.replyTo);
    const work: Array<Promise<void>> = [];
    if (phase !== "end") {
      // Typing in "General" shows only when its thread is named, unlike sends.
      const thread = idOf(message.threadId);
      const where = { chat_id, ...(thread === undefined ? {} : { message_thread_id: thread }) };
      const type = () => api.raw.sendChatAction({ ...where, action: "typing" }, sdkSignal(signal));
      work.push(this.#quietly("sendChatAction", message, type));
    }
    if (phase !== "again" && config.reaction !== null && message_id !== undefined) {
      const emoji = config.reaction as ReactionTypeEmoji["emoji"];
      const reaction: ReactionTypeEmoji[] = phase === "begin" ? [{ type: "emoji", emoji }] : [];
      const react = () => api.raw.setMessageReaction({ chat_id, message_id, reaction }, sdkSignal(signal));
      work.push(this.#quietly("setMessageReaction", message, react));
    }
    await Promise.all(work);
  }

  async #edit(part: TelegramPart, message_id: number, signal: AbortSignal): Promise<void> {
    const { raw } = this.#deps.api;
    const place = { chat_id: part.chat, message_id };
    const markup = part.kind === "album" ? {} : { reply_markup: { inline_keyboard: keyboardOf(part.buttons) } };
    if (part.kind === "text") {
      const { text, entities } = part.text;
      await raw.editMessageText({ ...place, ...markup, text, entities: entitiesOf(entities) }, sdkSignal(signal));
      return;
    }
    const { text, entities } = part.caption ?? { text: "", entities: [] };
    await raw.editMessageCaption(
      { ...place, ...markup, caption: text, caption_entities: entitiesOf(entities) },
      sdkSignal(signal),
    );
  }

  /** What nobody misses may fail. */
  async #quietly(method: string, message: OutboundMessage, call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
    } catch (error) {
      const { turnId, chatId } = message;
      this.#deps.logger.debug({ method, turnId, chatId, reason: whatFailed(error) }, "a sign of life was refused");
    }
  }
}

function isRefusal(error: unknown, pattern: RegExp): boolean {
  return error instanceof GrammyError && error.error_code === 400 && pattern.test(error.description);
}

/** The same stream always changes the same draft. A positive number of 31 bits. */
export function draftIdOf(streamId: string): number {
  return createHash("sha256").update(streamId).digest().readUInt32BE() >>> 1 || 1;
}

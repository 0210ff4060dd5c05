/**
 * Sends, changes and removes one message each, as the manager asks. It neither waits nor repeats. Invariants: a repeated send
 * carries the nonce it carried before; nobody is pinged by what a model wrote; every failure is a `DeliveryError`.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { OutboundMessage } from "../../bus/messages.js";
import { hasCode } from "../../errors.js";
import { DeliveryError } from "../channel.js";
import type { Clock } from "../clock.js";
import type { MediaShelf } from "../ports.js";
import type { AnswerDesk } from "./answers.js";
import { type ButtonDeps, componentsOf } from "./buttons.js";
import { deliveryErrorOf, NONCE_MS } from "./failure.js";
import { type DiscordRequest, withoutFiles } from "./parts.js";
import { idIn, type Rest, type RestCall } from "./rest.js";
import { isSnowflake } from "./wire.js";

export interface SenderDeps extends ButtonDeps {
  rest: Rest;
  media: MediaShelf;
  desk: AnswerDesk;
  /** Whether a chat is between two people, where quoting is noise. */
  isDirect: (channelId: string) => boolean;
  clock: Clock;
  /** Hears of each message that was sent where the gateway must tell of it too: in which channel, and since when it was tried. */
  onSent: (channelId: string, begunMs: number) => void;
}

const NO_PINGS = { parse: [], replied_user: false };
/** Sends whose first try is remembered. */
const MOST_TRIES = 5000;

export class Sender {
  readonly #deps: SenderDeps;
  /** When a send was first tried, by its key. */
  readonly #firstTries = new Map<string, number>();

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  /** Sends one part. Throws `DeliveryError`. */
  async send(request: DiscordRequest): Promise<{ platformId: string }> {
    const { message, part, key, signal } = request;
    const isRepeatable = this.#noteTry(key);
    try {
      const body = { ...(await this.#bodyOf(request)), nonce: nonceOf(key), enforce_nonce: true };
      const answered = await this.#deps.desk.answer(request, body);
      if (answered !== null) return answered;
      const channelId = placeOf(request);
      const call = { method: "POST", path: `channels/${channelId}/messages`, body, signal } as const;
      const begunMs = this.#deps.clock.nowMs();
      const sent = await this.#call(call, request);
      this.#firstTries.delete(key);
      this.#deps.onSent(channelId, begunMs);
      return { platformId: idIn(sent) };
    } catch (error) {
      throw this.#failure(error, { message, part, isRepeatable });
    }
  }

  /** Replaces what a message shows. Throws `DeliveryError`. */
  async edit(platformId: string, request: DiscordRequest): Promise<void> {
    const { message, part, signal } = request;
    if (part.files.length > 0)
      throw new DeliveryError({ kind: "permanent" }, "files cannot be put into a message that is there already");
    try {
      const path = `channels/${placeOf(request)}/messages/${platformId}`;
      await this.#deps.rest.call({ method: "PATCH", path, body: await this.#bodyOf(request), signal });
    } catch (error) {
      throw this.#failure(error, { message, part, isRepeatable: true });
    }
  }

  /** Takes a message away; one that is gone already is success. Throws `DeliveryError`. */
  async remove(platformId: string, message: OutboundMessage, signal: AbortSignal): Promise<void> {
    const path = `channels/${message.threadId ?? message.chatId}/messages/${platformId}`;
    try {
      await this.#deps.rest.call({ method: "DELETE", path, signal });
    } catch (error) {
      const part = { content: "", files: [], buttons: [], isReply: false, place: "here", isPlain: true } as const;
      const failure = this.#failure(error, { message, part, isRepeatable: true });
      if (!failure.message.endsWith("(10008)")) throw failure;
    }
  }

  async #bodyOf({ message, part }: DiscordRequest): Promise<Record<string, unknown>> {
    const { isDirect } = this.#deps;
    const components = await componentsOf(this.#deps, part.buttons);
    const { replyTo } = message;
    const isQuoted = part.isReply && replyTo !== undefined && isSnowflake(replyTo) && !isDirect(message.chatId);
    return {
      content: part.content,
      components,
      allowed_mentions: NO_PINGS,
      ...(isQuoted ? { message_reference: { message_id: replyTo, fail_if_not_exists: false } } : {}),
    };
  }

  async #call(call: RestCall, { part }: DiscordRequest): Promise<unknown> {
    const files = [];
    for (const ref of part.files) {
      const data = await readFile(await this.#deps.media.pathOf(ref));
      files.push({ name: ref.name, data, contentType: ref.mime });
    }
    return this.#deps.rest.call({ ...call, files });
  }

  #failure(error: unknown, attempt: Parameters<typeof deliveryErrorOf>[1]): DeliveryError {
    if (hasCode(error, "BUS_UNAVAILABLE")) {
      return new DeliveryError({ kind: "transient", retryAfterMs: null }, error.message, { cause: error });
    }
    const isGone =
      hasCode(error, "MEDIA_REFUSED") || (error instanceof Error && "code" in error && error.code === "ENOENT");
    if (isGone && attempt.part.files.length > 0) {
      const into = withoutFiles(attempt.part, "it is not kept any more");
      return new DeliveryError({ kind: "change", into }, "a file of the answer is not kept any more", { cause: error });
    }
    return deliveryErrorOf(error, attempt);
  }

  /** Whether Discord still knows the first try of this send. */
  #noteTry(key: string): boolean {
    const nowMs = this.#deps.clock.nowMs();
    const firstMs = this.#firstTries.get(key);
    if (firstMs !== undefined) return nowMs - firstMs < NONCE_MS;
    this.#firstTries.set(key, nowMs);
    const [oldest] = this.#firstTries.keys();
    if (this.#firstTries.size > MOST_TRIES && oldest !== undefined) this.#firstTries.delete(oldest);
    return true;
  }
}

/** The channel that a part goes to: the thread, or its parent when the thread is gone. */
function placeOf({ message, part }: DiscordRequest): string {
  return part.place === "parent" ? message.chatId : (message.threadId ?? message.chatId);
}

/** The same for the same send; Discord takes 25 characters. */
export function nonceOf(key: string): string {
  return createHash("sha256").update(key).digest("base64url").slice(0, 25);
}

/**
 * One delivery: its parts are sent in order, each gets a receipt, then the entry is consumed. It owns nothing and reads
 * no stream. Invariant: a part with a receipt is not sent again, an unclear send is recorded as unknown and not repeated,
 * and an entry leaves the outbox only with a receipt for every part or as a dead letter.
 *
 * After an unclear part the rest is still sent: it probably arrived, and a reader wants the whole. After a part that was
 * refused for good the rest is not: it would make no sense without it.
 */

import type { DeadLetter, Delivery, OutboxStore, Receipt } from "../bus/delivery-ports.js";
import { bindDelivery } from "../bus/log-ids.js";
import type { OutboundMessage } from "../bus/messages.js";
import { hasCode } from "../errors.js";
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import { type Metrics, timed } from "../metrics.js";
import { DeliveryError, type OutboxChannel } from "./channel.js";
import { backOffMs, type Clock } from "./clock.js";

/** Tries of one part before it is given up. */
export const MAX_ATTEMPTS = 8;

/** How long an aborted send may take to say what became of it. */
const LAST_WORD_MS = 1_000;

export interface DeliveryDeps {
  channel: OutboxChannel;
  outbox: Pick<OutboxStore, "receipt" | "receipts" | "consume">;
  clock: Clock;
  faults: FaultHook;
  logger: Logger;
  metrics: Metrics;
  /** A send that takes longer has an unknown outcome, ms. */
  sendTimeoutMs: number;
}

/** Under what a delivery runs. */
export interface Authority {
  fence: number;
  /** Aborts when sending must end at once: the ownership was lost, or the time to drain is over. */
  signal: AbortSignal;
  /** Aborts when nothing new is begun: a part that waits for its next try waits no longer. */
  ending: AbortSignal;
  /** Asked before each send: after a stall of the process the signals may come late. */
  isHeld(): boolean;
}

/** A part that is given up. */
interface Refused {
  state: "refused";
  reason: string;
  attempts: number;
}

export class Deliverer {
  readonly #deps: DeliveryDeps;
  /** Receipts that could not be stored before the ownership ended, by outbound id; they count if it comes back. */
  readonly #unstored = new Map<string, Map<number, Receipt>>();

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
  }

  /** Returns when the entry is consumed, or leaves it where it is when the authority ended. Throws `LEASE_LOST`. */
  async deliver(delivery: Delivery, authority: Authority): Promise<void> {
    const { route, message } = delivery.outgoing;
    const { outbox } = this.#deps;
    const logger = bindDelivery(this.#deps.logger, delivery.outgoing);
    const parts = this.#partsOf(message);
    const stored = await this.#persist(authority, () => outbox.receipts(message.id));
    const receipts = new Map([...(this.#unstored.get(message.id) ?? []), ...stored]);
    let refused: Refused | null = null;
    for (const [index, part] of parts.entries()) {
      if (authority.signal.aborted) return;
      if (stored.has(index)) continue;
      const sent = receipts.get(index) ?? (await this.#sendPart(part, authority));
      if (sent === null) return;
      if (sent.state === "refused") {
        refused = sent;
        break;
      }
      this.#note(message.id, index, sent);
      receipts.set(index, sent);
      await this.#persist(authority, () => outbox.receipt(route.account, authority.fence, message.id, index, sent));
    }
    const deadLetter = deadLetterOf(message, parts.length, { receipts, refused });
    await this.#persist(authority, () => outbox.consume(route.account, authority.fence, delivery, deadLetter));
    this.#unstored.delete(message.id);
    if (deadLetter === null) logger.info({ parts: parts.length }, "delivered");
    else logger.warn({ reason: deadLetter.error }, "a delivery failed");
  }

  /** What cannot be cut is sent as it is: the platform then says why not. */
  #partsOf(message: OutboundMessage): OutboundMessage[] {
    try {
      return this.#deps.channel.parts(message);
    } catch (error) {
      this.#deps.logger.error({ err: error, id: message.id }, "a message could not be cut into parts");
      return [message];
    }
  }

  /** Null when the authority ended before anything was sent. */
  async #sendPart(part: OutboundMessage, authority: Authority): Promise<Receipt | Refused | null> {
    const { signal, ending } = authority;
    const { channel, metrics } = this.#deps;
    for (let attempts = 1; authority.isHeld() && (attempts === 1 || !ending.aborted); attempts += 1) {
      const sent = await timed(() => this.#trySend(part, signal), {
        outcomeOf: (end) => (end.ok ? outcomeOf(end.value) : "unknown"),
        onEnd: (outcome, ms) => metrics.observe("delivery_seconds", { channel: channel.name, outcome }, ms),
      });
      if (!(sent instanceof DeliveryError)) {
        this.#deps.faults("deliver.sent");
        return sent;
      }
      const { failure, message: reason } = sent;
      if (failure.kind === "unknown") return { state: "unknown", reason };
      if (failure.kind === "permanent" || attempts >= MAX_ATTEMPTS) return { state: "refused", reason, attempts };
      await this.#deps.clock.sleep(failure.retryAfterMs ?? backOffMs(attempts), ending);
    }
    return null;
  }

  /** An error that does not say what became of the send leaves it unclear. */
  async #trySend(part: OutboundMessage, signal: AbortSignal): Promise<Receipt | DeliveryError> {
    const { channel, clock, sendTimeoutMs } = this.#deps;
    const done = new AbortController();
    const timeout = new AbortController();
    const limit = clock.sleep(sendTimeoutMs, AbortSignal.any([signal, done.signal])).then(async () => {
      if (!done.signal.aborted) timeout.abort();
      await clock.sleep(LAST_WORD_MS, done.signal);
      const reason = signal.aborted ? "sending was ended before the platform answered" : "the platform did not answer";
      return new DeliveryError({ kind: "unknown" }, reason);
    });
    try {
      const sent = await Promise.race([channel.send(part, AbortSignal.any([signal, timeout.signal])), limit]);
      return sent instanceof DeliveryError ? sent : { state: "sent", platformId: sent.platformId };
    } catch (error) {
      if (error instanceof DeliveryError) return error;
      this.#deps.logger.error({ err: error, id: part.id, chatId: part.chatId }, "a send failed in an unknown way");
      return new DeliveryError({ kind: "unknown" }, "the send failed in an unknown way", { cause: error });
    } finally {
      done.abort();
    }
  }

  /** Remembered before it is stored: what was sent counts, whatever becomes of the ownership. */
  #note(id: string, part: number, receipt: Receipt): void {
    this.#unstored.set(id, (this.#unstored.get(id) ?? new Map<number, Receipt>()).set(part, receipt));
  }

  /** Tries until it is stored: what was sent cannot be taken back. At least once, also when the authority has ended. */
  async #persist<T>(authority: Authority, work: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await work();
      } catch (error) {
        if (!hasCode(error, "BUS_UNAVAILABLE") || authority.signal.aborted) throw error;
        await this.#deps.clock.sleep(Math.min(2_000, 100 * 2 ** tries), authority.signal);
      }
    }
  }
}

function outcomeOf(sent: Receipt | DeliveryError): string {
  return sent instanceof DeliveryError ? sent.failure.kind : sent.state;
}

function deadLetterOf(
  message: OutboundMessage,
  parts: number,
  { receipts, refused }: { receipts: ReadonlyMap<number, Receipt>; refused: Refused | null },
): DeadLetter | null {
  const reasons = refused === null ? [] : [refused.reason];
  for (const [part, receipt] of receipts) {
    if (receipt.state !== "unknown") continue;
    reasons.push(`part ${part + 1} of ${parts}: outcome unknown (${receipt.reason})`);
  }
  if (reasons.length === 0) return null;
  return {
    id: message.id,
    channel: message.channel,
    chatId: message.chatId,
    text: message.content,
    error: reasons.join("; "),
    attempts: refused?.attempts ?? 1,
  };
}

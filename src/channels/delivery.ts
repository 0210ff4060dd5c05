/**
 * One delivery: its parts are shown in order, each gets a receipt, then the entry is consumed. It owns nothing and reads
 * no stream. Invariant: a part with a receipt is not sent again, an unclear send is recorded as unknown and not repeated,
 * and an entry leaves the outbox only with a receipt for every part or as a dead letter.
 *
 * After an unclear part the rest is still sent: it probably arrived, and a reader wants the whole. After a part that was
 * refused for good the rest is not: it would make no sense without it. What a stream has shown of an answer is changed into
 * that answer; once that fails, the answer is sent anew and what was shown is taken away.
 */

import type { Delivery, OutboxStore, Receipt } from "../bus/delivery-ports.js";
import { bindDelivery } from "../bus/log-ids.js";
import { redactText } from "../logger.js";
import { type Authority, insist } from "./authority.js";
import type { Call, CallEnd, Caller, CallerDeps, NoteCall } from "./caller.js";
import { deadLetterOf, type Refused } from "./dead-letter.js";
import type { Receipts } from "./receipts.js";
import type { ShownStreams } from "./shown.js";

/** How often a part may be changed into others. */
const MAX_CHANGES = 3;

export interface DeliveryDeps extends Pick<CallerDeps, "channel" | "clock" | "logger"> {
  account: string;
  outbox: Pick<OutboxStore, "consume">;
  caller: Pick<Caller, "call">;
  receipts: Pick<Receipts, "read" | "store" | "forget">;
  shown: Pick<ShownStreams, "forAnswer" | "removeRest">;
  /** Hears of each message that was delivered or given up, before its entry is consumed. */
  onAnswered: (delivery: Delivery) => void;
  /** The time of day, ms since the epoch. */
  wallMs: () => number;
}

/** A delivery while it runs. */
interface Run {
  delivery: Delivery;
  authority: Authority;
  known: Awaited<ReturnType<Receipts["read"]>>;
  /** Messages that show its stream, by the index of the part; an empty list once they cannot be changed. */
  shown: string[];
  refused: Refused | null;
}

export class Deliverer {
  readonly #deps: DeliveryDeps;

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
  }

  /** Returns when the entry is consumed, or leaves it where it is when the authority ended. Throws `LEASE_LOST`. */
  async deliver(delivery: Delivery, authority: Authority): Promise<void> {
    const { account, clock, outbox, receipts, shown, onAnswered } = this.#deps;
    const { message } = delivery.outgoing;
    const [known, view] = await Promise.all([
      receipts.read(authority, message.id),
      shown.forAnswer(authority, delivery.outgoing),
    ]);
    const shownParts = isSentAnew(known.all, view.own) ? [] : view.own;
    const run: Run = { delivery, authority, known, shown: shownParts, refused: null };
    const parts = this.#partsOf(run);
    for (const [index, part] of parts.entries()) {
      if (!(await this.#part(run, { name: String(index), part, depth: 0 }))) return;
      if (run.refused !== null) break;
    }
    onAnswered(delivery);
    const deadLetter = deadLetterOf(message, parts.length, { receipts: known.all, refused: run.refused });
    // What cannot be said in another way stays readable as far as it was shown.
    if (run.refused === null) await shown.removeRest(authority, message, { view, receipts: known.all });
    await insist(clock, authority, () => outbox.consume(account, authority.fence, delivery, deadLetter));
    if (deadLetter !== null) receipts.forget(message.id);
    const logger = bindDelivery(this.#deps.logger, delivery.outgoing);
    if (deadLetter === null) logger.info({ parts: parts.length }, "delivered");
    else logger.warn({ reason: deadLetter.error }, "a delivery failed");
  }

  #partsOf(run: Run): unknown[] {
    const { message } = run.delivery.outgoing;
    try {
      return this.#deps.channel.parts(message);
    } catch (error) {
      this.#deps.logger.error({ err: error, id: message.id }, "a message could not be cut into parts");
      run.refused = { reason: "it could not be cut into parts", attempts: 1 };
      return [];
    }
  }

  /** False when the authority ended before this part was sent. */
  async #part(run: Run, { name, part, depth }: { name: string; part: unknown; depth: number }): Promise<boolean> {
    const { id } = run.delivery.outgoing.message;
    let receipt = this.#settled(run.known.all.get(name));
    if (receipt === undefined) {
      if (run.authority.signal.aborted) return false;
      const end = await this.#show(run, { name, part });
      if (end.kind === "ended") return false;
      if (end.kind === "refused" || (end.kind === "changed" && !isChange(end, part, depth))) {
        run.refused = { reason: end.reason, attempts: end.attempts };
        // It surely was not sent: a person may have it sent again.
        await this.#deps.receipts.store(run.authority, id, new Map([[name, null]]));
        return true;
      }
      receipt = receiptOf(end);
    }
    if (run.known.stored.get(name) !== receipt) {
      run.known.all.set(name, receipt);
      await this.#deps.receipts.store(run.authority, id, new Map([[name, receipt]]));
    }
    for (const [at, each] of (receipt.state === "changed" ? receipt.into : []).entries()) {
      if (!(await this.#part(run, { name: `${name}.${at}`, part: each, depth: depth + 1 }))) return false;
      if (run.refused !== null) break;
    }
    return true;
  }

  /** What a process left that ended while it sent is unclear, unless the platform will know it again. */
  #settled(receipt: Receipt | undefined): Receipt | undefined {
    if (receipt?.state !== "begun") return receipt;
    const { channel, wallMs } = this.#deps;
    if (wallMs() - receipt.atMs < channel.repeatableMs) return undefined;
    return { state: "unknown", reason: "the gateway ended while it was sent" };
  }

  /** Before a new message is sent, and when it surely was not. */
  #noteOf(run: Run, name: string): NoteCall {
    const { receipts, wallMs } = this.#deps;
    const { id } = run.delivery.outgoing.message;
    return (isUnderWay) => {
      const receipt: Receipt | null = isUnderWay ? { state: "begun", atMs: wallMs() } : null;
      return receipts.store(run.authority, id, new Map([[name, receipt]]));
    };
  }

  /** Changes what is shown already, or sends. A message that cannot be changed is sent anew, and all behind it. */
  async #show(run: Run, { name, part }: { name: string; part: unknown }): Promise<CallEnd> {
    const { message } = run.delivery.outgoing;
    const key = `${message.id}.${name}`;
    const edits = shownAs(name, run.shown);
    const call: Call = { message, part, key, edits };
    const note = this.#noteOf(run, name);
    const end = await this.#deps.caller.call(call, run.authority, edits === null ? note : noNote);
    if (edits === null || end.kind !== "refused") return end;
    const { turnId, chatId } = message;
    const reason = redactText(end.reason);
    this.#deps.logger.info({ turn: turnId, chatId, reason }, "a shown answer could not be changed; it is sent anew");
    run.shown = [];
    return this.#deps.caller.call({ ...call, edits: null }, run.authority, note);
  }
}

/** A change may be repeated: it needs no note. */
const noNote: NoteCall = async () => {};

/** The message that shows this part: of the parts it was changed into, the first takes its place. */
function shownAs(name: string, shown: readonly string[]): string | null {
  const [index, ...rest] = name.split(".");
  return rest.every((at) => at === "0") ? (shown[Number(index)] ?? null) : null;
}

/** Whether a part was sent anew already although a message showed it: all behind it must stand behind it. */
function isSentAnew(receipts: ReadonlyMap<string, Receipt>, shown: readonly string[]): boolean {
  return [...receipts].some(([name, receipt]) => {
    const before = shownAs(name, shown);
    if (before === null || receipt.state === "changed") return false;
    return receipt.state !== "sent" || receipt.platformId !== before;
  });
}

/** Whether there is another way to say it: never the same unchanged, and not for ever. */
function isChange({ into }: { into: readonly unknown[] }, part: unknown, depth: number): boolean {
  const isSame = into.length === 1 && JSON.stringify(into[0]) === JSON.stringify(part);
  return depth < MAX_CHANGES && into.length > 0 && !isSame;
}

function receiptOf(end: Exclude<CallEnd, { kind: "refused" | "ended" }>): Receipt {
  switch (end.kind) {
    case "sent":
      return { state: "sent", platformId: end.platformId };
    case "unknown":
      return { state: "unknown", reason: end.reason };
    case "changed":
      return { state: "changed", into: end.into };
    default:
      return end satisfies never;
  }
}

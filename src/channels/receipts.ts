/**
 * Receipts of one account: what was sent is remembered here before it is stored, so that it counts whatever becomes of the
 * ownership, or of Redis' last moments, in between. It sends nothing. Invariant: a receipt of one of the last messages is
 * found again by this process.
 *
 * Receipts stand under the id of their message, by the name of the part. What is shown of the streams of a turn that are
 * not done stands under the turn's id, named `<stream id>.<index>`.
 */
import type { OutboxStore, Receipt } from "../bus/delivery-ports.js";
import { type Authority, insist } from "./authority.js";
import type { Clock } from "./clock.js";

export interface ReceiptsDeps {
  account: string;
  outbox: Pick<OutboxStore, "receipt" | "receipts">;
  clock: Clock;
}

/** What is known of a message. */
export interface Known {
  all: Map<string, Receipt>;
  stored: ReadonlyMap<string, Receipt>;
}

/** Null: forgotten. */
export type ReceiptChanges = ReadonlyMap<string, Receipt | null>;

/** Messages and turns that are remembered. */
const MAX_NOTED = 2_000;

export class Receipts {
  readonly #deps: ReceiptsDeps;
  readonly #noted = new Map<string, Map<string, Receipt | null>>();

  constructor(deps: ReceiptsDeps) {
    this.#deps = deps;
  }

  async read(authority: Authority, id: string): Promise<Known> {
    const stored = await insist(this.#deps.clock, authority, () => this.#deps.outbox.receipts(id));
    const all = new Map(stored);
    for (const [part, receipt] of this.#noted.get(id) ?? []) {
      if (receipt === null) all.delete(part);
      else all.set(part, receipt);
    }
    return { all, stored };
  }

  /** Remembers, then stores. Throws `LEASE_LOST`. */
  async store(authority: Authority, id: string, changes: ReceiptChanges): Promise<void> {
    this.#note(id, changes);
    const { account, outbox, clock } = this.#deps;
    const each = [...changes].map(([part, receipt]) =>
      insist(clock, authority, () => outbox.receipt(account, authority.fence, id, part, receipt)),
    );
    await Promise.all(each);
  }

  /** A person may decide about its parts now: only what is stored counts. */
  forget(id: string): void {
    this.#noted.delete(id);
  }

  #note(id: string, changes: ReceiptChanges): void {
    const noted = new Map([...(this.#noted.get(id) ?? []), ...changes]);
    this.#noted.delete(id);
    this.#noted.set(id, noted);
    const [oldest] = this.#noted.keys();
    if (this.#noted.size > MAX_NOTED && oldest !== undefined) this.#noted.delete(oldest);
  }
}

/**
 * The outbox in memory, as the port asks for it: entries in order, one owner with a lease and a fence that grows,
 * receipts, dead letters. Ids and fences are checked as the real one does.
 */

import type { DeadLetter, Delivery, OutboxStore, Receipt } from "../../src/bus/delivery-ports.js";
import type { Outgoing } from "../../src/bus/messages.js";
import { NanogateError } from "../../src/errors.js";

interface Owner {
  process: string;
  untilMs: number;
  fence: number;
}

/** What several processes share. */
export class MemoryOutbox {
  readonly entries: Array<Delivery & { account: string }> = [];
  readonly receipts = new Map<string, Map<string, Receipt>>();
  readonly deadLetters: DeadLetter[] = [];
  readonly owners = new Map<string, Owner>();
  /** Thrown by every method while set. */
  failure: Error | null = null;
  #next = 1;
  #fence = 0;
  readonly #waiting = new Set<() => void>();

  constructor(readonly nowMs: () => number) {}

  put(outgoing: Outgoing): void {
    const entryId = `${this.#next++}-0`;
    this.entries.push({ account: outgoing.route.account, entryId, outgoing });
    for (const wake of this.#waiting) wake();
  }

  /** The port as one process sees it. */
  process(name: string): OutboxStore {
    return {
      own: async (account, leaseMs) => this.#own(name, account, leaseMs),
      read: (account, after, waitMs) => this.#read(account, after, waitMs),
      receipt: async (account, fence, id, part, receipt) => {
        this.#assertOwner(account, fence);
        const receipts = this.receipts.get(id) ?? new Map<string, Receipt>();
        this.receipts.set(id, receipts);
        if (receipt === null) receipts.delete(part);
        else receipts.set(part, structuredClone(receipt));
      },
      receipts: async (id) => {
        this.#assertReachable();
        return new Map(this.receipts.get(id));
      },
      consume: async (account, fence, delivery, deadLetter) => {
        this.#assertOwner(account, fence);
        const index = this.entries.findIndex(({ entryId }) => entryId === delivery.entryId);
        if (index >= 0) this.entries.splice(index, 1);
        if (deadLetter !== null) this.deadLetters.push(deadLetter);
      },
    };
  }

  #own(process: string, account: string, leaseMs: number): { fence: number } | null {
    this.#assertReachable();
    const owner = this.owners.get(account);
    const isHeld = owner !== undefined && owner.untilMs >= this.nowMs();
    if (isHeld && owner.process !== process) return null;
    if (leaseMs === 0) {
      if (owner?.process === process) this.owners.delete(account);
      return null;
    }
    const fence = isHeld ? owner.fence : ++this.#fence;
    this.owners.set(account, { process, untilMs: this.nowMs() + leaseMs, fence });
    return { fence };
  }

  async #read(account: string, after: string, waitMs: number): Promise<Delivery[]> {
    this.#assertReachable();
    const found = () =>
      this.entries
        .filter((entry) => entry.account === account && Number.parseInt(entry.entryId, 10) > Number.parseInt(after, 10))
        .map(({ entryId, outgoing }) => ({ entryId, outgoing }));
    if (found().length > 0 || waitMs === 0) return found();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      timer.unref();
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
    });
    return found();
  }

  #assertReachable(): void {
    if (this.failure !== null) throw this.failure;
  }

  #assertOwner(account: string, fence: number): void {
    this.#assertReachable();
    const owner = this.owners.get(account);
    if (owner === undefined || owner.fence !== fence || owner.untilMs < this.nowMs()) {
      throw new NanogateError("LEASE_LOST", "the account is not ours");
    }
  }
}

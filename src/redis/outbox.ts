/**
 * The outbox over Redis: a stream an account, read by the one process that owns the account. It sends nothing.
 * Invariant: receipts and consumption are refused once another process owns the account.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { DeadLetter, Delivery, OutboxStore, Receipt } from "../bus/delivery-ports.js";
import type { Outgoing } from "../bus/messages.js";
import { NanogateError } from "../errors.js";
import { disconnect, type RedisClient } from "./client.js";
import type { Keys } from "./keys.js";
import { integer, list } from "./reply.js";
import type { Scripts } from "./scripts.js";

const BATCH = 100;

/** A dead letter as it is kept: what people see, and what is needed to send it again. */
interface StoredLetter {
  letter: DeadLetter | null;
  account: string;
  /** The entry of the outbox, JSON text. */
  body: string;
}

export interface OutboxDeps {
  client: RedisClient;
  scripts: Scripts;
  keys: Keys;
  deadlineMs: number;
}

export class RedisOutbox implements OutboxStore {
  readonly #deps: OutboxDeps;
  /** One waiting connection an account; made on first use. */
  readonly #readers = new Map<string, Redis>();

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  async own(account: string, leaseMs: number): Promise<{ fence: number } | null> {
    const reply = list(await this.#deps.scripts.run("own-account", { account, leaseMs }));
    return reply.length === 0 ? null : { fence: integer(reply[0]) };
  }

  async read(account: string, afterEntryId: string, waitMs: number): Promise<Delivery[]> {
    const reader = this.#reader(account);
    const key = this.#deps.keys.of("outbox", account);
    const reply = await reader.xread("COUNT", BATCH, "BLOCK", Math.max(1, waitMs), "STREAMS", key, afterEntryId);
    const rows = reply?.[0]?.[1] ?? [];
    return rows.map(([entryId, fields]) => ({ entryId, outgoing: JSON.parse(fields[1] ?? "null") as Outgoing }));
  }

  async receipt(account: string, fence: number, outboundId: string, part: string, receipt: Receipt | null) {
    const stored = receipt === null ? "" : JSON.stringify(receipt);
    const args = { account, fence, id: outboundId, part, receipt: stored };
    this.#refuseLost(await this.#deps.scripts.run("receipt", args), account);
  }

  async receipts(outboundId: string): Promise<Map<string, Receipt>> {
    const { client, keys, deadlineMs } = this.#deps;
    const stored = await client.attempt((redis) => redis.hgetall(keys.of("receipt", outboundId)), deadlineMs);
    return new Map(Object.entries(stored).map(([part, receipt]) => [part, JSON.parse(receipt) as Receipt]));
  }

  async consume(account: string, fence: number, delivery: Delivery, deadLetter: DeadLetter | null): Promise<void> {
    const { entryId, outgoing } = delivery;
    // The body as it stood in the outbox, so that a person may have it sent again.
    const stored = { letter: deadLetter, account, body: JSON.stringify(outgoing) } satisfies StoredLetter;
    const letter = deadLetter === null ? "" : JSON.stringify(stored);
    const args = { account, fence, entry: entryId, id: outgoing.message.id, deadLetter: letter };
    this.#refuseLost(await this.#deps.scripts.run("consume", args), account);
  }

  /** What failed for good or ended unknown. */
  async deadLetters(): Promise<DeadLetter[]> {
    const { client, keys, deadlineMs } = this.#deps;
    const stored = await client.attempt((redis) => redis.hvals(keys.of("deadOut")), deadlineMs);
    return stored.flatMap((text) => (JSON.parse(text) as StoredLetter).letter ?? []);
  }

  /** Puts a dead letter back into its account's outbox; parts that were sent are not sent again. False: there is none. */
  retryDeadLetter(id: string): Promise<boolean> {
    return this.#decide(id, true);
  }

  /** Forgets a dead letter. False: there is none. */
  dropDeadLetter(id: string): Promise<boolean> {
    return this.#decide(id, false);
  }

  async #decide(id: string, again: boolean): Promise<boolean> {
    const reply = list(await this.#deps.scripts.run("dead-letter", { id, call: randomUUID(), again }));
    return reply[0] === "ok";
  }

  close(): void {
    for (const reader of this.#readers.values()) disconnect(reader);
    this.#readers.clear();
  }

  #reader(account: string): Redis {
    const known = this.#readers.get(account);
    if (known !== undefined) return known;
    const made = this.#deps.client.connection("patient");
    this.#readers.set(account, made);
    return made;
  }

  #refuseLost(reply: unknown, account: string): void {
    if (list(reply)[0] === "lost") {
      throw new NanogateError("LEASE_LOST", `Another process owns the account ${account} now.`);
    }
  }
}

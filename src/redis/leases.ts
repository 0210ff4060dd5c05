/**
 * Leases of sessions over Redis. It renews nothing by itself. Invariant: a lease it gives carries a fence greater than
 * any given before, also after a roll-back of Redis, since fences come from the server's clock.
 */
import { randomUUID } from "node:crypto";
import type { SessionKey } from "../bus/messages.js";
import { NanogateError } from "../errors.js";
import type { Claim, FileState, LeaseStore, Scheduled } from "../session/ports.js";
import { handedOverFrom, openStreamFrom } from "./envelope.js";
import { wakesFrom } from "./intake.js";
import { integer, list, text } from "./reply.js";
import type { Scripts } from "./scripts.js";

function fileFrom(stored: string): FileState | null {
  const [inode, bytes, fence] = stored.split(" ");
  if (inode === undefined || bytes === undefined || fence === undefined) return null;
  return { inode, bytes: Number(bytes), fence: Number(fence) };
}

/** Turns a script's refusal of a stale fence into the error all holders know. */
export function refuseLost(reply: unknown, key: SessionKey): unknown[] {
  const rows = list(reply);
  if (rows[0] === "lost") throw new NanogateError("LEASE_LOST", `The lease of session ${key} is lost.`);
  return rows;
}

export class RedisLeases implements LeaseStore {
  readonly #scripts: Scripts;
  readonly #isWorker: boolean;
  readonly #renewDeadlineMs: number;

  /** `renewDeadlineMs`: a renewal is not repeated for longer, since the next one comes. */
  constructor(deps: { scripts: Scripts; isWorker: boolean; renewDeadlineMs: number }) {
    this.#scripts = deps.scripts;
    this.#isWorker = deps.isWorker;
    this.#renewDeadlineMs = deps.renewDeadlineMs;
  }

  async open(
    key: SessionKey,
    wake: number,
  ): Promise<{ ok: true; claim: Claim } | { ok: false; why: "stale" | "full" }> {
    const reply = list(await this.#scripts.run("open", { session: key, wake, call: randomUUID() }));
    if (reply[0] !== "ok") return { ok: false, why: reply[0] === "full" ? "full" : "stale" };
    const [, fence, file, attempts, openStream, entries] = reply;
    return {
      ok: true,
      claim: {
        fence: integer(fence),
        file: fileFrom(text(file)),
        attempts: integer(attempts),
        openStream: openStreamFrom(text(openStream)),
        next: handedOverFrom(entries),
      },
    };
  }

  async hold(key: SessionKey): Promise<{ ok: true; claim: Claim } | { ok: false; why: "busy" }> {
    const reply = list(await this.#scripts.run("hold", { session: key, call: randomUUID() }));
    if (reply[0] !== "ok") return { ok: false, why: "busy" };
    const claim = {
      fence: integer(reply[1]),
      file: fileFrom(text(reply[2])),
      attempts: 0,
      openStream: null,
      next: null,
    };
    return { ok: true, claim };
  }

  async release(key: SessionKey, fence: number, file: FileState | null): Promise<Scheduled[]> {
    const reply = refuseLost(await this.#scripts.run("release", { session: key, fence, file }), key);
    return wakesFrom(reply[1]);
  }

  async renew(held: ReadonlyArray<{ key: SessionKey; fence: number }>): Promise<SessionKey[]> {
    const rows = held.map(({ key, fence }) => ({ s: key, fence }));
    const reply = list(
      await this.#scripts.run("renew", { isWorker: this.#isWorker, held: rows }, this.#renewDeadlineMs),
    );
    return list(reply[0]).map((key) => text(key) as SessionKey);
  }

  async raise(key: SessionKey, fence: number, atLeast: number): Promise<number> {
    const reply = refuseLost(await this.#scripts.run("raise", { session: key, fence, atLeast }), key);
    return integer(reply[1]);
  }
}

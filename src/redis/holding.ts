/**
 * What a holder may do to its session, over Redis. It adds no job and keeps no state but the fence it is given.
 * Invariant: under a stale fence nothing happens and `LEASE_LOST` is thrown.
 */
import type { MailboxMessage, SessionKey } from "../bus/messages.js";
import type { Check, Emission, Holding, Parking, Settled, Settlement, Wake, Yielding } from "../bus/ports.js";
import { envelopesOf, handedOverFrom, openStreamText, waitingFrom } from "./envelope.js";
import { wakesFrom } from "./intake.js";
import { refuseLost } from "./leases.js";
import { list, text, UnexpectedReply } from "./reply.js";
import type { Scripts } from "./scripts.js";

function settledFrom([kind, wakes, entries]: unknown[]): Settled {
  switch (kind) {
    case "stopped":
      return { kind: "stopped" };
    case "left":
      // The first try of this very call was carried out and only its reply was lost.
      return { kind: "idle", wakes: [] };
    case "idle":
    case "stay":
      return { kind, wakes: wakesFrom(wakes) };
    case "next": {
      const next = handedOverFrom(entries);
      if (next === null) throw new UnexpectedReply("settle said that a message waits, and gave none");
      return { kind, wakes: wakesFrom(wakes), ...next };
    }
    default:
      throw new UnexpectedReply(`settle said ${String(kind)}`);
  }
}

export class RedisHolding implements Holding {
  readonly #scripts: Scripts;
  /** Holders wait for Redis as long as their lease can last, ms. */
  readonly #deadlineMs: number;

  constructor(deps: { scripts: Scripts; deadlineMs: number }) {
    this.#scripts = deps.scripts;
    this.#deadlineMs = deps.deadlineMs;
  }

  async check(check: Check): Promise<{ stopped: string[]; taken: MailboxMessage[] }> {
    const { key, fence, inboundKeys, route, take } = check;
    const reply = refuseLost(await this.#run("check", { session: key, fence, ids: inboundKeys, route, take }), key);
    return { stopped: list(reply[1]).map(text), taken: list(reply[2]).map((each) => waitingFrom(each).message) };
  }

  async settle(settlement: Settlement): Promise<Settled> {
    const { key, fence, settled, outgoing, file, afterwards, honoursStop } = settlement;
    const reply = await this.#run("settle", {
      session: key,
      fence,
      settled: settled.map((done) => ({ id: done.inboundKey, result: JSON.stringify(done.result) })),
      outgoing: envelopesOf(outgoing),
      file,
      stay: afterwards === "stay",
      honoursStop,
    });
    return settledFrom(refuseLost(reply, key));
  }

  async emit(emission: Emission): Promise<{ wakes: Wake[] }> {
    const { key, fence, batch, outgoing, openStream } = emission;
    const args = {
      session: key,
      fence,
      batch,
      outgoing: envelopesOf(outgoing),
      openStream: openStreamText(openStream),
    };
    const reply = refuseLost(await this.#run("emit", args), key);
    return { wakes: wakesFrom(reply[1]) };
  }

  async yield(yielding: Yielding): Promise<{ wakes: Wake[]; gaveUp: boolean }> {
    const { key, fence, why, delayMs, file, reason } = yielding;
    const reply = refuseLost(await this.#run("yield", { session: key, fence, why, delayMs, file, reason }), key);
    return { wakes: wakesFrom(reply[1]), gaveUp: reply[2] === "1" };
  }

  async park(parking: Parking): Promise<{ kind: "parked"; wakes: Wake[] } | { kind: "ready" }> {
    const { key, fence, waitIds, untilMs, file, inboundKeys, takesMail } = parking;
    const args = { session: key, fence, waits: waitIds, untilMs, file, ids: inboundKeys, takesMail };
    const reply = refuseLost(await this.#run("park", args), key);
    return reply[0] === "ready" ? { kind: "ready" } : { kind: "parked", wakes: wakesFrom(reply[1]) };
  }

  async answers(key: SessionKey, waitIds: readonly string[]): Promise<Map<string, string>> {
    const reply = list(await this.#run("answers", { session: key, waits: waitIds })).map(text);
    const answers = new Map<string, string>();
    for (let i = 0; i + 1 < reply.length; i += 2) answers.set(reply[i] ?? "", reply[i + 1] ?? "");
    return answers;
  }

  #run(name: "check" | "settle" | "emit" | "yield" | "park" | "answers", args: object): Promise<unknown> {
    return this.#scripts.run(name, args, this.#deadlineMs);
  }
}

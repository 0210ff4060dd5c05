/**
 * The bus: carries messages into sessions and answers out of them. It delivers, it does not decide: what a message means,
 * who may send it and how it is answered are other rooms' business. Every step over a session is one atomic step of its
 * ports; this file adds the jobs that those steps ask for. Invariant: what was acknowledged is stored, and a job that
 * could not be added is found by the sweep.
 */
import { hasCode } from "../errors.js";
import type { FaultHook, FaultPoint } from "../faults.js";
import type { Logger } from "../logger.js";
import { type Metrics, timed } from "../metrics.js";
import {
  editedKeyOf,
  type InboundMessage,
  inboundKeyOf,
  type MailboxMessage,
  type Outgoing,
  type SessionKey,
  sessionKeyOf,
  turnIdOf,
} from "./messages.js";
import type {
  Check,
  Emission,
  Holding,
  Intake,
  Parking,
  ReadyQueue,
  Settled,
  Settlement,
  StopRequest,
  Wake,
  Yielding,
} from "./ports.js";

export interface BusDeps {
  intake: Intake;
  holding: Holding;
  ready: Pick<ReadyQueue, "add">;
  /** One session for all channels. */
  isUnified: boolean;
  faults: FaultHook;
  logger: Logger;
  metrics: Metrics;
}

/** How a message enters its session. */
export interface PublishOptions {
  /** Quick fragments of a person are joined for this long; 0 for commands and media, ms. */
  debounceMs: number;
  /** Whether it may be taken into a running turn of its route. */
  joins: boolean;
  /** Whether it wakes a session that waits for something else. */
  wakesParked: boolean;
}

/** What was stored, and the turn it will start. */
export interface PublishedInbound {
  status: "stored" | "duplicate" | "ignored";
  sessionKey: SessionKey;
  /** Of the message that is answered: an edit of a waiting one is that one. */
  inboundKey: string;
  turnId: string;
}

export class Bus {
  readonly #deps: BusDeps;

  constructor(deps: BusDeps) {
    this.#deps = deps;
  }

  /** The session of a message. */
  sessionOf(message: InboundMessage): SessionKey {
    return sessionKeyOf(message, { unified: this.#deps.isUnified });
  }

  /**
   * Stores a message in its session's mailbox, once; only after this returned may it be acknowledged.
   * Throws `BUS_OVERLOADED` or `BUS_UNAVAILABLE`: then it is not stored, or repeating it makes no second turn.
   */
  async publishInbound(message: InboundMessage, options: PublishOptions): Promise<PublishedInbound> {
    const sessionKey = this.sessionOf(message);
    const ownKey = inboundKeyOf(message);
    const entry = { key: sessionKey, inboundKey: ownKey, message, ...options };
    const { status, wake } = await this.#deps.intake.publish(entry);
    this.#deps.faults("publish.stored");
    await this.schedule(wake === null ? [] : [wake]);
    this.#deps.faults("publish.queued");
    const inboundKey = (status === "replaced" ? editedKeyOf(message) : null) ?? ownKey;
    return { status: status === "replaced" ? "stored" : status, sessionKey, inboundKey, turnId: turnIdOf(inboundKey) };
  }

  /** Stops what runs and waits of a route; says how many messages that were. Durable before it returns. */
  async stop(request: StopRequest): Promise<number> {
    const { stopped, wakes } = await this.#deps.intake.stop(request);
    await this.schedule(wakes);
    return stopped;
  }

  /** Sends without a lease, each id once. */
  async reply(outgoing: readonly Outgoing[]): Promise<void> {
    const { wakes } = await this.#deps.intake.reply(outgoing);
    await this.schedule(wakes);
  }

  /** Answers a parked call. */
  async unpark(key: SessionKey, waitId: string, payload: string): Promise<void> {
    const { wakes } = await this.#deps.intake.unpark(key, waitId, payload);
    await this.schedule(wakes);
  }

  /** The present wake of a scheduled session, for a caller that runs it itself. */
  peek(key: SessionKey): Promise<Wake | null> {
    return this.#deps.intake.peek(key);
  }

  /** Before a step of a turn: what was stopped, and what is taken in. Throws `LEASE_LOST`. */
  check(check: Check): Promise<{ stopped: string[]; taken: MailboxMessage[] }> {
    return this.#deps.holding.check(check);
  }

  /** Ends messages and puts their answers out in one step. Throws `LEASE_LOST`, and then nothing has happened. */
  async settle(settlement: Settlement): Promise<Settled> {
    this.#deps.faults("settle.before");
    const settled = await timed(() => this.#deps.holding.settle(settlement), {
      onEnd: (outcome, durationMs) => this.#deps.metrics.observe("settle_seconds", { outcome }, durationMs),
      outcomeOf: (end) => {
        if (end.ok) return end.value.kind === "stopped" ? "stopped" : "settled";
        return hasCode(end.error, "LEASE_LOST") ? "lost" : "error";
      },
    });
    this.#deps.faults("settle.after");
    if (settled.kind !== "stopped") await this.schedule(settled.wakes);
    return settled;
  }

  async emit(emission: Emission): Promise<void> {
    this.#deps.faults("emit.before");
    const { wakes } = await this.#deps.holding.emit(emission);
    await this.schedule(wakes);
  }

  /** Gives a session up with its mail; true when its oldest message was given up for good. */
  async yield(yielding: Yielding): Promise<boolean> {
    const { wakes, gaveUp } = await this.#deps.holding.yield(yielding);
    await this.schedule(wakes, "yield.stored");
    return gaveUp;
  }

  async park(parking: Parking): Promise<"parked" | "ready"> {
    const parked = await this.#deps.holding.park(parking);
    if (parked.kind === "parked") await this.schedule(parked.wakes);
    return parked.kind;
  }

  answers(key: SessionKey, waitIds: readonly string[]): Promise<Map<string, string>> {
    return this.#deps.holding.answers(key, waitIds);
  }

  /** Adds a job for each session that became ready, past `point` if there is any. Failing is no error: the sweep adds it. */
  async schedule(wakes: readonly Wake[], point?: FaultPoint): Promise<void> {
    if (point !== undefined && wakes.length > 0) this.#deps.faults(point);
    for (const wake of wakes) {
      try {
        await this.#deps.ready.add(wake);
      } catch (error) {
        this.#deps.logger.warn(
          { err: error, session: wake.key, wake: wake.wake },
          "a wake-up could not be queued; the sweep will",
        );
      }
    }
  }
}

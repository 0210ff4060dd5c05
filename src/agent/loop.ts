/**
 * The loop: takes a wake-up, takes the session's lease, and carries message after message through turns until nothing
 * waits. It knows neither channels nor Redis. Invariant: a session leaves this file settled, yielded, parked or, when its
 * lease is lost, untouched.
 */
import type { Bus } from "../bus/bus.js";
import { bindTurn } from "../bus/log-ids.js";
import { type SessionKey, turnIdOf } from "../bus/messages.js";
import { hasCode } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Held, SessionLock } from "../session/lock.js";
import type { SessionManager } from "../session/manager.js";
import type { OpenSession } from "../session/open-session.js";
import type { Lease, Waiting } from "../session/ports.js";
import { createRewriteGuard } from "./rewrite-guard.js";
import { createTurn, runTurn } from "./turn.js";
import { isStoppedNow, TurnAborted, type TurnContext, type TurnDeps } from "./turn-context.js";
import { TurnOutput } from "./turn-output.js";

/** Turns of one session in a row before others get the slot. */
const FAIR_TURNS = 16;

export interface LoopDeps {
  bus: Bus;
  lock: SessionLock;
  sessions: SessionManager;
  turn: TurnDeps;
  /** Waits after the first and the second failed try, ms. */
  retryDelaysMs: readonly [number, number];
  logger: Logger;
}

export interface RunOptions {
  /** Asked after each turn with what it settled: leave now although mail waits? */
  leaves: (answered: readonly string[]) => boolean;
}

const STAYS: RunOptions = { leaves: () => false };

/** A turn that runs here, and the way to end it. */
interface Running {
  turn: TurnContext;
  end: AbortController;
}

/** Tries of the message at hand, and a logger whose lines carry its ids. */
interface Tries {
  sofar: number;
  logger: Logger;
}

interface TurnParts {
  session: OpenSession;
  output: TurnOutput;
  waiting: Waiting;
  tries: Tries;
}

export class AgentLoop {
  readonly #deps: LoopDeps;
  /** By turn, not by session: one that is just leaving and the next may overlap. */
  readonly #running = new Set<Running>();
  readonly #leave = new AbortController();
  readonly #drain = new AbortController();

  constructor(deps: LoopDeps) {
    this.#deps = deps;
  }

  /** Turns that run in this process. */
  get size(): number {
    return this.#running.size;
  }

  /** Carries a woken session on; a stale wake-up does nothing. Never throws for a turn's failure. */
  async run(key: SessionKey, wake: number, options: RunOptions = STAYS): Promise<void> {
    const { lock, logger } = this.#deps;
    try {
      await lock.withLease(key, { wake }, (held) => this.#work(held, options));
    } catch (error) {
      if (hasCode(error, "LEASE_LOST"))
        logger.warn({ err: error, session: key }, "a session was taken over by another process");
      else logger.error({ err: error, session: key }, "a session could not be worked on");
    }
  }

  /** Someone stopped a session or wrote to it: if it runs here and a stop covers its turn, abort it. */
  async onHint(key: SessionKey): Promise<void> {
    for (const running of this.#running) if (running.turn.lease.key === key) await this.#endIfStopped(running);
  }

  async #endIfStopped({ turn, end }: Running): Promise<void> {
    try {
      if (await isStoppedNow(turn)) end.abort(new TurnAborted("stopped"));
    } catch (error) {
      // The next safe point asks again.
      turn.logger.debug({ err: error }, "whether a turn is stopped could not be found out");
    }
  }

  /** Gives each session up after the turn at hand, so that others take what waits behind it. */
  leave(): void {
    this.#leave.abort();
  }

  /** Ends running turns where they are; others take them up from what is stored. */
  drain(): void {
    this.#drain.abort(new TurnAborted("drained"));
    for (const { end } of this.#running) end.abort(this.#drain.signal.reason);
  }

  async #work(held: Held, options: RunOptions): Promise<void> {
    const { lease, claim } = held;
    if (claim.next === null) return;
    let session: OpenSession | null = null;
    // Tries belong to the message that waited first; the ones after it begin with none.
    const { message } = claim.next;
    const ids = { session: lease.key, turn: turnIdOf(message.key), message };
    const tries = { sofar: claim.attempts, logger: bindTurn(this.#deps.logger, ids) };
    try {
      const guard = createRewriteGuard(this.#deps.bus, lease);
      session = await this.#deps.sessions.open(lease, claim.file, guard);
      const output = new TurnOutput({ bus: this.#deps.bus, lease, logger: this.#deps.logger }, claim.openStream);
      await this.#turns({ held, session, output, first: claim.next, options, tries });
    } catch (error) {
      await this.#yieldAfter(error, { held, session, tries });
    } finally {
      await session?.close();
    }
  }

  async #turns(work: {
    held: Held;
    session: OpenSession;
    output: TurnOutput;
    first: Waiting;
    options: RunOptions;
    tries: Tries;
  }): Promise<void> {
    const { held, session, output, options, tries } = work;
    let waiting: Waiting | null = work.first;
    for (let count = 1; waiting !== null; count += 1) {
      const end = await this.#turn(held.lease, { session, output, waiting, tries });
      if (end.kind !== "next") return held.left();
      waiting = end.waiting;
      tries.sofar = 0;
      const isDraining = this.#leave.signal.aborted || this.#drain.signal.aborted || options.leaves(end.answered);
      if (isDraining || count >= FAIR_TURNS) return this.#yield(held, session, isDraining ? "drain" : "fair");
    }
  }

  async #turn(lease: Lease, parts: TurnParts) {
    const { session, output, waiting, tries } = parts;
    const end = new AbortController();
    // Not joined with the process' own signal: Node keeps a trace of every signal that was joined with a lasting one.
    if (this.#drain.signal.aborted) end.abort(this.#drain.signal.reason);
    const signal = AbortSignal.any([lease.signal, end.signal]);
    const turn = createTurn(this.#deps.turn, { lease, session, output, ...waiting, signal });
    tries.logger = turn.logger;
    const running = { turn, end };
    this.#running.add(running);
    try {
      return await runTurn(turn);
    } finally {
      this.#running.delete(running);
    }
  }

  async #yield(held: Held, session: OpenSession, why: "fair" | "drain"): Promise<void> {
    const { key, fence } = held.lease;
    await this.#deps.bus.yield({ key, fence, why, delayMs: 0, file: session.state(), reason: "" });
    held.left();
  }

  /** The lease is given back so that the message is tried again; a lost one is left alone. */
  async #yieldAfter(
    error: unknown,
    { held, session, tries }: { held: Held; session: OpenSession | null; tries: Tries },
  ): Promise<void> {
    const { lease, claim } = held;
    if (lease.signal.aborted || hasCode(error, "LEASE_LOST")) throw error;
    const { bus, retryDelaysMs } = this.#deps;
    const { sofar: attempts, logger } = tries;
    const isDrained = error instanceof TurnAborted && error.why === "drained";
    const delayMs = isDrained ? 0 : (retryDelaysMs[attempts] ?? 0);
    if (!isDrained) logger.error({ err: error, attempts: attempts + 1 }, "a turn failed");
    const gaveUp = await bus.yield({
      key: lease.key,
      fence: lease.fence,
      why: isDrained ? "drain" : "fail",
      delayMs,
      file: session?.state() ?? claim.file,
      reason: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    });
    held.left();
    if (gaveUp) logger.error("a message was given up; see the dead letters");
  }
}

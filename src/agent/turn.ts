/**
 * A turn: one message of the user carried to its answer under one lease, as a table of states. Each state is a function in
 * a file of its own room; this file only goes from one to the next and times them. Invariant: whatever state a dead worker
 * was in, RESTORE finds the way on from the stored rows.
 */
import { bindTurn } from "../bus/log-ids.js";
import type { MailboxMessage } from "../bus/messages.js";
import { hasCode } from "../errors.js";
import { timed } from "../metrics.js";
import type { OpenSession } from "../session/open-session.js";
import type { Lease, Waiting } from "../session/ports.js";
import { commandTurn } from "./commands/in-turn.js";
import { isStoppedNow, readTurn, TurnAborted, type TurnContext, type TurnDeps, unsettledOf } from "./turn-context.js";
import type { TurnOutput } from "./turn-output.js";
import { answerOf, deliver, fail, stop } from "./turn-respond.js";
import { restore, takeAnswers } from "./turn-restore.js";
import { turnRowsOf } from "./turn-rows.js";
import { run } from "./turn-run.js";
import { appendUserRow } from "./turn-steer.js";

/** How a turn left the session. `answered`: the inbound keys it settled. */
export type TurnEnd = { kind: "idle" | "parked" } | { kind: "next"; waiting: Waiting; answered: readonly string[] };

type State = "restore" | "command" | "build" | "run" | "park" | "stop" | "fail" | "save" | "respond";
type Step = (turn: TurnContext) => Promise<State | TurnEnd>;

/** The table. COMMAND ends a turn by itself when it answers; STOP and FAIL stand beside RUN. */
const STATES: Readonly<Record<State, Step>> = {
  restore,
  command: async (turn) => {
    const answer = await commandTurn(turn);
    if (answer === null) return "build";
    turn.answer = answer;
    return "save";
  },
  build,
  run,
  park,
  stop,
  fail,
  save: async (turn) => {
    // What was shown so far leaves while the disk works.
    await Promise.all([turn.session.sync(), turn.output.flush()]);
    turn.deps.faults("turn.finished");
    return "respond";
  },
  respond,
};

/** Stores what the user said. Listening to what was spoken takes its time, and may be stopped. */
async function build(turn: TurnContext): Promise<State> {
  try {
    await appendUserRow(turn, [turn.message, ...turn.fragments]);
  } catch (error) {
    if (error instanceof TurnAborted && error.why === "stopped") return "stop";
    throw error;
  }
  readTurn(turn);
  return "run";
}

/** Waits without a slot for the calls that have no answer yet. */
async function park(turn: TurnContext): Promise<State | TurnEnd> {
  const { deps, lease, rows, session, output, signal } = turn;
  if (signal.reason instanceof TurnAborted && signal.reason.why === "stopped") return "stop";
  signal.throwIfAborted();
  await session.sync();
  await output.flush();
  const parked = await deps.bus.park({
    key: lease.key,
    fence: lease.fence,
    waitIds: rows.waits.map((wait) => wait.waitId),
    untilMs: Math.min(...rows.waits.map((wait) => wait.untilMs)),
    file: session.state(),
    inboundKeys: rows.inboundKeys,
    takesMail: false,
  });
  if (parked === "parked") return { kind: "parked" };
  if (await isStoppedNow(turn)) return "stop";
  return (await takeAnswers(turn)) ? "park" : "run";
}

async function respond(turn: TurnContext): Promise<State | TurnEnd> {
  const delivery = { answer: answerOf(turn), inboundKeys: unsettledOf(turn), afterwards: "next" as const };
  const settled = await deliver(turn, delivery);
  switch (settled.kind) {
    case "stopped":
      return "stop";
    case "next":
      return {
        kind: "next",
        waiting: { message: settled.message, fragments: settled.fragments, isStopped: settled.isStopped },
        answered: turn.rows.inboundKeys,
      };
    case "idle":
    case "stay":
      return { kind: "idle" };
    default:
      return settled satisfies never;
  }
}

export interface TurnInput {
  lease: Lease;
  session: OpenSession;
  output: TurnOutput;
  message: MailboxMessage;
  fragments: readonly MailboxMessage[];
  isStopped: boolean;
  signal: AbortSignal;
}

/** A turn about to begin, or to be taken up again. */
export function createTurn(deps: TurnDeps, input: TurnInput): TurnContext {
  const { lease, message, session } = input;
  const rows = turnRowsOf(session.session.messages, { inboundKey: message.key, clientId: message.message.id });
  const nothingYet = { answer: null, partial: "", takenIn: 0, voided: 0, settled: new Set<string>() };
  const logger = bindTurn(deps.logger, { session: lease.key, turn: rows.turnId, message });
  const stopAsked = isStoppedNow({ deps, lease, rows });
  const system = deps.context.system(message.message.channel);
  // Whoever awaits them gets their errors; a turn that ends before is not to be troubled.
  stopAsked.catch(() => undefined);
  system.catch(() => undefined);
  return { deps, logger, ...input, startedMs: performance.now(), rows, stopAsked, system, ...nothingYet };
}

/** Runs a turn to its end. Throws `LEASE_LOST`, `TurnAborted` (drained), or what made the try fail. */
export function runTurn(turn: TurnContext): Promise<TurnEnd> {
  return timed(() => goThrough(turn), {
    onEnd: (outcome, ms) => turn.deps.metrics.observe("turn_seconds", { outcome }, ms),
    outcomeOf: (end) => (end.ok ? outcomeOfTurn(turn, end.value) : failureOf(end.error)),
  });
}

function failureOf(error: unknown): string {
  if (error instanceof TurnAborted) return error.why;
  return hasCode(error, "LEASE_LOST") ? "lease_lost" : "error";
}

async function goThrough(turn: TurnContext): Promise<TurnEnd> {
  const { metrics } = turn.deps;
  const timesMs: Partial<Record<State, number>> = {};
  let state: State | TurnEnd = "restore";
  while (typeof state === "string") {
    const current: State = state;
    const onEnd = (outcome: string, ms: number) => {
      timesMs[current] = (timesMs[current] ?? 0) + ms;
      metrics.observe("turn_state_seconds", { state: current, outcome }, ms);
    };
    const outcomeOf = ({ ok }: { ok: boolean }) => (ok ? "ok" : "error");
    state = await timed(() => STATES[current](turn), { onEnd, outcomeOf });
  }
  const outcome = outcomeOfTurn(turn, state);
  turn.logger.info({ outcome, fence: turn.lease.fence, timesMs: rounded(timesMs) }, "turn ended");
  return state;
}

function outcomeOfTurn({ answer }: TurnContext, end: TurnEnd): string {
  return answer?.outcome ?? end.kind;
}

function rounded(timesMs: Partial<Record<State, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(timesMs).map(([state, ms]) => [state, Math.round(ms * 10) / 10]));
}

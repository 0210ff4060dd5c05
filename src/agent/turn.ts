/**
 * A turn: one message of the user carried to its answer under one lease, as a table of states. Each state is a function in
 * a file of its own room; this file only goes from one to the next and times them. Invariant: whatever state a dead worker
 * was in, RESTORE finds the way on from the stored rows.
 */
import type { MailboxMessage } from "../bus/messages.js";
import type { OpenSession } from "../session/open-session.js";
import type { Lease, Waiting } from "../session/ports.js";
import { commandTurn } from "./commands/in-turn.js";
import type { TurnContext, TurnDeps } from "./turn-context.js";
import type { TurnOutput } from "./turn-output.js";
import { deliver, fail, stop } from "./turn-respond.js";
import { restore, takeAnswers } from "./turn-restore.js";
import { turnRowsOf } from "./turn-rows.js";
import { appendUserRow, run } from "./turn-run.js";

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
    return "respond";
  },
  build: async (turn) => {
    await appendUserRow(turn, [turn.message]);
    turn.rows = { ...turn.rows, hasBegun: true };
    return "run";
  },
  run,
  park,
  stop,
  fail,
  save: async (turn) => {
    await turn.session.sync();
    turn.deps.faults("turn.finished");
    return "respond";
  },
  respond,
};

/** Waits without a slot for the calls that have no answer yet. */
async function park(turn: TurnContext): Promise<State | TurnEnd> {
  const { deps, lease, rows, session, output } = turn;
  turn.signal.throwIfAborted();
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
  const inboundKeys = rows.inboundKeys;
  const { stopped } = await deps.bus.check({ key: lease.key, fence: lease.fence, inboundKeys, route: "", take: 0 });
  if (stopped.length > 0) return "stop";
  return (await takeAnswers(turn)) ? "park" : "run";
}

async function respond(turn: TurnContext): Promise<State | TurnEnd> {
  const settled = await deliver(turn, "next");
  switch (settled.kind) {
    case "stopped":
      return "stop";
    case "next":
      return {
        kind: "next",
        waiting: { message: settled.message, isStopped: settled.isStopped },
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
  isStopped: boolean;
  signal: AbortSignal;
}

/** Runs a turn to its end. Throws `LEASE_LOST`, `TurnAborted` (drained), or what made the try fail. */
export async function runTurn(deps: TurnDeps, input: TurnInput): Promise<TurnEnd> {
  const { message, session } = input;
  const rows = turnRowsOf(session.session.messages, { inboundKey: message.key, clientId: message.message.id });
  const startedMs = performance.now();
  const turn: TurnContext = { deps, ...input, startedMs, rows, answer: null, partial: "", takenIn: 0 };
  const timesMs: Partial<Record<State, number>> = {};
  let state: State | TurnEnd = "restore";
  while (typeof state === "string") {
    const current: State = state;
    const enteredMs = performance.now();
    state = await STATES[current](turn);
    timesMs[current] = (timesMs[current] ?? 0) + performance.now() - enteredMs;
  }
  const ids = { session: input.lease.key, turn: turn.rows.turnId, outcome: turn.answer?.outcome ?? state.kind };
  deps.logger.info({ ...ids, fence: input.lease.fence, timesMs: rounded(timesMs) }, "turn ended");
  return state;
}

function rounded(timesMs: Partial<Record<State, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(timesMs).map(([state, ms]) => [state, Math.round(ms * 10) / 10]));
}

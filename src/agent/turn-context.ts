/**
 * What the states of a turn share: its parts, its signals, what is known so far, and the questions that several of them
 * ask. The states themselves are in the files beside it. Invariant: everything here that matters after a crash is also in the session's rows
 * or in Redis.
 */
import type { Bus } from "../bus/bus.js";
import type { MailboxMessage, TurnOutcome } from "../bus/messages.js";
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { OpenSession } from "../session/open-session.js";
import type { Lease } from "../session/ports.js";
import type { ContextBuilder } from "./context.js";
import type { Providers } from "./providers/registry.js";
import type { Tool } from "./tools/tool.js";
import type { TurnMedia } from "./turn-media.js";
import type { TurnOutput } from "./turn-output.js";
import { type TurnRows, turnRowsOf } from "./turn-rows.js";

/** Settings of a turn. */
export interface TurnSettings {
  maxIterations: number;
  maxOutputTokens: number;
  toolResultMaxChars: number;
  /** `steer`: new messages are taken into the running turn; `followup`: each has its own turn. */
  queueMode: "steer" | "followup";
}

export interface TurnDeps {
  bus: Bus;
  providers: Providers;
  context: ContextBuilder;
  media: TurnMedia;
  /** Tools for one turn; they may remember what they showed within it. */
  tools: () => readonly Tool[];
  settings: TurnSettings;
  faults: FaultHook;
  logger: Logger;
  metrics: Metrics;
  /** Epoch ms. */
  nowMs: () => number;
}

/** Why a turn ended early although its lease is ours. */
export class TurnAborted extends Error {
  override readonly name = "TurnAborted";
  constructor(readonly why: "stopped" | "drained") {
    super(`the turn was ${why}`);
  }
}

/** What a turn will say at its end. `text` is the answer, the apology, or what was said before a stop. */
export interface Answer {
  outcome: TurnOutcome;
  text: string;
  outboundId: string;
  /** `notice`: a word of the gateway itself. */
  kind: "final" | "notice";
  step: number;
  latencyMs: number | null;
}

export interface TurnContext {
  readonly deps: TurnDeps;
  /** Its lines carry the ids of the turn. */
  readonly logger: Logger;
  readonly lease: Lease;
  readonly session: OpenSession;
  readonly output: TurnOutput;
  /** The message that the turn answers first. */
  readonly message: MailboxMessage;
  /** What was said in the same breath: answered together with it. */
  readonly fragments: readonly MailboxMessage[];
  /** Whether a stop covered it before this holder began. */
  readonly isStopped: boolean;
  /** Aborts when the lease is lost, a stop comes, or the process drains. */
  readonly signal: AbortSignal;
  /** Monotonic, ms. */
  readonly startedMs: number;
  rows: TurnRows;
  answer: Answer | null;
  /** Whether a stop came before this process could hear of it: asked at the start, awaited before the model is. */
  readonly stopAsked: Promise<boolean>;
  /** The system prompt: looked for while the user's row is written. */
  readonly system: Promise<string>;
  /** Text of the step that runs. */
  partial: string;
  /** Times that messages were taken in. */
  takenIn: number;
  /** Streams that were voided; the next try of a step has a name of its own. */
  voided: number;
  /** Inbound keys that this holder has settled while the turn went on. */
  readonly settled: Set<string>;
}

/** Reads the turn's rows anew. */
export function readTurn(turn: TurnContext): void {
  const { key: inboundKey, message } = turn.message;
  turn.rows = turnRowsOf(turn.session.session.messages, { inboundKey, clientId: message.id });
}

/** Whether a stop covers the turn as far as it has come. Throws `LEASE_LOST`. */
export async function isStoppedNow({
  deps,
  lease,
  rows,
}: Pick<TurnContext, "deps" | "lease" | "rows">): Promise<boolean> {
  const { inboundKeys } = rows;
  const { stopped } = await deps.bus.check({ key: lease.key, fence: lease.fence, inboundKeys, route: "", take: 0 });
  return stopped.length > 0;
}

/** Inbound keys the turn has yet to settle. The mailbox hands over the oldest, so those before it are settled. */
export function unsettledOf({ rows, message, settled }: TurnContext): string[] {
  const from = rows.inboundKeys.indexOf(message.key);
  return rows.inboundKeys.filter((key, index) => index >= from && !settled.has(key));
}

/** The id under which an answer goes out: the same for the same step, however often it is made. */
export function outboundIdOf(turnId: string, step: number): string {
  return `${turnId}.${step}`;
}

/** The name of the stream of a step; another try has another name, whoever makes it. */
export function streamIdOf({ rows, lease, voided }: TurnContext, step: number): string {
  const attempt = lease.fence.toString(36) + (voided === 0 ? "" : `-${voided}`);
  return `${outboundIdOf(rows.turnId, step)}.${attempt}`;
}

/** The stream that shows this step, if one is open. */
export function openStreamOf(turn: TurnContext, step: number): string | null {
  const open = turn.output.openStream;
  return open?.streamId.startsWith(`${outboundIdOf(turn.rows.turnId, step)}.`) === true ? open.streamId : null;
}

export function latencyOf(turn: TurnContext): number {
  return Math.round(performance.now() - turn.startedMs);
}

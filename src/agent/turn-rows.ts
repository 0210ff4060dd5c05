/**
 * What the stored rows say about a turn: whether it has begun, what is still open in it, whether its answer stands. Pure.
 * It repairs nothing. Invariant: everything a resumed turn needs is read from here, so a dead worker's memory is never
 * missed.
 */
import { type TurnOutcome, turnIdOf, type Usage } from "../bus/messages.js";
import { type AssistantRow, type Row, textOf, type WireToolCall } from "../session/row.js";
import { addUsage } from "./providers/estimate.js";

/** How far back a turn is looked for: settlements that a roll-back of Redis undid are near the end. */
const SEARCH_ROWS = 2000;

/** A call whose answer comes later. */
export interface PendingWait {
  call: WireToolCall;
  waitId: string;
  untilMs: number;
}

/** The stored end of a turn. */
export interface StoredFinal {
  text: string;
  outcome: TurnOutcome;
  outboundId: string;
  step: number;
  latencyMs: number | null;
}

/** An answer that further messages followed, and the inbound keys it answers. */
export interface EarlierAnswer {
  final: StoredFinal;
  inboundKeys: string[];
}

export interface TurnRows {
  turnId: string;
  hasBegun: boolean;
  /** Every inbound key the turn has taken in, and the ids their clients know. */
  inboundKeys: string[];
  clientIds: string[];
  /** Answers that were given before the turn took further messages in; whether they are settled, Redis knows. */
  earlier: EarlierAnswer[];
  /** Calls without a result and without a wait. */
  openCalls: WireToolCall[];
  waits: PendingWait[];
  /** Set when the newest thing in the turn is its answer. */
  final: StoredFinal | null;
  nextStep: number;
  usage: Usage | null;
}

function findTurnId(rows: readonly Row[], inboundKey: string): string | null {
  const end = Math.max(0, rows.length - SEARCH_ROWS);
  for (let i = rows.length - 1; i >= end; i -= 1) {
    const row = rows[i];
    if (row?.role === "user" && row.inbound_ids?.includes(inboundKey) === true) return row.turn_id ?? null;
  }
  return null;
}

function rowsOfTurn(rows: readonly Row[], turnId: string): Row[] {
  return rows.slice(Math.max(0, rows.length - SEARCH_ROWS)).filter((row) => row.turn_id === turnId);
}

function finalFrom(row: AssistantRow): StoredFinal {
  return {
    text: textOf(row.content),
    outcome: row.outcome ?? "completed",
    outboundId: row.outbound_id ?? "",
    step: row.step ?? 0,
    latencyMs: row.latency_ms ?? null,
  };
}

/** Reads the turn of a message out of a session's rows; one that has not begun is empty. */
export function turnRowsOf(rows: readonly Row[], message: { inboundKey: string; clientId: string }): TurnRows {
  const found = findTurnId(rows, message.inboundKey);
  const turn: TurnRows = {
    turnId: found ?? turnIdOf(message.inboundKey),
    hasBegun: found !== null,
    inboundKeys: found === null ? [message.inboundKey] : [],
    clientIds: found === null ? [message.clientId] : [],
    earlier: [],
    openCalls: [],
    waits: [],
    final: null,
    nextStep: 1,
    usage: null,
  };
  if (found === null) return turn;
  const calls = new Map<string, WireToolCall>();
  const waits = new Map<string, PendingWait>();
  for (const row of rowsOfTurn(rows, found)) {
    turn.nextStep = Math.max(turn.nextStep, (row.step ?? 0) + 1);
    readRow(row, { turn, calls, waits });
  }
  turn.waits = [...waits.values()];
  turn.openCalls = [...calls.values()].filter((call) => !waits.has(call.id));
  return turn;
}

/** Keys that no earlier answer answers. */
function unanswered({ inboundKeys, earlier }: TurnRows): string[] {
  const answered = new Set(earlier.flatMap((answer) => answer.inboundKeys));
  return inboundKeys.filter((key) => !answered.has(key));
}

/** A message may stand in two rows: it is said again where others had their turn in between. */
function addNew(known: string[], ids: readonly string[] = []): void {
  known.push(...ids.filter((id) => !known.includes(id)));
}

interface Reading {
  turn: TurnRows;
  calls: Map<string, WireToolCall>;
  waits: Map<string, PendingWait>;
}

function readRow(row: Row, { turn, calls, waits }: Reading): void {
  switch (row.role) {
    case "user":
      if (turn.final !== null) turn.earlier.push({ final: turn.final, inboundKeys: unanswered(turn) });
      turn.final = null;
      addNew(turn.inboundKeys, row.inbound_ids);
      addNew(turn.clientIds, row.client_ids);
      return;
    case "assistant":
      for (const call of row.tool_calls ?? []) calls.set(call.id, call);
      turn.usage = addUsage(turn.usage, row.usage ?? null);
      turn.final = row.final === true ? finalFrom(row) : null;
      return;
    case "tool":
      calls.delete(row.tool_call_id ?? "");
      waits.delete(row.tool_call_id ?? "");
      return;
    case "wait": {
      const call = calls.get(row.call_id);
      if (call !== undefined) waits.set(row.call_id, { call, waitId: row.wait_id, untilMs: row.until });
      return;
    }
    case "system":
      return;
    default:
      row satisfies never;
  }
}

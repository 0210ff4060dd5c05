/**
 * RESTORE: what a former holder left of this turn, or of the one before it, is brought into a state from which one can go
 * on. It calls no model. Invariant: a call with a result is never run again, one without is closed, one that waits asks for
 * its answer; a stored answer is not made again.
 */
import type { Row } from "../session/row.js";
import { EXPIRED_CALL, GIVE_UP_NOTICE, INTERRUPTED_CALL, INTERRUPTED_ROW } from "./apology.js";
import { type Answer, openStreamOf, readTurn, type TurnContext, unsettledOf } from "./turn-context.js";
import { closingRows, danglingCalls, spokenIn, toolRowOf } from "./turn-messages.js";
import { deliver } from "./turn-respond.js";
import type { StoredFinal } from "./turn-rows.js";

/** A turn that was given up, or whose rows came from elsewhere, is closed before another begins. [LOOP-38] */
async function closeFormerTurn(turn: TurnContext): Promise<void> {
  const { session } = turn;
  const { messages, clearedRows } = session.session;
  const dangling = danglingCalls(messages, session.openCalls);
  const last = messages.findLast((row) => row.role !== "system" && row._command !== true);
  const isCleared = messages.length === clearedRows;
  if (last === undefined || (isCleared && dangling.length === 0)) return;
  const turnId = last.turn_id ?? "";
  const rows: Row[] = closingRows(dangling, turnId, INTERRUPTED_CALL);
  const isUnanswered = last.role === "user" || last.role === "tool" || rows.length > 0;
  if (!isCleared && isUnanswered) rows.push({ role: "assistant", content: INTERRUPTED_ROW, turn_id: turnId });
  if (rows.length > 0) await session.append(rows);
}

/** Brings answers to waiting calls in. Returns whether some are still waited for. */
export async function takeAnswers(turn: TurnContext): Promise<boolean> {
  const { deps, lease, session, rows } = turn;
  if (rows.waits.length === 0) return false;
  const answers = await deps.bus.answers(
    lease.key,
    rows.waits.map((wait) => wait.waitId),
  );
  const results: Row[] = [];
  for (const { call, waitId, untilMs } of rows.waits) {
    const text = answers.get(waitId) ?? (untilMs <= deps.nowMs() ? EXPIRED_CALL : null);
    if (text === null) continue;
    results.push(toolRowOf({ call, turnId: rows.turnId, text, isError: !answers.has(waitId) }));
  }
  if (results.length > 0) await session.append(results);
  readTurn(turn);
  return turn.rows.waits.length > 0;
}

/** A stream of a former holder is void, unless it shows the very answer that is stored. */
function voidFormerStream(turn: TurnContext): void {
  const { output, rows, message } = turn;
  const open = output.openStream;
  if (open === null) return;
  const finals = [...rows.earlier.map((earlier) => earlier.final), rows.final];
  if (finals.some((final) => final !== null && openStreamOf(turn, final.step) !== null)) return;
  const id = `${open.streamId}.void`;
  const event = { type: "stream_reset" as const, streamId: open.streamId };
  output.show(output.outgoing(open.route ?? message.message.route, open.turnId, { id, content: "", event }));
}

function answerFrom({ text, outcome, outboundId, step, latencyMs }: StoredFinal): Answer {
  const rest = { outcome, outboundId, step, latencyMs };
  if (outcome === "failed") return { ...rest, kind: "notice", text: GIVE_UP_NOTICE };
  return { ...rest, kind: "final", text: outcome === "stopped" ? spokenIn(text) : text };
}

/** Answers that a former holder stored and died before it sent them. Returns whether a stop came first. */
async function sendEarlier(turn: TurnContext): Promise<boolean> {
  const unsettled = unsettledOf(turn);
  for (const { final, inboundKeys } of turn.rows.earlier) {
    const answered = inboundKeys.filter((key) => unsettled.includes(key));
    if (answered.length === 0) continue;
    const answer = answerFrom(final);
    const { kind } = await deliver(turn, { answer, inboundKeys: answered, afterwards: "stay" });
    if (kind === "stopped") return true;
  }
  return false;
}

/** Where others have had their turn since, what is unanswered is said again, so that the model answers it, not them. */
async function sayAgain(turn: TurnContext): Promise<void> {
  const { session, rows } = turn;
  const { messages } = session.session;
  if (messages.findLast((row) => row.role !== "system")?.turn_id === rows.turnId) return;
  const unsettled = unsettledOf(turn);
  const isUnanswered = (row: Row) =>
    row.role === "user" &&
    row.turn_id === rows.turnId &&
    row.inbound_ids?.some((id) => unsettled.includes(id)) === true;
  await session.append(messages.filter(isUnanswered).map((row) => ({ ...row, step: rows.nextStep - 1 })));
}

export async function restore(turn: TurnContext): Promise<"command" | "run" | "park" | "save" | "stop"> {
  readTurn(turn);
  voidFormerStream(turn);
  const { rows, session, logger, isStopped } = turn;
  if (!rows.hasBegun) {
    await closeFormerTurn(turn);
    return isStopped ? "stop" : "command";
  }
  logger.info({ step: rows.nextStep }, "a turn is taken up again");
  if (rows.final !== null) turn.answer = answerFrom(rows.final);
  if (isStopped || (await sendEarlier(turn))) return "stop";
  if (rows.final !== null) return "save";
  await sayAgain(turn);
  if (rows.openCalls.length > 0) {
    await session.append(closingRows(rows.openCalls, rows.turnId, INTERRUPTED_CALL));
    readTurn(turn);
  }
  return (await takeAnswers(turn)) ? "park" : "run";
}

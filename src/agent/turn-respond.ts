/**
 * The end of a turn: what is open is closed in the file, the file is made durable, and one settlement sends the answers.
 * Invariant: append, fsync, settle, in this order; a settlement that a stop has overtaken becomes that stop.
 */
import type { Outgoing, TurnResult } from "../bus/messages.js";
import type { Settled } from "../bus/ports.js";
import type { Row } from "../session/row.js";
import { FAILED_ROW, STOPPED_CALL, STOPPED_ROW } from "./apology.js";
import { type Answer, latencyOf, openStreamOf, outboundIdOf, TurnAborted, type TurnContext } from "./turn-context.js";
import { closingRows } from "./turn-messages.js";
import { readTurn } from "./turn-restore.js";

function answerOf(turn: TurnContext): Answer {
  if (turn.answer === null) throw new Error(`turn ${turn.rows.turnId} ended without an answer`);
  return turn.answer;
}

function closingOutgoing(turn: TurnContext, answer: Answer): Outgoing[] {
  const { output, rows, message } = turn;
  const { route } = message.message;
  const streamId = openStreamOf(turn, answer.step);
  const say = (said: Parameters<typeof output.outgoing>[2]) => output.outgoing(route, rows.turnId, said, latency);
  const latency = answer.latencyMs === null ? {} : { latencyMs: answer.latencyMs };
  const { outboundId: id, text: content } = answer;
  const endStream = (event: "stream_end" | "stream_reset", text: string): Outgoing[] =>
    streamId === null ? [] : [say({ id: `${streamId}.end`, content: text, event: { type: event, streamId } })];
  if (answer.outcome === "stopped") return endStream("stream_end", content);
  if (answer.kind === "notice")
    return [...endStream("stream_reset", ""), say({ id, content, event: { type: "notice" } })];
  return [say({ id, content, event: { type: "final", streamId } })];
}

/** Sends the answer and settles what it answers; with `stay` the turn goes on. */
export async function deliver(turn: TurnContext, afterwards: "next" | "stay"): Promise<Settled> {
  const { deps, lease, session, output, rows, message } = turn;
  const answer = answerOf(turn);
  await session.sync();
  await output.flush();
  const outgoing = closingOutgoing(turn, answer);
  if (afterwards === "next") {
    const event = { type: "turn_end" as const, messageIds: rows.clientIds, outcome: answer.outcome, usage: rows.usage };
    const said = { id: `${rows.turnId}.end`, content: "", event };
    outgoing.push(output.outgoing(message.message.route, rows.turnId, said, { latencyMs: latencyOf(turn) }));
  }
  output.endsWithSettlement();
  const result: TurnResult = { outcome: answer.outcome, text: answer.text, turnId: rows.turnId, usage: rows.usage };
  const settled = await deps.bus.settle({
    key: lease.key,
    fence: lease.fence,
    settled: rows.unsettled.map((inboundKey) => ({ inboundKey, result })),
    outgoing,
    file: session.state(),
    afterwards,
    honoursStop: answer.outcome === "stopped",
  });
  if (settled.kind === "stopped" && afterwards === "stay") throw new TurnAborted("stopped");
  return settled;
}

/** STOP: the work so far stays in history, closed. [LOOP-39] */
export async function stop(turn: TurnContext): Promise<"save"> {
  readTurn(turn);
  const { rows, session, partial } = turn;
  const { turnId } = rows;
  const step = rows.nextStep;
  const spoken = turn.answer?.text ?? partial;
  if (rows.hasBegun && rows.final === null) {
    const open = [...rows.openCalls, ...rows.waits.map((wait) => wait.call)];
    const closing: Row[] = closingRows(open, turnId, STOPPED_CALL);
    const content = spoken === "" ? STOPPED_ROW : `${spoken}\n\n${STOPPED_ROW}`;
    const outboundId = outboundIdOf(turnId, step);
    closing.push({
      role: "assistant",
      content,
      turn_id: turnId,
      step,
      final: true,
      outcome: "stopped",
      outbound_id: outboundId,
    });
    await session.append(closing);
  }
  const shownStep = rows.final?.step ?? step;
  const outboundId = outboundIdOf(turnId, shownStep);
  turn.answer = {
    outcome: "stopped",
    text: spoken,
    outboundId,
    kind: "final",
    step: shownStep,
    latencyMs: latencyOf(turn),
  };
  return "save";
}

/** FAIL: history gets a neutral row, the user the apology that is already chosen. */
export async function fail(turn: TurnContext): Promise<"save"> {
  const { outboundId, step } = answerOf(turn);
  await turn.session.append([
    {
      role: "assistant",
      content: FAILED_ROW,
      turn_id: turn.rows.turnId,
      step,
      final: true,
      outcome: "failed",
      outbound_id: outboundId,
    },
  ]);
  return "save";
}

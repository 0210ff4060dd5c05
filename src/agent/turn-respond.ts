/**
 * The end of a turn: what is open is closed in the file, the file is made durable, and one settlement sends the answers.
 * Invariant: append, fsync, settle, in this order; a settlement that a stop has overtaken becomes that stop.
 */
import type { Outgoing, TurnResult } from "../bus/messages.js";
import type { Settled } from "../bus/ports.js";
import type { Row } from "../session/row.js";
import { FAILED_ROW, STOPPED_CALL } from "./apology.js";
import type { Utterance } from "./outgoing.js";
import { type Answer, latencyOf, openStreamOf, outboundIdOf, readTurn, type TurnContext } from "./turn-context.js";
import { closingRows, stoppedContent } from "./turn-messages.js";

export function answerOf(turn: TurnContext): Answer {
  if (turn.answer === null) throw new Error(`turn ${turn.rows.turnId} ended without an answer`);
  return turn.answer;
}

function closingOutgoing(turn: TurnContext, answer: Answer): Outgoing[] {
  const { output, rows, message } = turn;
  const { route } = message.message;
  const streamId = openStreamOf(turn, answer.step);
  const latency = answer.latencyMs === null ? {} : { latencyMs: answer.latencyMs };
  const say = (said: Utterance) => output.outgoing(route, rows.turnId, { ...said, ...latency });
  const { outboundId: id, text: content } = answer;
  const endStream = (event: "stream_end" | "stream_reset", text: string): Outgoing[] =>
    streamId === null ? [] : [say({ id: `${streamId}.end`, content: text, event: { type: event, streamId } })];
  if (answer.outcome === "stopped") {
    // A call that waits for this turn must not wait on.
    const end = { id, content: stoppedContent(content), event: { type: "final" as const, streamId: null } };
    return [...endStream("stream_end", content), ...(route.via === "call" ? [say(end)] : [])];
  }
  if (answer.kind === "notice")
    return [...endStream("stream_reset", ""), say({ id, content, event: { type: "notice" } })];
  return [say({ id, content, event: { type: "final", streamId } })];
}

/** An answer, and the inbound keys it ends. With `stay` the turn goes on. */
export interface Delivery {
  answer: Answer;
  inboundKeys: readonly string[];
  afterwards: "next" | "stay";
}

function turnEndOf(turn: TurnContext, { outcome }: Answer): Outgoing {
  const { output, rows, message } = turn;
  const event = { type: "turn_end" as const, messageIds: rows.clientIds, outcome, usage: rows.usage };
  const said = { id: `${rows.turnId}.end`, content: "", event, latencyMs: latencyOf(turn) };
  return output.outgoing(message.message.route, rows.turnId, said);
}

/** Sends an answer and settles what it answers. `stopped`: a stop came first, and nothing has happened. */
export async function deliver(turn: TurnContext, { answer, inboundKeys, afterwards }: Delivery): Promise<Settled> {
  const { deps, lease, session, output, rows } = turn;
  // Before the last answer, SAVE has done it.
  if (afterwards === "stay") await session.sync();
  await output.flush();
  const outgoing = closingOutgoing(turn, answer);
  if (afterwards === "next") outgoing.push(turnEndOf(turn, answer));
  const result: TurnResult = { outcome: answer.outcome, text: answer.text, turnId: rows.turnId, usage: rows.usage };
  const settled = await deps.bus.settle({
    key: lease.key,
    fence: lease.fence,
    settled: inboundKeys.map((inboundKey) => ({ inboundKey, result })),
    outgoing,
    file: session.state(),
    afterwards,
    honoursStop: answer.outcome === "stopped",
  });
  if (settled.kind === "stopped") return settled;
  output.endsWithSettlement();
  for (const key of inboundKeys) turn.settled.add(key);
  return settled;
}

/** STOP: the work so far stays in history, closed. [LOOP-39] */
export async function stop(turn: TurnContext): Promise<"save"> {
  readTurn(turn);
  const { rows, session, answer } = turn;
  const { turnId, nextStep } = rows;
  // An answer that the stop has overtaken stands in a row of its own.
  const shown = answer ?? { text: turn.partial, step: nextStep };
  if (rows.hasBegun && rows.final === null) {
    const open = [...rows.openCalls, ...rows.waits.map((wait) => wait.call)];
    const closing: Row[] = closingRows(open, turnId, STOPPED_CALL);
    const content = stoppedContent(answer === null ? shown.text : "");
    const outboundId = outboundIdOf(turnId, nextStep);
    const end = { final: true, outcome: "stopped" as const, outbound_id: outboundId };
    closing.push({ role: "assistant", content, turn_id: turnId, step: nextStep, ...end });
    await session.append(closing);
  }
  const outboundId = outboundIdOf(turnId, shown.step);
  turn.answer = { ...shown, outcome: "stopped", outboundId, kind: "final", latencyMs: latencyOf(turn) };
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

/**
 * Safe points: whether the turn is stopped, and which messages that came meanwhile it takes in. It asks no model.
 * Invariant: what is taken in is in the file before the model sees it, and before an answer to what came earlier leaves,
 * so that a turn whose holder dies at any moment still has one end.
 */
import { type MailboxMessage, routeKeyOf } from "../bus/messages.js";
import type { UserRow } from "../session/row.js";
import type { ChatMessage } from "./providers/provider.js";
import { readTurn, TurnAborted, type TurnContext, unsettledOf } from "./turn-context.js";
import { hear } from "./turn-media.js";
import { userRowOf } from "./turn-messages.js";
import { answerOf, deliver } from "./turn-respond.js";

/** Messages taken in at one safe point, and safe points of a turn at which any are. [LOOP-19] */
const MAX_TAKEN_AT_ONCE = 3;
const MAX_TIMES_TAKEN = 5;

/** Stores what people said, as one row of the turn. What was spoken is listened to before. Throws the signal's reason. */
export async function appendUserRow(turn: TurnContext, messages: readonly MailboxMessage[]): Promise<UserRow> {
  const { deps, rows, session } = turn;
  const heard = await hear(messages, deps.media, turn);
  const row = userRowOf({ messages, heard, turnId: rows.turnId, step: rows.nextStep - 1 });
  await session.append([row]);
  return row;
}

/** A safe point: is it stopped, and what came in meanwhile? */
export async function takeIn(
  turn: TurnContext,
  where: "after_tools" | "after_final" | "at_limit",
): Promise<ChatMessage[]> {
  turn.signal.throwIfAborted();
  const { deps, lease, rows, message } = turn;
  const maySteer = deps.settings.queueMode === "steer" && turn.takenIn < MAX_TIMES_TAKEN;
  const { stopped, taken } = await deps.bus.check({
    key: lease.key,
    fence: lease.fence,
    inboundKeys: rows.inboundKeys,
    route: routeKeyOf(message.message.route),
    take: maySteer ? MAX_TAKEN_AT_ONCE : 0,
  });
  if (stopped.length > 0) throw new TurnAborted("stopped");
  if (taken.length === 0) return [];
  turn.takenIn += 1;
  const inboundKeys = unsettledOf(turn);
  const row = await appendUserRow(turn, taken);
  // Sent only now, when it stands that the turn goes on: its end will then come from whoever goes on with it.
  if (where === "after_final") await sendBefore(turn, inboundKeys);
  readTurn(turn);
  return deps.media.vision.show([deps.context.said(row)], turn.signal);
}

/** The answer to what came before goes out; the turn goes on with what came after. */
async function sendBefore(turn: TurnContext, inboundKeys: readonly string[]): Promise<void> {
  const settled = await deliver(turn, { answer: answerOf(turn), inboundKeys, afterwards: "stay" });
  if (settled.kind === "stopped") throw new TurnAborted("stopped");
  turn.answer = null;
}

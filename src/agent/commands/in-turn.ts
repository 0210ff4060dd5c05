/**
 * COMMAND: commands that wait for their place in the session, carried out under its lease. It knows none of those that go
 * round the queue. Invariant: repeated after a crash, each does what it did before.
 */

import { type Answer, latencyOf, outboundIdOf, type TurnContext } from "../turn-context.js";
import { readCommand } from "./parse.js";

/** The answer to a command; null when the message is none. */
export async function commandTurn(turn: TurnContext): Promise<Answer | null> {
  const parsed = readCommand(turn.message.message);
  if (parsed.kind !== "command" || parsed.name !== "new") return null;
  await turn.session.clear();
  const outboundId = outboundIdOf(turn.rows.turnId, 0);
  const text = "A new conversation begins.";
  return { outcome: "completed", text, outboundId, kind: "notice", step: 0, latencyMs: latencyOf(turn) };
}

/**
 * How Discord shows what goes on: a message that is edited, "is typing", a reaction at the question. Invariant: what may be
 * lost is never repeated here, and nothing of it is shown for an answer that only its asker sees.
 */
import type { OutboundMessage } from "../../bus/messages.js";
import type { Logger } from "../../logger.js";
import { DeliveryError, type LiveView } from "../channel.js";
import type { AnswerDesk } from "./answers.js";
import type { DiscordPart } from "./parts.js";
import type { Rest, RestCall } from "./rest.js";
import type { Sender } from "./sender.js";
import { isSnowflake } from "./wire.js";

export interface LiveDeps {
  rest: Rest;
  sender: Pick<Sender, "edit" | "remove">;
  desk: Pick<AnswerDesk, "knows">;
  isStreaming: boolean;
  editIntervalMs: number;
  /** The reaction that a question gets while it is answered; null for none. */
  reaction: string | null;
  logger: Logger;
}

/** Discord shows "is typing" for ten seconds. */
export const TYPING_EVERY_MS = 8000;

export function createLive(deps: LiveDeps): LiveView<DiscordPart> {
  return {
    workingEveryMs: TYPING_EVERY_MS,
    way: ({ replyTo }) => (deps.isStreaming && !deps.desk.knows(replyTo) ? "edits" : "none"),
    intervalMs: () => deps.editIntervalMs,
    edit: (platformId, request) => deps.sender.edit(platformId, request),
    draft: async () => {
      throw new DeliveryError({ kind: "permanent" }, "Discord has no drafts");
    },
    remove: (platformId, message, signal) => deps.sender.remove(platformId, message, signal),
    working: async (phase, message, signal) => {
      if (deps.desk.knows(message.replyTo)) return;
      const calls = [...(phase === "end" ? [] : [typing(message)]), ...reacting(deps, phase, message)];
      await Promise.all(calls.map((call) => tryCall(deps, { ...call, isLossy: true, signal }, message)));
    },
  };
}

function typing({ threadId, chatId }: OutboundMessage): RestCall {
  return { method: "POST", path: `channels/${threadId ?? chatId}/typing` };
}

function reacting({ reaction }: LiveDeps, phase: "begin" | "again" | "end", message: OutboundMessage): RestCall[] {
  const { replyTo, threadId, chatId } = message;
  if (reaction === null || phase === "again" || replyTo === undefined || !isSnowflake(replyTo)) return [];
  const path = `channels/${threadId ?? chatId}/messages/${replyTo}/reactions/${encodeURIComponent(reaction)}/@me`;
  return [{ method: phase === "begin" ? "PUT" : "DELETE", path }];
}

async function tryCall({ rest, logger }: LiveDeps, call: RestCall, { chatId, turnId }: OutboundMessage): Promise<void> {
  try {
    await rest.call(call);
  } catch (error) {
    logger.debug({ err: error, chatId, turnId }, "a sign of work could not be shown");
  }
}

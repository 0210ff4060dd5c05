/**
 * Groups that got another id when they became supergroups, as the account remembers them; the memory is asked each time,
 * since another process may have seen the move. Invariant: a group keeps the names under which the configuration may know it.
 */
import type { ChannelContext } from "../channel.js";

const PREFIX = "moved:";

/** A group has become another one. Throws `BUS_UNAVAILABLE`. */
export async function noteMove(
  { fromChatId, toChatId }: { fromChatId: string; toChatId: string },
  { memory, logger }: Pick<ChannelContext, "memory" | "logger">,
): Promise<void> {
  logger.info({ chatId: fromChatId, toChatId }, "a group has got another id; it is answered there");
  await memory.set(`${PREFIX}${toChatId}`, fromChatId);
}

/** The ids of a chat, its present one first. Throws `BUS_UNAVAILABLE`. */
export async function idsOf(chatId: string, memory: ChannelContext["memory"]): Promise<string[]> {
  const former = await memory.get(`${PREFIX}${chatId}`);
  return former === null ? [chatId] : [chatId, former];
}

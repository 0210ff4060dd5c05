/**
 * Ids of tool calls. Providers repeat them within an answer, over answers, or leave them out; some refuse a
 * conversation for ever when two calls share one. It renames only, and by counting, so the same input gives the same ids.
 * Invariant: every id given out is non-empty and was not in `used` before.
 */
import type { ChatMessage } from "./provider.js";

/** Returns `id`, or a numbered variant of it when it is blank or taken, and marks it as used. */
export function claimCallId(id: string, used: Set<string>): string {
  const base = id.trim() === "" ? "call" : id;
  let candidate = id.trim() === "" ? "call-1" : id;
  for (let n = 2; used.has(candidate); n += 1) candidate = `${base}-${n}`;
  used.add(candidate);
  return candidate;
}

/** Every call id a conversation has used so far. */
export function callIdsOf(messages: readonly ChatMessage[]): Set<string> {
  const ids = new Set<string>();
  for (const row of messages) {
    if (row.role === "assistant") for (const call of row.toolCalls) ids.add(call.id);
    if (row.role === "tool") ids.add(row.toolCallId);
  }
  return ids;
}

/**
 * Makes a conversation legal for any provider, just before the wire. Pure: rows of the input are never changed, and a
 * row that was fine is passed on as the same object. It shortens nothing. Invariants: the result is legal (users and
 * assistants alternate, every call has exactly one result right behind it, ids are unique, all text is encodable),
 * and normalising it again returns it unchanged.
 */
import { claimCallId } from "./call-ids.js";
import { cleanRow, NO_RESULT } from "./normalise-row.js";
import type { ChatMessage, ToolCall } from "./provider.js";

type AssistantRow = Extract<ChatMessage, { role: "assistant" }>;
type UserRow = Extract<ChatMessage, { role: "user" }>;
type ToolRow = Extract<ChatMessage, { role: "tool" }>;

/** Results waiting for their call, by the id they were stored under, in order. */
function resultsBehind(rows: readonly ChatMessage[], position: number): Map<string, ToolRow[]> {
  const results = new Map<string, ToolRow[]>();
  for (const row of rows.slice(position + 1)) {
    if (row.role === "assistant") break;
    if (row.role === "tool") results.set(row.toolCallId, [...(results.get(row.toolCallId) ?? []), row]);
  }
  return results;
}

function answerOf(call: ToolCall, id: string, result: ToolRow | undefined): ToolRow {
  if (result && result.toolCallId === id && result.name === call.name) return result;
  return { role: "tool", toolCallId: id, name: call.name, content: result?.content ?? NO_RESULT };
}

/** Puts each call's one result right behind it, under a unique id; results nobody asked for are left out. */
function pairCalls(rows: readonly ChatMessage[]): ChatMessage[] {
  const paired: ChatMessage[] = [];
  const used = new Set<string>();
  rows.forEach((row, position) => {
    if (row.role === "tool") return;
    if (row.role !== "assistant" || row.toolCalls.length === 0) {
      paired.push(row);
      return;
    }
    const results = resultsBehind(rows, position);
    const answers: ToolRow[] = [];
    const calls = row.toolCalls.map((call) => {
      const id = claimCallId(call.id, used);
      answers.push(answerOf(call, id, results.get(call.id)?.shift()));
      return id === call.id ? call : { ...call, id };
    });
    const isSame = calls.every((call, index) => call === row.toolCalls[index]);
    paired.push(isSame ? row : { ...row, toolCalls: calls }, ...answers);
  });
  return paired;
}

function joinTexts(first: string, second: string): string {
  return first === "" || second === "" ? first + second : `${first}\n\n${second}`;
}

function joinUsers(first: UserRow, second: UserRow): UserRow {
  const images = [...(first.images ?? []), ...(second.images ?? [])];
  const content = joinTexts(first.content, second.content);
  return { role: "user", content, ...(images.length === 0 ? {} : { images }) };
}

function joinAssistants(first: AssistantRow, second: AssistantRow): AssistantRow {
  const reasoning = joinTexts(first.reasoning ?? "", second.reasoning ?? "");
  return {
    role: "assistant",
    content: joinTexts(first.content, second.content),
    toolCalls: [...first.toolCalls, ...second.toolCalls],
    ...(reasoning === "" ? {} : { reasoning }),
  };
}

/** Joins neighbours of one role; system and tool rows stay as they are. [RUN-37] */
function mergeNeighbours(rows: readonly ChatMessage[]): ChatMessage[] {
  const merged: ChatMessage[] = [];
  for (const row of rows) {
    const before = merged.at(-1);
    if (before?.role === "user" && row.role === "user") {
      merged[merged.length - 1] = joinUsers(before, row);
    } else if (before?.role === "assistant" && row.role === "assistant") {
      merged[merged.length - 1] = joinAssistants(before, row);
    } else {
      merged.push(row);
    }
  }
  return merged;
}

/** A model goes on from a user or a tool row, and a conversation begins with a user. [RUN-38] */
function mendEnds(rows: readonly ChatMessage[]): ChatMessage[] {
  const mended = [...rows];
  const last = mended.at(-1);
  if (last?.role === "assistant") {
    mended.pop();
    if (mended.some((row) => row.role !== "system")) return mendEnds(mended);
    mended.push({ role: "user", content: last.content });
  }
  const first = mended.findIndex((row) => row.role !== "system");
  if (mended[first]?.role === "assistant") mended.splice(first, 0, { role: "user", content: "(continue)" });
  return mended;
}

function isSameList(a: readonly ChatMessage[], b: readonly ChatMessage[]): boolean {
  return a.length === b.length && a.every((row, index) => row === b[index]);
}

/** The legal form of a conversation; the very same array when it is legal already. [RUN-20, 37..39] */
export function normaliseMessages(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const clean = messages.flatMap((row) => cleanRow(row) ?? []);
  // Merged before pairing, so that a call never meets the results of the row merged into it.
  const legal = mendEnds(mergeNeighbours(pairCalls(mergeNeighbours(clean))));
  return isSameList(legal, messages) ? messages : legal;
}

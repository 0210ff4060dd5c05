/**
 * What a model is shown of a session: a pure function from stored rows to a legal conversation. It reads no file and
 * does not build the prompt around it.
 *
 * Invariant, for any rows: the result starts with a user row or is empty; every tool row answers a call of the nearest
 * assistant row before it; every call has exactly one result; call ids are unique. Rows are never changed. [SES-32..43]
 */
import type { MediaRef } from "../bus/messages.js";
import { assistantText, estimateTokens, toolText, userText } from "./history-text.js";
import type { AssistantRow, Row, ToolRow, UserRow } from "./row.js";
import type { Session } from "./session.js";

export interface HistoryCall {
  id: string;
  name: string;
  /** The JSON text the model wrote. */
  arguments: string;
}

/** One row as a model sees it. */
export type HistoryMessage =
  /** `images`: those of the turn at hand, to be shown; all others are only named in the text. */
  | { role: "user"; content: string; images?: readonly MediaRef[] }
  | { role: "assistant"; content: string; toolCalls: HistoryCall[]; reasoning?: string }
  | { role: "tool"; toolCallId: string; name: string; content: string };

export interface HistoryOptions {
  /** At most so many rows, beside the user row that must come first; 0 or left out: all. */
  maxMessages?: number;
  /** At most so many tokens by `estimate`, beside that user row; 0 or left out: all. */
  maxTokens?: number;
  estimate?: (text: string) => number;
  /** The turn at hand: images of its rows are to be shown. Left out: none is. */
  turnId?: string;
  /** The folder of kept files, under which a model's tools find them. */
  mediaFolder?: string;
}

/** Rows that stand or fall together: a user row, or an assistant row with its results. */
interface Unit {
  messages: HistoryMessage[];
  isUser: boolean;
  isDelivery: boolean;
}

/** Names and commas around a row's text cost about this much. */
const TOKENS_PER_MESSAGE = 4;
/** What an image costs, scaled down as models get it. */
const TOKENS_PER_IMAGE = 1600;

/**
 * Results by call: each call takes the first result with its id that follows it and that no later call of the same id
 * comes before. Providers that number their calls anew in each answer reuse ids, so an id alone says nothing.
 */
function pairResults(rows: readonly Row[]): Map<AssistantRow, Map<string, ToolRow>> {
  const pairs = new Map<AssistantRow, Map<string, ToolRow>>();
  const waiting = new Map<string, AssistantRow>();
  for (const row of rows) {
    if (row.role === "assistant") {
      pairs.set(row, new Map());
      for (const call of row.tool_calls ?? []) waiting.set(call.id, row);
    }
    const caller = row.role === "tool" && row.tool_call_id !== undefined ? waiting.get(row.tool_call_id) : undefined;
    if (row.role !== "tool" || row.tool_call_id === undefined || caller === undefined) continue;
    pairs.get(caller)?.set(row.tool_call_id, row);
    waiting.delete(row.tool_call_id);
  }
  return pairs;
}

function freshId(id: string, used: Set<string>): string {
  let candidate = id;
  for (let copy = 2; used.has(candidate); copy += 1) candidate = `${id}~${copy}`;
  used.add(candidate);
  return candidate;
}

function assistantUnit(row: AssistantRow, results: Map<string, ToolRow>, used: Set<string>): Unit {
  const toolCalls: HistoryCall[] = [];
  const answers: HistoryMessage[] = [];
  const taken = new Set<string>();
  for (const call of row.tool_calls ?? []) {
    const result = results.get(call.id);
    if (result === undefined || taken.has(call.id)) continue;
    taken.add(call.id);
    const id = freshId(call.id, used);
    toolCalls.push({ id, name: call.function.name, arguments: call.function.arguments });
    answers.push({ role: "tool", toolCallId: id, name: call.function.name, content: toolText(result.content) });
  }
  const content = assistantText(row.content);
  const reasoning = row.reasoning_content ?? "";
  const isEmpty = content === "" && toolCalls.length === 0 && reasoning === "";
  const message: HistoryMessage = {
    role: "assistant",
    content,
    toolCalls,
    ...(reasoning === "" ? {} : { reasoning }),
  };
  return {
    messages: isEmpty ? [] : [message, ...answers],
    isUser: false,
    isDelivery: row._channel_delivery === true && content !== "" && toolCalls.length === 0,
  };
}

/** A user row as a model sees it; its images too, if they are to be shown. */
export function userMessage(
  row: Pick<UserRow, "content" | "media">,
  { mediaFolder, showsImages }: { mediaFolder: string; showsImages: boolean },
): Extract<HistoryMessage, { role: "user" }> {
  const media = row.media ?? [];
  const images = showsImages
    ? media.filter((file): file is MediaRef => typeof file !== "string" && file.mime.startsWith("image/"))
    : [];
  const content = userText(row.content, media, mediaFolder);
  return { role: "user", content, ...(images.length === 0 ? {} : { images }) };
}

function unitsOf(rows: readonly Row[], { turnId, mediaFolder = "" }: HistoryOptions): Unit[] {
  const visible = rows.filter((row) => row._command !== true);
  const pairs = pairResults(visible);
  const used = new Set<string>();
  const units: Unit[] = [];
  for (const row of visible) {
    if (row.role === "assistant") units.push(assistantUnit(row, pairs.get(row) ?? new Map(), used));
    if (row.role !== "user") continue;
    const showsImages = turnId !== undefined && row.turn_id === turnId;
    const message = userMessage(row, { mediaFolder, showsImages });
    units.push({ messages: message.content === "" ? [] : [message], isUser: true, isDelivery: false });
  }
  return units.filter((unit) => unit.messages.length > 0);
}

function costOf(unit: Unit, estimate: (text: string) => number): number {
  let tokens = 0;
  for (const message of unit.messages) {
    tokens += TOKENS_PER_MESSAGE + estimate(message.content);
    if (message.role === "user") tokens += TOKENS_PER_IMAGE * (message.images?.length ?? 0);
    if (message.role !== "assistant") continue;
    tokens += estimate(message.reasoning ?? "");
    for (const call of message.toolCalls) tokens += estimate(call.name) + estimate(call.arguments);
  }
  return tokens;
}

/** One token a UTF-16 unit is the most that `estimateTokens` says. */
function costAtMost(units: readonly Unit[]): number {
  let units16 = 0;
  for (const unit of units) units16 += costOf(unit, (text) => text.length);
  return units16;
}

/** Index of the oldest unit that fits, counted from the newest; the newest always does. */
function windowStart(units: readonly Unit[], options: HistoryOptions): number {
  const isBounded = Boolean(options.maxMessages);
  // Most sessions are far from their bound: looking at every character of them would be most of a turn's own work.
  if (
    !isBounded &&
    options.estimate === undefined &&
    costAtMost(units) <= (options.maxTokens || Number.POSITIVE_INFINITY)
  )
    return 0;
  const estimate = options.estimate ?? estimateTokens;
  const maxTokens = options.maxTokens || Number.POSITIVE_INFINITY;
  const maxMessages = options.maxMessages || Number.POSITIVE_INFINITY;
  let tokens = 0;
  let count = 0;
  let start = units.length;
  for (const unit of units.toReversed()) {
    if (maxTokens !== Number.POSITIVE_INFINITY) tokens += costOf(unit, estimate);
    count += unit.messages.length;
    if (start < units.length && (tokens > maxTokens || count > maxMessages)) break;
    start -= 1;
  }
  return start;
}

/** The window moved forward to its first user row; where it has none, the nearest earlier one is put before it. */
function alignToUser(units: readonly Unit[], start: number): Unit[] {
  const inside = units.findIndex((unit, index) => index >= start && unit.isUser);
  if (inside !== -1) return withDelivery(units, inside);
  const before = units.findLastIndex((unit) => unit.isUser);
  const user = units[before];
  return user === undefined ? [] : [user, ...units.slice(start)];
}

/**
 * A message sent unasked right before the first user row is what that row probably answers. It is quoted inside it,
 * since a conversation that opens with the assistant is refused by some providers. [SES-34]
 */
function withDelivery(units: readonly Unit[], first: number): Unit[] {
  const rest = units.slice(first);
  const [user] = rest;
  const delivery = units[first - 1];
  const text = delivery?.isDelivery === true ? delivery.messages[0]?.content : undefined;
  const answer = user?.messages[0];
  if (text === undefined || answer?.role !== "user") return rest;
  const content = `[Your message before this one: ${text}]\n\n${answer.content}`;
  return [{ messages: [{ ...answer, content }], isUser: true, isDelivery: false }, ...rest.slice(1)];
}

/** The history of a session for one model call; equal input gives equal output. */
export function getHistory(
  session: Pick<Session, "messages" | "lastConsolidated">,
  options: HistoryOptions = {},
): HistoryMessage[] {
  const units = unitsOf(session.messages.slice(session.lastConsolidated), options);
  return alignToUser(units, windowStart(units, options)).flatMap((unit) => unit.messages);
}

/**
 * One row of a session file: nanobot's field names plus ours (`turn_id`, `step`, `inbound_ids`, `fence`, …). It neither
 * reads files nor decides what a model sees.
 *
 * Invariant: a value of type `Row` has fields of the declared types. Fields we do not know are kept as they are;
 * known fields of a wrong type are left out, so that one bad field does not cost the row.
 */
import type { MediaRef, TurnOutcome, Usage } from "../bus/messages.js";

/** Text, blocks as multimodal rows of nanobot hold them, or nothing beside tool calls. */
export type RowContent = string | null | readonly unknown[];

/** A tool call in the shape that OpenAI's wire and nanobot's files use. */
export interface WireToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

interface RowBase {
  content: RowContent;
  /** ISO 8601; set by `append` where missing. */
  timestamp?: string;
  turn_id?: string;
  /** Number of the model call within the turn. */
  step?: number;
  /** Fence of the writer; set by `append`. Rows of imports and hand edits have none. */
  fence?: number;
  /** A slash command or its answer: shown to people, never to the model. */
  _command?: boolean;
  _hidden_history?: boolean;
  _automation_turn?: boolean;
}

export interface UserRow extends RowBase {
  role: "user";
  sender_id?: string;
  media?: ReadonlyArray<string | MediaRef>;
  /** Keys of the inbound messages that this row holds, their mailbox numbers, and the ids their clients gave them. */
  inbound_ids?: readonly string[];
  inbound_n?: readonly number[];
  client_ids?: readonly string[];
}

export interface AssistantRow extends RowBase {
  role: "assistant";
  tool_calls?: readonly WireToolCall[];
  reasoning_content?: string;
  latency_ms?: number;
  usage?: Usage;
  /** The answer that ends its turn; `outbound_id` is the id it was or will be sent under. */
  final?: boolean;
  outbound_id?: string;
  /** How the turn ended that this row ends; left out when completed. */
  outcome?: TurnOutcome;
  /** Sent without being asked: a reminder, a report. */
  _channel_delivery?: boolean;
}

export interface ToolRow extends RowBase {
  role: "tool";
  tool_call_id?: string;
  call_id?: string;
  name?: string;
  is_error?: boolean;
}

/** A call whose answer comes later: never closed as interrupted, never shown to the model. */
export interface WaitRow extends RowBase {
  role: "wait";
  call_id: string;
  wait_id: string;
  /** Epoch ms. */
  until: number;
}

/** Accepted from imports; never replayed, since the prompt is built anew for each turn. */
export interface SystemRow extends RowBase {
  role: "system";
}

export type Row = UserRow | AssistantRow | ToolRow | WaitRow | SystemRow;

type Fields = Record<string, unknown>;

/** True for a JSON object that is neither null nor an array. */
export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const isText = (value: unknown): boolean => typeof value === "string";
const isFlag = (value: unknown): boolean => typeof value === "boolean";
const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isTextList = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isNumberList = (value: unknown): boolean => Array.isArray(value) && value.every(isNumber);

function isMediaRef(value: unknown): boolean {
  return isRecord(value) && isText(value.path) && isText(value.mime) && isText(value.name) && isNumber(value.bytes);
}

function isUsage(value: unknown): boolean {
  if (!isRecord(value) || (value.cachedTokens !== undefined && !isNumber(value.cachedTokens))) return false;
  return isNumber(value.inputTokens) && isNumber(value.outputTokens) && isFlag(value.estimated);
}

function isWireToolCall(value: unknown): boolean {
  if (!isRecord(value) || !isRecord(value.function)) return false;
  const isNamed = typeof value.id === "string" && value.id !== "" && value.type === "function";
  return isNamed && isText(value.function.name) && isText(value.function.arguments);
}

const FIELD_CHECKS: Readonly<Record<string, (value: unknown) => boolean>> = {
  timestamp: isText,
  turn_id: isText,
  step: isNumber,
  fence: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  sender_id: isText,
  media: (value) => Array.isArray(value) && value.every((item) => isText(item) || isMediaRef(item)),
  inbound_ids: isTextList,
  inbound_n: isNumberList,
  client_ids: isTextList,
  reasoning_content: isText,
  latency_ms: isNumber,
  usage: isUsage,
  final: isFlag,
  outbound_id: isText,
  outcome: (value) => value === "completed" || value === "stopped" || value === "failed",
  tool_call_id: isText,
  call_id: isText,
  name: isText,
  is_error: isFlag,
  wait_id: isText,
  until: isNumber,
  _command: isFlag,
  _hidden_history: isFlag,
  _automation_turn: isFlag,
  _channel_delivery: isFlag,
};

function withSoundFields(record: Fields): Fields {
  const sound: Fields = {};
  for (const [name, value] of Object.entries(record)) {
    const check = Object.hasOwn(FIELD_CHECKS, name) ? FIELD_CHECKS[name] : undefined;
    if (name === "tool_calls") sound.tool_calls = Array.isArray(value) ? value.filter(isWireToolCall) : [];
    else if (check === undefined || check(value)) sound[name] = value;
  }
  if (sound.content === undefined) sound.content = null;
  return sound;
}

function isRow(fields: Fields): fields is Fields & Row {
  const { role, content } = fields;
  if (content !== null && typeof content !== "string" && !Array.isArray(content)) return false;
  if (role === "wait") return [fields.call_id, fields.wait_id, fields.until].every((field) => field !== undefined);
  return role === "user" || role === "assistant" || role === "tool" || role === "system";
}

/** The row that a parsed line holds; null when it is none (no object, no known role, content of no known kind). */
export function parseRow(value: unknown): Row | null {
  if (!isRecord(value)) return null;
  const fields = withSoundFields(value);
  return isRow(fields) ? fields : null;
}

function blockText(block: unknown): string {
  if (!isRecord(block)) return "";
  if (block.type === "text" && typeof block.text === "string") return block.text;
  if (block.type !== "image_url") return "";
  const path = isRecord(block._meta) ? block._meta.path : undefined;
  return typeof path === "string" ? `[image: ${path}]` : "[image]";
}

/** The words of a row: its text, or its text blocks with image data as breadcrumbs. [SES-54] */
export function textOf(content: RowContent): string {
  if (content === null) return "";
  if (typeof content === "string") return content;
  return content
    .map(blockText)
    .filter((text) => text !== "")
    .join("\n");
}

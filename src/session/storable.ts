/**
 * What may be stored: rows on their way into a session file, with what would break later replay taken out. It does not
 * write, and does not shorten tool results, which the runner has done.
 *
 * Invariant: among stored rows every tool row answers a call that was open when it came. [SES-53, SES-54]
 */
import { type AssistantRow, isRecord, type Row, type RowContent, type ToolRow, textOf, type UserRow } from "./row.js";

export interface Storable {
  rows: Row[];
  /** Rows that were not worth or not fit to be stored, with the reason. */
  dropped: Array<{ row: Row; why: string }>;
}

function isInlineImage(block: unknown): boolean {
  if (!isRecord(block) || block.type !== "image_url" || !isRecord(block.image_url)) return false;
  return typeof block.image_url.url === "string" && block.image_url.url.startsWith("data:");
}

/** Image data becomes a breadcrumb; it would weigh on every later read. */
function withoutImageData(content: RowContent): RowContent {
  if (content === null || typeof content === "string") return content;
  return content.map((block) => (isInlineImage(block) ? { type: "text", text: textOf([block]) } : block));
}

function assistantFault(row: AssistantRow): string | null {
  const saysSomething = textOf(row.content) !== "" || (row.reasoning_content ?? "") !== "";
  const isEmpty = !saysSomething && (row.tool_calls ?? []).length === 0;
  // The end of a turn is stored even when it is silent: a resumed turn looks for it.
  return isEmpty && row.final !== true ? "empty answer" : null;
}

function userFault(row: UserRow): string | null {
  const isEmpty = textOf(row.content) === "" && (row.media ?? []).length === 0;
  return isEmpty && (row.inbound_ids ?? []).length === 0 ? "empty user row" : null;
}

function toolFault(row: ToolRow, open: ReadonlySet<string>): string | null {
  if (row.tool_call_id === undefined || row.tool_call_id === "") return "result without a call id";
  return open.has(row.tool_call_id) ? null : "result of a call that nobody made or that is answered";
}

function faultOf(row: Row, open: ReadonlySet<string>): string | null {
  switch (row.role) {
    case "assistant":
      return assistantFault(row);
    case "user":
      return userFault(row);
    case "tool":
      return toolFault(row, open);
    case "wait":
    case "system":
      return null;
    default:
      return row satisfies never;
  }
}

/** Calls of one row with an id of their own; some streams repeat a call. */
function withUniqueCalls(row: AssistantRow): AssistantRow {
  if (row.tool_calls === undefined) return row;
  const seen = new Set<string>();
  return { ...row, tool_calls: row.tool_calls.filter((call) => !seen.has(call.id) && seen.add(call.id)) };
}

/** The rows of a batch that may be appended; `openCalls` are the calls of the session that have no result yet. */
export function storableRows(batch: readonly Row[], openCalls: ReadonlySet<string>): Storable {
  const open = new Set(openCalls);
  const storable: Storable = { rows: [], dropped: [] };
  for (const candidate of batch) {
    const clean = { ...candidate, content: withoutImageData(candidate.content) };
    const row = clean.role === "assistant" ? withUniqueCalls(clean) : clean;
    const why = faultOf(row, open);
    if (why !== null) {
      storable.dropped.push({ row, why });
      continue;
    }
    if (row.role === "assistant") for (const call of row.tool_calls ?? []) open.add(call.id);
    if (row.role === "tool" && row.tool_call_id !== undefined) open.delete(row.tool_call_id);
    storable.rows.push(row);
  }
  return storable;
}

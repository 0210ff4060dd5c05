/** An independent reading of session rows: is this history one that any model provider would take? */

type Row = Record<string, unknown>;

/** The reading of one file: calls that wait, messages seen, faults found. */
interface Reading {
  open: Set<string>;
  seen: Set<string>;
  faults: string[];
}

const idsOf = (value: unknown): string[] => (Array.isArray(value) ? (value as string[]) : []);
const callsOf = (value: unknown): string[] =>
  Array.isArray(value) ? (value as Array<{ id: string }>).map(({ id }) => id) : [];

function readRow(row: Row, at: string, { open, seen, faults }: Reading): void {
  if (row.role !== "tool" && row.role !== "wait" && open.size > 0)
    faults.push(`${at}: a ${String(row.role)} row while calls are open`);
  for (const id of idsOf(row.inbound_ids)) {
    if (seen.has(id)) faults.push(`${at}: message ${id} is there twice`);
    seen.add(id);
  }
  for (const id of callsOf(row.tool_calls)) open.add(id);
  if (row.role === "tool" && !open.delete(String(row.tool_call_id))) faults.push(`${at}: a result nobody asked for`);
}

/** Rows that count: those that no higher fence stands before. */
function countingRows(rows: readonly Row[]): Row[] {
  let fence = 0;
  return rows.filter((row) => {
    const own = typeof row.fence === "number" ? row.fence : fence;
    if (own < fence) return false;
    fence = own;
    return true;
  });
}

/** What is wrong with a session's rows; empty when they are legal and every turn is closed. */
export function historyFaults(rows: readonly Row[]): string[] {
  const reading: Reading = { open: new Set(), seen: new Set(), faults: [] };
  const counting = countingRows(rows);
  for (const [index, row] of counting.entries()) readRow(row, `row ${index}`, reading);
  const last = counting.at(-1);
  if (reading.open.size > 0) reading.faults.push(`calls without a result: ${[...reading.open].join(", ")}`);
  if (last !== undefined && last.role !== "assistant")
    reading.faults.push(`the last row is a ${String(last.role)} row`);
  return reading.faults;
}

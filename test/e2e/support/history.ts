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

/** The highest fence that stands before each line, its own included when it is a fence line. */
function fencesBefore(lines: readonly Row[]): number[] {
  let fence = 0;
  return lines.map((line) => {
    if (typeof line.fence === "number") fence = Math.max(fence, line.fence);
    return fence;
  });
}

/** Rows of a session's lines that a higher fence before them makes void: a fenced-out writer's. */
export function voidRows(lines: readonly Row[]): Row[] {
  const fences = fencesBefore(lines);
  return lines.filter((line, at) => line._type === undefined && Number(line.fence ?? fences[at]) < Number(fences[at]));
}

/** Rows that count: those that no higher fence stands before. */
function countingRows(lines: readonly Row[]): Row[] {
  const isVoid = new Set(voidRows(lines));
  return lines.filter((line) => line._type === undefined && !isVoid.has(line));
}

/** What is wrong with a session's rows (or all its lines); empty when they are legal and every turn is closed. */
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

/** What is wrong with the fences of a session's lines: fence lines grow, and so do the fences of rows that count. */
export function fenceFaults(lines: readonly Row[]): string[] {
  const faults: string[] = [];
  const fences = lines.filter((line) => line._type === "fence").map((line) => Number(line.fence));
  for (const [index, fence] of fences.entries())
    if (fence <= (fences[index - 1] ?? 0)) faults.push(`fence line ${index} does not grow`);
  const newest = fences.at(-1) ?? 0;
  for (const [index, row] of lines.entries())
    if (Number(row.fence ?? 0) > newest) faults.push(`line ${index}: a fence that was never announced`);
  return faults;
}

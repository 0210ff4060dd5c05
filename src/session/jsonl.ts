/**
 * Reader of a session file: fed with its bytes in order, it keeps the rows, the last metadata line, the highest fence and
 * what was not usable. It opens no file and repairs nothing.
 *
 * Invariant: what it holds is a function of the bytes fed, however they were cut, and no input makes it throw.
 * Rows and metadata whose fence is below a fence line before them are a fenced-out writer's: ignored and counted.
 */
import { isUtf8 } from "node:buffer";
import { isRecord, parseRow, type Row } from "./row.js";

/** A `_type: metadata` line as it stands in the file; `createSession` repairs what is wrong in it. */
export interface MetadataLine {
  key: unknown;
  created_at: unknown;
  updated_at: unknown;
  metadata: unknown;
  last_consolidated: unknown;
  /** Rows that `/new` has put behind it. */
  cleared: unknown;
}

type Line =
  | { type: "row"; row: Row; fence: number | null }
  | { type: "metadata"; line: MetadataLine; fence: number | null }
  | { type: "fence"; fence: number }
  | { type: "bad" };

/** Above any number that a clock in µs gives for centuries; a fence beyond it is damage and must not be believed. */
const MAX_FENCE = 2 ** 52;
const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = /^\uFEFF/;
const BAD: Line = { type: "bad" };

function fenceOf(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= MAX_FENCE ? value : null;
}

function parseJson(line: Buffer): unknown {
  try {
    // Editors of some systems put a byte order mark before the first line.
    return isUtf8(line) ? JSON.parse(line.toString("utf8").replace(BYTE_ORDER_MARK, "")) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function parseLine(bytes: Buffer): Line {
  const value = parseJson(bytes);
  if (!isRecord(value)) return BAD;
  const fence = fenceOf(value.fence);
  if (value._type === "fence") return fence === null ? BAD : { type: "fence", fence };
  if (value._type === "metadata") {
    const { key, created_at, updated_at, metadata, last_consolidated, cleared } = value;
    return { type: "metadata", fence, line: { key, created_at, updated_at, metadata, last_consolidated, cleared } };
  }
  const row = value._type === undefined ? parseRow(value) : null;
  return row === null ? BAD : { type: "row", row, fence };
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

/** Takes a file's bytes, gives its rows. */
export class SessionReader {
  readonly rows: Row[] = [];
  /** Lines that are neither rows nor ours, in order, byte for byte without their newline. */
  readonly badLines: Buffer[] = [];
  /** Ids of calls that have no result yet. */
  readonly openCalls = new Set<string>();
  #metadata: MetadataLine | null = null;
  #fence = 0;
  #fencedOut = 0;
  #overhead = 0;
  #bytes = 0;
  #tail: Buffer[] = [];

  /** The last metadata line in force. */
  get metadata(): MetadataLine | null {
    return this.#metadata;
  }

  /** The highest fence of any fence line; 0 when there is none. */
  get fence(): number {
    return this.#fence;
  }

  /** Rows and metadata lines that were ignored because their writer had been fenced out. */
  get fencedOut(): number {
    return this.#fencedOut;
  }

  /** Metadata and fence lines so far. */
  get overhead(): number {
    return this.#overhead;
  }

  /** How many bytes of the file it has seen. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the last line has not ended: it may still be being written, or its writer died. */
  get hasTornTail(): boolean {
    return this.#tail.length > 0;
  }

  /** Takes the next bytes. */
  feed(chunk: Buffer): void {
    this.#bytes += chunk.length;
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const piece = chunk.subarray(start, end);
      this.#take(this.#tail.length === 0 ? piece : Buffer.concat([...this.#tail, piece]));
      this.#tail = [];
      start = end + 1;
    }
    if (start < chunk.length) this.#tail.push(Buffer.from(chunk.subarray(start)));
  }

  /**
   * For readers without a lease, at the end of the file: takes a last line that is whole although nothing ended it,
   * and forgets a torn one, which its writer may still be writing.
   */
  finish(): void {
    const line = Buffer.concat(this.#tail);
    this.#tail = [];
    if (!isBlank(line) && parseLine(line).type !== "bad") this.#take(line);
  }

  /** The file was rewritten: it is `bytes` long and holds the same rows, one metadata and one fence line. */
  rebase(bytes: number, fence: number): void {
    this.badLines.length = 0;
    this.#tail = [];
    this.#fence = fence;
    this.#fencedOut = 0;
    this.#overhead = 2;
    this.#bytes = bytes;
  }

  #take(bytes: Buffer): void {
    if (isBlank(bytes)) return;
    const line = parseLine(bytes);
    switch (line.type) {
      case "bad":
        this.badLines.push(Buffer.from(bytes));
        return;
      case "fence":
        this.#overhead += 1;
        this.#fence = Math.max(this.#fence, line.fence);
        return;
      case "metadata":
        this.#overhead += 1;
        if (this.#isFencedOut(line.fence)) this.#fencedOut += 1;
        else this.#metadata = line.line;
        return;
      case "row":
        if (this.#isFencedOut(line.fence)) this.#fencedOut += 1;
        else this.#accept(line.row);
        return;
      default:
        line satisfies never;
    }
  }

  #isFencedOut(fence: number | null): boolean {
    return fence !== null && fence < this.#fence;
  }

  #accept(row: Row): void {
    this.rows.push(row);
    if (row.role === "assistant") for (const call of row.tool_calls ?? []) this.openCalls.add(call.id);
    if (row.role === "tool" && row.tool_call_id !== undefined) this.openCalls.delete(row.tool_call_id);
  }
}

/**
 * What a call says, read strictly: from JSON, a form, or the query, each value as the Bot API takes it. It knows no method.
 * Invariant: a value of the wrong kind is refused, never guessed.
 */
import { badRequest } from "./refusal.js";

/** A file that came with a call. */
export interface Upload {
  name: string;
  bytes: Buffer;
}

export class Params {
  constructor(
    readonly all: Readonly<Record<string, unknown>>,
    readonly uploads: ReadonlyMap<string, Upload> = new Map(),
  ) {}

  has(name: string): boolean {
    return this.all[name] !== undefined && this.all[name] !== null && this.all[name] !== "";
  }

  text(name: string): string | null {
    const value = this.all[name];
    if (value === undefined || value === null) return null;
    if (typeof value !== "string") throw badRequest(`field "${name}" must be a String`);
    if (!value.isWellFormed()) throw badRequest("strings must be encoded in UTF-8");
    return value;
  }

  int(name: string): number | null {
    const value = this.all[name];
    if (value === undefined || value === null || value === "") return null;
    const number = typeof value === "string" && /^-?\d{1,16}$/.test(value) ? Number(value) : value;
    if (typeof number !== "number" || !Number.isSafeInteger(number))
      throw badRequest(`field "${name}" must be a Number`);
    return number;
  }

  flag(name: string): boolean {
    const value = this.all[name];
    return value === true || value === "true" || value === "True";
  }

  /** An object or a list; forms carry it as text. */
  json(name: string): unknown {
    const value = this.all[name];
    if (typeof value !== "string") return value ?? null;
    if (value === "") return null;
    try {
      return JSON.parse(value);
    } catch (error) {
      if (error instanceof SyntaxError) throw badRequest(`can't parse ${name} JSON object`);
      throw error;
    }
  }

  object(name: string): Record<string, unknown> | null {
    const value = this.json(name);
    if (value === null) return null;
    if (typeof value !== "object" || Array.isArray(value)) throw badRequest(`can't parse ${name}: expected an Object`);
    return value as Record<string, unknown>;
  }

  list(name: string): unknown[] | null {
    const value = this.json(name);
    if (value === null) return null;
    if (!Array.isArray(value)) throw badRequest(`can't parse ${name}: expected an Array`);
    return value;
  }

  /** A file that is sent with the call, or that is known by its id; null for none. */
  file(value: unknown): { upload: Upload } | { fileId: string } | null {
    if (typeof value !== "string" || value === "") return null;
    if (!value.startsWith("attach://")) return { fileId: value };
    const upload = this.uploads.get(value.slice("attach://".length));
    if (upload === undefined) throw badRequest("file must be non-empty");
    return { upload };
  }
}

/** Reads query and body of a request. Throws `Refusal`. */
export function readParams(query: URLSearchParams, type: string, body: Buffer): Params {
  const fromQuery = Object.fromEntries(query);
  if (body.length === 0) return new Params(fromQuery);
  if (type.startsWith("application/json")) return new Params({ ...fromQuery, ...ofJson(body) });
  if (type.startsWith("application/x-www-form-urlencoded")) {
    return new Params({ ...fromQuery, ...Object.fromEntries(new URLSearchParams(body.toString("utf8"))) });
  }
  const boundary = /boundary="?([^";]+)"?/.exec(type)?.[1];
  if (!type.startsWith("multipart/form-data") || boundary === undefined) throw badRequest("unsupported content type");
  return ofForm(fromQuery, body, boundary);
}

function ofJson(body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw badRequest("can't parse JSON object");
}

function ofForm(fromQuery: Record<string, unknown>, body: Buffer, boundary: string): Params {
  const fields: Record<string, unknown> = { ...fromQuery };
  const uploads = new Map<string, Upload>();
  for (const part of partsOf(body, `--${boundary}`)) {
    const end = part.indexOf("\r\n\r\n");
    const head = part.subarray(0, end).toString("utf8");
    const bytes = part.subarray(end + 4);
    const name = /;\s*name="([^"]*)"/i.exec(head)?.[1];
    if (end === -1 || name === undefined) throw badRequest("can't parse the form");
    const file = /;\s*filename=("?)(.*)\1\s*$/im.exec(head)?.[2];
    if (file === undefined) fields[name] = bytes.toString("utf8");
    else uploads.set(name, { name: file, bytes: Buffer.from(bytes) });
  }
  return new Params(fields, uploads);
}

function partsOf(body: Buffer, delimiter: string): Buffer[] {
  const parts: Buffer[] = [];
  let start = body.indexOf(delimiter);
  while (start !== -1) {
    const from = start + delimiter.length;
    if (body.subarray(from, from + 2).toString() === "--") return parts;
    const next = body.indexOf(`\r\n${delimiter}`, from);
    if (next === -1) break;
    parts.push(body.subarray(from + 2, next));
    start = next + 2;
  }
  throw badRequest("the form is cut off");
}

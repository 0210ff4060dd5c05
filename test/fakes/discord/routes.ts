/**
 * What a route of the fake's REST side is, and how a request finds its own. It answers nothing. Invariant: routes are
 * tried in the order of the table, so that what is written out (`@me`) wins over what is a parameter.
 */
import { Refusal } from "./refusal.js";
import type { World } from "./world.js";

export interface UploadedFile {
  /** Its part of the form: `files[0]`. */
  field: string;
  filename: string;
  contentType: string | null;
  bytes: Buffer;
}

/** A request that has been let in. */
export interface Call {
  world: World;
  /** Where the fake is, for URLs of files. */
  origin: string;
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  body: Record<string, unknown>;
  /** The body as it came: a list, for commands. */
  raw: unknown;
  files: readonly UploadedFile[];
  settings: RestSettings;
}

export interface RestSettings {
  /** Within this time a nonce is known. */
  nonceMs: number;
  /** Within this time an interaction must be answered. */
  interactionMs: number;
  /** So long its token is good. */
  interactionTokenMs: number;
  maxFileBytes: number;
  /** What `applications/@me` says of the switches in the developer portal. */
  applicationFlags: number;
  /** What GET /gateway/bot answers. */
  gatewayBot: () => unknown;
}

export interface Reply {
  status: 200 | 201 | 204;
  body?: unknown;
}

export interface Route {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  /** Needs no bot token: the path has its own. */
  isOpen?: true;
  run: (call: Call) => Reply;
}

export const ok = (body: unknown): Reply => ({ status: 200, body });
export const done: Reply = { status: 204 };

/** The path parameters when the path fits; null when it does not. */
export function match(route: Route, method: string, pathname: string): Record<string, string> | null {
  if (route.method !== method) return null;
  const [wanted, given] = [route.path.split("/"), pathname.split("/")];
  if (wanted.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [at, step] of wanted.entries()) {
    const value = decodeURIComponent(given[at] ?? "");
    if (step.startsWith(":")) params[step.slice(1)] = value;
    else if (step !== value) return null;
  }
  return params;
}

/** What limits are counted for besides the route: the channel, guild or webhook in the path. */
export function majorOf(params: Readonly<Record<string, string>>): string {
  return params.channel ?? params.guild ?? params.token ?? "";
}

/** A parameter that the path surely has. */
export function param(call: Call, name: string): string {
  const value = call.params[name];
  if (value === undefined) throw new Error(`the route has no ${name}`);
  if (/^(?:channel|message|guild|user)$/.test(name) && !/^\d{1,20}$/.test(value))
    throw new Refusal(50035, [snowflakeFault(name)]);
  return value;
}

function snowflakeFault(name: string) {
  return { field: `${name}_id`, code: "NUMBER_TYPE_COERCE", message: "Value is not snowflake." };
}

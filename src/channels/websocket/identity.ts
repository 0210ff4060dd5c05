/**
 * Who a connection is: the owner, a named client, or nobody we let in; pure but for the random name of the nameless. It
 * reads no header that a proxy adds as a reason to trust. Invariant: identities carry a prefix, so no `client_id` can
 * equal the owner, and a page of another origin is never let in. [CH-54, CH-55, CH-57]
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { CLOSE } from "./wire.js";

/** The identity that sees every chat. */
export const OWNER = "owner";

/** Who is on the other end. */
export interface Visitor {
  /** `owner`, `client:<id>` or `anon:<id>`. */
  identity: string;
  isOwner: boolean;
  /** What the client calls itself, or the name it was given; told back in `ready`. */
  clientId: string;
}

export type Admission = { ok: true; visitor: Visitor } | { ok: false; code: 4401 | 4403; reason: string };

/** The parts of an upgrade request that decide. */
export interface Knock {
  url: string;
  headers: IncomingHttpHeaders;
  remoteAddress: string | undefined;
}

/** Decides about a connection. `token` is the gateway's, null when none is configured. */
export function admit(knock: Knock, token: string | null): Admission {
  const { origin, host } = knock.headers;
  if (origin !== undefined && !isSameOrigin(origin, host, token === null)) {
    return { ok: false, code: CLOSE.forbidden, reason: "this origin is not allowed" };
  }
  const query = new URLSearchParams(knock.url.split("?").slice(1).join("?"));
  const given = query.get("token") || bearerOf(knock.headers.authorization);
  const named = query.get("client_id")?.slice(0, 128) || null;
  const clientId = named ?? `anon-${randomBytes(6).toString("hex")}`;
  if (token !== null) {
    if (given === null || !isEqual(given, token)) return unauthorized("wrong or missing token");
    return { ok: true, visitor: { identity: OWNER, isOwner: true, clientId } };
  }
  if (given !== null) return unauthorized("this gateway has no such token");
  if (!isDirectLoopback(knock)) return unauthorized("a token is needed from other machines");
  // Only our own page has an origin here and passes the check above; it names no client.
  if (named === null && origin !== undefined)
    return { ok: true, visitor: { identity: OWNER, isOwner: true, clientId } };
  return {
    ok: true,
    visitor: { identity: named === null ? `anon:${clientId}` : `client:${named}`, isOwner: false, clientId },
  };
}

function unauthorized(reason: string): Admission {
  return { ok: false, code: CLOSE.unauthorized, reason };
}

function bearerOf(authorization: string | undefined): string | null {
  return /^Bearer\s+(\S+)$/i.exec(authorization ?? "")?.[1] ?? null;
}

/** Digests have one length, so the comparison tells neither content nor length. */
function isEqual(given: string, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

/**
 * Without a token the host must be a loopback name as well: a foreign name that resolves to this machine would
 * otherwise match itself.
 */
function isSameOrigin(origin: string, host: string | undefined, loopbackOnly: boolean): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const page = new URL(origin);
  const served = `${page.protocol}//${host}`;
  if (!URL.canParse(served) || new URL(served).host !== page.host) return false;
  return !loopbackOnly || isLoopbackName(page.hostname);
}

function isLoopbackName(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** A request that a proxy passed on is not local, wherever the proxy runs. */
function isDirectLoopback({ remoteAddress, headers }: Knock): boolean {
  if (headers.forwarded !== undefined || headers["x-forwarded-for"] !== undefined) return false;
  return remoteAddress !== undefined && /^(::1|(::ffff:)?127(\.\d{1,3}){3})$/.test(remoteAddress);
}

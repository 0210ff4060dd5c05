/**
 * Who a connection is: the owner, a named client, the client of a one-time token, or nobody we let in; pure but for the
 * random name of the nameless, and it redeems no token itself. It reads no header that a proxy adds as a reason to trust.
 * Invariant: identities carry a prefix, so no `client_id` can equal the owner, and a page of another origin is never let
 * in. [CH-54, CH-55, CH-57]
 */
import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { bearerOf, isSameSecret } from "./credentials.js";
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

/** A token that may be a one-time token, and the client that presented it, if it named one. */
export interface Presented {
  token: string;
  named: string | null;
}

/** What can be told from the request alone; where that is not enough, `byToken` goes on. */
export type Judgement = Admission | ({ ok: "redeem" } & Presented);

/** The parts of an upgrade request that decide. */
export interface Knock {
  url: string;
  headers: IncomingHttpHeaders;
  remoteAddress: string | undefined;
}

/** Decides about a connection. `token` is the gateway's, null when none is configured. */
export function admit(knock: Knock, token: string | null): Judgement {
  const { origin, host } = knock.headers;
  if (origin !== undefined && !isSameOrigin(origin, host, token === null)) {
    return { ok: false, code: CLOSE.forbidden, reason: "this origin is not allowed" };
  }
  const query = new URLSearchParams(knock.url.split("?").slice(1).join("?"));
  const given = query.get("token") || bearerOf(knock.headers.authorization);
  const whole = query.get("client_id") || null;
  const named = whole?.slice(0, 128) ?? null;
  const clientId = named ?? `anon-${randomBytes(6).toString("hex")}`;
  if (token !== null) {
    if (given === null) return unauthorized("a token is needed");
    if (!isSameSecret(given, token)) return { ok: "redeem", token: given, named: whole };
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

/** The visitor of a redeemed token. `issuedTo`: the client it was issued for, null when there is no such token. */
export function byToken(issuedTo: string | null, named: string | null): Admission {
  if (issuedTo === null) return unauthorized("wrong, used or expired token");
  if (named !== null && named !== issuedTo) return unauthorized("this token is another client's");
  return { ok: true, visitor: { identity: `client:${issuedTo}`, isOwner: false, clientId: issuedTo } };
}

function unauthorized(reason: string): Admission {
  return { ok: false, code: CLOSE.unauthorized, reason };
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

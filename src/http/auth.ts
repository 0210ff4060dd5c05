/**
 * `POST /auth/token`: a one-time WebSocket token for a client, given to whoever holds the gateway's token. It keeps no
 * token and lets nobody in. Invariant: nothing of the request but its header is looked at before the gateway's token was
 * found right.
 */
import rateLimit from "@fastify/rate-limit";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { bearerOf, isSameSecret } from "../channels/websocket/credentials.js";
import type { OneTimeTokens } from "../channels/websocket/ports.js";
import { hasCode, NanogateError } from "../errors.js";

export interface AuthRoute {
  /** The gateway's token; null when none is configured. */
  token: string | null;
  /** Throws `BUS_UNAVAILABLE` and `BUS_OVERLOADED`. */
  issue: OneTimeTokens["issue"];
  /** Requests from one address in a minute, right or wrong. */
  maxPerMinute: number;
}

/** A service that hands tokens to its users comes from one address; who guesses does not get far with it. */
export const MAX_TOKEN_REQUESTS_PER_MINUTE = 1_200;

/** Issues from what may not be there yet while a start waits for Redis. */
export function issuerOf(find: () => { tokens: Pick<OneTimeTokens, "issue"> } | null): OneTimeTokens["issue"] {
  return async (clientId) => {
    const found = find();
    if (found === null) throw new NanogateError("BUS_UNAVAILABLE", "Redis has not been reached yet.");
    return found.tokens.issue(clientId);
  };
}

/** What was refused, as clients see it; the fields are those of a soft error on the socket. */
class Refusal extends Error {
  constructor(
    readonly statusCode: number,
    readonly code: string,
    detail: string,
    readonly headers: Record<string, string> = {},
  ) {
    super(detail);
  }
}

const bodyShape = z.object({
  client_id: z
    .string()
    .min(1)
    .max(128)
    .refine((id) => id.isWellFormed() && id.trim() !== "" && !/\p{Cc}/u.test(id)),
});

/** Adds the route. */
export async function addAuthRoute(app: FastifyInstance, auth: AuthRoute): Promise<void> {
  const { issue, maxPerMinute } = auth;
  await app.register(rateLimit, { global: false });
  const errorResponseBuilder = (_request: FastifyRequest, { ttl }: { ttl: number }) =>
    new Refusal(429, "rate_limited", "Too many requests from this address.", retryAfter(ttl));
  app.post("/auth/token", {
    bodyLimit: 4_096,
    config: { rateLimit: { max: maxPerMinute, timeWindow: 60_000, errorResponseBuilder } },
    // After the limit, and before the body is read.
    preParsing: async (request, reply, body) => {
      reply.header("cache-control", "no-store");
      assertMayIssue(request, auth.token);
      return body;
    },
    errorHandler,
    handler: async ({ body }) => {
      const read = bodyShape.safeParse(body);
      if (!read.success)
        throw new Refusal(
          400,
          "bad_request",
          'Expected {"client_id": …} with 1 to 128 characters, none of them control characters.',
        );
      const issued = await issue(read.data.client_id);
      if (!issued.ok)
        throw new Refusal(429, "too_many_tokens", "Too many tokens wait to be used.", retryAfter(issued.retryAfterMs));
      return { token: issued.token, client_id: read.data.client_id, expires_in: Math.floor(issued.ttlMs / 1000) };
    },
  });
}

function assertMayIssue({ headers }: FastifyRequest, token: string | null): void {
  if (token === null)
    throw new Refusal(
      403,
      "no_gateway_token",
      "This gateway has no token, so it gives none; set NANOGATE_TOKEN or gateway.token.",
    );
  const given = bearerOf(headers.authorization);
  if (given === null || !isSameSecret(given, token))
    throw new Refusal(401, "unauthorized", "The gateway's token is needed: Authorization: Bearer TOKEN.", {
      "www-authenticate": "Bearer",
    });
}

function retryAfter(ms: number): Record<string, string> {
  return { "retry-after": String(Math.max(1, Math.ceil(ms / 1000))) };
}

function errorHandler(error: FastifyError | Refusal, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { statusCode, code, message, headers } = refusalOf(error);
  if (statusCode >= 500) request.log.error({ err: error }, "a token could not be issued");
  return reply.code(statusCode).headers(headers).send({ code, detail: message });
}

function refusalOf(error: FastifyError | Refusal): Refusal {
  if (error instanceof Refusal) return error;
  if (hasCode(error, "BUS_UNAVAILABLE") || hasCode(error, "BUS_OVERLOADED"))
    return new Refusal(503, "unavailable", "Redis cannot take it now; try again.", retryAfter(0));
  const { statusCode = 500 } = error;
  if (statusCode >= 400 && statusCode < 500) return new Refusal(statusCode, "bad_request", error.message);
  return new Refusal(500, "internal", "The gateway failed; its log has the reason.");
}

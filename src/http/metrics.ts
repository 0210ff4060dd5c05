/**
 * `GET /metrics`: the numbers of this process as Prometheus reads them. It measures nothing. Invariant: where a token is
 * set nobody reads them without it, since names of accounts and how busy they are concern nobody else.
 */
import type { FastifyInstance } from "fastify";
import { bearerOf, isSameSecret } from "../channels/websocket/credentials.js";

export interface MetricsRoute {
  contentType: string;
  text: () => Promise<string>;
  /** The gateway's token; null when none is configured. */
  token: string | null;
}

/** Adds the route. */
export function addMetricsRoute(app: FastifyInstance, { contentType, text, token }: MetricsRoute): void {
  app.get("/metrics", async (request, reply) => {
    reply.header("cache-control", "no-store");
    const given = bearerOf(request.headers.authorization);
    if (token !== null && (given === null || !isSameSecret(given, token))) {
      reply.code(401).header("www-authenticate", "Bearer");
      return { error: "The gateway's token is needed: Authorization: Bearer TOKEN." };
    }
    return reply.type(contentType).send(await text());
  });
}

/**
 * `GET /metrics`: the numbers of this process as Prometheus reads them. It measures nothing. Invariant: where a token is
 * set nobody reads them without it, since names of accounts and how busy they are concern nobody else.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance } from "fastify";

export interface MetricsRoute {
  contentType: string;
  text: () => Promise<string>;
  /** The gateway's token; null when none is configured. */
  token: string | null;
}

/** Digests have one length, so the comparison tells neither content nor length. */
function isEqual(given: string, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

/** Adds the route. */
export function addMetricsRoute(app: FastifyInstance, { contentType, text, token }: MetricsRoute): void {
  app.get("/metrics", async (request, reply) => {
    reply.header("cache-control", "no-store");
    const given = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
    if (token !== null && !isEqual(given, token)) {
      reply.code(401).header("www-authenticate", "Bearer");
      return { error: "The gateway's token is needed: Authorization: Bearer TOKEN." };
    }
    return reply.type(contentType).send(await text());
  });
}

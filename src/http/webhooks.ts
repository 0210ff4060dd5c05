/**
 * The door for platforms that bring their updates: `POST /<channel>/webhook`. It reads no update and checks no secret, that
 * is the channel's business. Invariant: a status of success leaves only after the channel has said so.
 */
import type { FastifyInstance } from "fastify";

/** What a platform brings. */
export interface WebhookCall {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** As it came; may be anything. */
  body: string;
}

/** Takes an update in; the HTTP status to answer with. */
export type WebhookHandler = (call: WebhookCall) => Promise<number>;

/** `handlerOf` gives the handler of a channel that is served this way; null for all others. */
export async function addWebhookRoute(
  app: FastifyInstance,
  handlerOf: (channel: string) => WebhookHandler | null,
): Promise<void> {
  await app.register(async (scope) => {
    // In a scope of its own: here alone a body that is no JSON is taken.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
    scope.post<{ Params: { channel: string } }>("/:channel/webhook", async (request, reply) => {
      const handler = handlerOf(request.params.channel);
      if (handler === null) return reply.callNotFound();
      const body = typeof request.body === "string" ? request.body : "";
      return reply.code(await handler({ headers: request.headers, body })).send();
    });
  });
}

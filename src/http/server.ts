/**
 * The HTTP server: one port for health, metrics, the page and upgrades. It decides nothing about who may connect: that is the
 * business of whoever takes the upgrade. Invariant: `close` returns within its limit, and no connection outlives it.
 */
import type { IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { NanogateError } from "../errors.js";
import type { Logger } from "../logger.js";
import { type AuthRoute, addAuthRoute } from "./auth.js";
import { addHealthRoutes, type Problem } from "./health.js";
import { addMetricsRoute, type MetricsRoute } from "./metrics.js";
import { addPageRoutes, type PageInfo } from "./page.js";
import { addWebhookRoute, type WebhookHandler } from "./webhooks.js";

export interface HttpOptions {
  host: string;
  /** 0 for any free port. */
  port: number;
  role: string;
  version: string;
  logger: Logger;
  readiness: () => Promise<Problem[]>;
  /** Null for a server that only tries a port. */
  metrics: MetricsRoute | null;
  /** What is served beside health; null for a process that serves nothing else. */
  client: {
    upgrade: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | null;
    page: PageInfo;
    auth: AuthRoute;
    webhook: (channel: string) => WebhookHandler | null;
  } | null;
}

export interface HttpServer {
  /** Starts listening; the port that was taken. Throws `PORT_TAKEN`. */
  listen(): Promise<{ port: number }>;
  /** Takes no new connection, lets answers end, then ends what is left. Idempotent. */
  close(limitMs: number): Promise<void>;
}

/** Paths on which an upgrade is taken; a trailing slash means the same. */
const UPGRADE_PATHS = new Set(["", "/ws"]);
const READINESS_LIMIT_MS = 5_000;

/** Builds the server; it listens only when told to. */
export async function createHttpServer(options: HttpOptions): Promise<HttpServer> {
  const { role, version, readiness, client } = options;
  const loggerInstance: FastifyBaseLogger = options.logger;
  // Health checks would fill the log.
  const logController = new LogController({ disableRequestLogging: true });
  const app = fastify({ loggerInstance, logController, trustProxy: false, bodyLimit: 1_048_576 });
  addHealthRoutes(app, { role, version, readiness, readinessLimitMs: READINESS_LIMIT_MS });
  if (options.metrics !== null) addMetricsRoute(app, options.metrics);
  if (client !== null) {
    await addPageRoutes(app, client.page);
    await addAuthRoute(app, client.auth);
    await addWebhookRoute(app, client.webhook);
  }
  const sockets = trackSockets(app);
  app.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const path = (request.url ?? "/").split("?")[0]?.replace(/\/$/, "") ?? "";
    if (client?.upgrade && UPGRADE_PATHS.has(path)) client.upgrade(request, socket, head);
    else refuseUpgrade(socket);
  });
  let closed: Promise<void> | null = null;
  return {
    listen: () => listen(app, options),
    close: (limitMs) => {
      closed ??= close(app, sockets, limitMs);
      return closed;
    },
  };
}

async function listen(app: FastifyInstance, { host, port }: HttpOptions): Promise<{ port: number }> {
  try {
    await app.listen({ host, port, listenTextResolver: (address) => `listening at ${address}` });
  } catch (error) {
    throw readableListenError(error, { host, port });
  }
  const address: AddressInfo | string | null = app.server.address();
  return { port: address !== null && typeof address === "object" ? address.port : port };
}

function readableListenError(error: unknown, { host, port }: { host: string; port: number }): unknown {
  const code = error instanceof Error && "code" in error ? error.code : null;
  const cause = { cause: error };
  if (code === "EADDRINUSE") {
    return new NanogateError("PORT_TAKEN", `Port ${port} on ${host} is taken by another program.`, cause);
  }
  if (code === "EACCES") return new NanogateError("PORT_TAKEN", `Port ${port} may not be used by this user.`, cause);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return new NanogateError("CONFIG_INVALID", `gateway.host: ${host} is not an address of this machine.`, cause);
  }
  return error;
}

/** Upgraded connections no longer belong to the HTTP server, so it would wait for them for ever. */
function trackSockets(app: FastifyInstance): Set<Socket> {
  const sockets = new Set<Socket>();
  app.server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return sockets;
}

async function close(app: FastifyInstance, sockets: Set<Socket>, limitMs: number): Promise<void> {
  const limit = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, limitMs);
  app.server.closeIdleConnections();
  await app.close();
  clearTimeout(limit);
}

function refuseUpgrade(socket: Duplex): void {
  socket.on("error", () => socket.destroy());
  socket.end("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
}

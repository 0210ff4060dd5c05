/**
 * The WebSocket channel: takes upgrades, lets visitors in, keeps connections alive, ends them. The HTTP server hands the
 * upgrades over; answers come from the chats' event logs. Invariant: whoever is not let in learns why by a close code
 * after the upgrade, and after `stop` no connection is left.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { Logger } from "../../logger.js";
import type { Channel, ChannelContext, ChannelHealth } from "../channel.js";
import { Connection, type ConnectionLimits } from "./connection.js";
import { Feeds } from "./feeds.js";
import { admit } from "./identity.js";
import type { ChatLog } from "./ports.js";
import { CLOSE, WEBSOCKET } from "./wire.js";

export interface WebSocketLimits extends ConnectionLimits {
  /** Longest frame; a longer one closes the connection with 1009. */
  maxFrameBytes: number;
  /** Between two pings; a connection that missed two is dead. */
  pingMs: number;
  /** Before a chat log is read again after a failure. */
  retryMs: number;
}

/** Limits of a real gateway. */
export const WEBSOCKET_LIMITS: Readonly<WebSocketLimits> = {
  maxFrameBytes: 1_048_576,
  maxBufferedBytes: 4_194_304,
  maxChats: 256,
  maxWaitingFrames: 64,
  closeGraceMs: 2_000,
  pingMs: 20_000,
  retryMs: 500,
};

export interface WebSocketDeps {
  log: ChatLog;
  /** The gateway's token; null when none is configured. */
  token: string | null;
  /** Whether answers are shown while they are made. */
  isStreaming: boolean;
  limits: WebSocketLimits;
}

/** The channel, and the door through which upgrades reach it. */
export interface WebSocketChannel extends Channel {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

interface Running {
  context: ChannelContext;
  feeds: Feeds;
  connections: Map<WebSocket, Connection>;
  heartbeat: NodeJS.Timeout;
}

/** Makes the channel; it listens nowhere by itself. */
export function createWebSocketChannel(deps: WebSocketDeps): WebSocketChannel {
  return new WebSocketHub(deps);
}

class WebSocketHub implements WebSocketChannel {
  readonly name = WEBSOCKET;
  readonly #deps: WebSocketDeps;
  readonly #server: WebSocketServer;
  readonly #missed = new WeakMap<WebSocket, number>();
  #running: Running | null = null;
  #state: "starting" | "running" | "stopped" = "starting";

  constructor(deps: WebSocketDeps) {
    this.#deps = deps;
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: deps.limits.maxFrameBytes,
      perMessageDeflate: false,
    });
  }

  async start(context: ChannelContext): Promise<void> {
    if (this.#running !== null) return;
    const { log, limits } = this.#deps;
    const feeds = new Feeds({ log, account: WEBSOCKET, logger: context.logger, retryMs: limits.retryMs });
    const heartbeat = setInterval(() => this.#beat(), limits.pingMs);
    heartbeat.unref();
    this.#running = { context, feeds, connections: new Map(), heartbeat };
    this.#state = "running";
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = null;
    this.#state = "stopped";
    if (running === null) return;
    clearInterval(running.heartbeat);
    await Promise.all([...running.connections].map(([socket, connection]) => this.#end(socket, connection)));
    await running.feeds.close();
  }

  health(): ChannelHealth {
    return { state: this.#state };
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#server.handleUpgrade(request, socket, head, (client) => this.#letIn(client, request));
  }

  #letIn(client: WebSocket, request: IncomingMessage): void {
    const running = this.#running;
    if (running === null) {
      this.#turnAway(client, CLOSE.restarting, "restarting", null);
      return;
    }
    const { url = "/", headers, socket } = request;
    const admission = admit({ url, headers, remoteAddress: socket.remoteAddress }, this.#deps.token);
    if (!admission.ok) {
      this.#turnAway(client, admission.code, admission.reason, running.context.logger);
      return;
    }
    const { context, feeds, connections } = running;
    const { visitor } = admission;
    const { log, isStreaming, limits } = this.#deps;
    const connection = new Connection({ socket: client, visitor, feeds, log, context, isStreaming, limits });
    connections.set(client, connection);
    client.on("pong", () => this.#missed.set(client, 0));
    client.on("error", (error) => context.logger.debug({ err: error, identity: visitor.identity }, "connection error"));
    client.on("close", () => connections.delete(client));
    connection.open();
  }

  /** Nothing that a stranger sends is read. */
  #turnAway(client: WebSocket, code: number, reason: string, logger: Logger | null): void {
    client.on("error", (error) => logger?.debug({ err: error }, "connection error"));
    client.close(code, reason);
    const grace = setTimeout(() => client.terminate(), this.#deps.limits.closeGraceMs);
    client.once("close", () => clearTimeout(grace));
    logger?.info({ code, reason }, "a connection was refused");
  }

  async #end(socket: WebSocket, connection: Connection): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      if (socket.readyState === socket.CLOSED) resolve();
      else socket.once("close", () => resolve());
    });
    await connection.end(CLOSE.restarting, "restarting");
    await closed;
  }

  /** A paused socket cannot answer: that it waits is our doing. */
  #beat(): void {
    for (const client of this.#running?.connections.keys() ?? []) {
      const missed = this.#missed.get(client) ?? 0;
      if (client.isPaused) continue;
      if (missed >= 2) {
        client.terminate();
        continue;
      }
      this.#missed.set(client, missed + 1);
      if (client.readyState === client.OPEN) client.ping();
    }
  }
}

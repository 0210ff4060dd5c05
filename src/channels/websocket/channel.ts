/**
 * The WebSocket channel: takes upgrades, lets visitors in, keeps connections alive, ends them. The HTTP server hands the
 * upgrades over; answers come from the chats' event logs. Invariants: nothing is read before it is known who sends;
 * whoever is not let in learns why by a close code after the upgrade; after `stop` no connection is left.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { Logger } from "../../logger.js";
import type { Channel, ChannelContext, ChannelHealth } from "../channel.js";
import { Connection, type ConnectionLimits } from "./connection.js";
import { Crowd } from "./crowd.js";
import { Feeds } from "./feeds.js";
import { type Admission, admit, byToken, type Presented, type Visitor } from "./identity.js";
import type { ChatLog, OneTimeTokens } from "./ports.js";
import { CLOSE, WEBSOCKET } from "./wire.js";

export interface WebSocketLimits extends ConnectionLimits {
  /** Longest frame; a longer one closes the connection with 1009. */
  maxFrameBytes: number;
  /** Connections of this process; one more is closed with 1013. */
  maxConnections: number;
  /** Connections of one client that came by a one-time token; elsewhere names are free, so a bound on them bounds nobody. */
  maxPerClient: number;
  /** Between two pings; a connection that missed two is dead. */
  pingMs: number;
  /** Before a chat log is read again after a failure. */
  retryMs: number;
}

/** Limits of a real gateway. */
export const WEBSOCKET_LIMITS: Readonly<WebSocketLimits> = {
  maxFrameBytes: 1_048_576,
  maxConnections: 10_000,
  maxPerClient: 100,
  maxBufferedBytes: 4_194_304,
  maxChats: 256,
  maxWaitingFrames: 64,
  // A client that comes back attaches to all its chats and repeats what was not accepted, at once.
  burstFrames: 1_000,
  framesPerSecond: 50,
  maxRefusedFrames: 500,
  closeGraceMs: 2_000,
  pingMs: 20_000,
  retryMs: 500,
};

export interface WebSocketDeps {
  log: ChatLog;
  tokens: Pick<OneTimeTokens, "redeem">;
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
  /** Null for one whose token is being looked up. */
  connections: Map<WebSocket, Connection | null>;
  /** Those that came by a one-time token. */
  crowd: Crowd;
  heartbeat: NodeJS.Timeout;
}

/** Nobody can say now who it is. */
interface Busy {
  ok: false;
  code: typeof CLOSE.overloaded;
  reason: string;
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
      // A connection checks by itself, so that such a frame is refused and not the whole connection.
      skipUTF8Validation: true,
    });
  }

  async start(context: ChannelContext): Promise<void> {
    if (this.#running !== null) return;
    const { log, limits } = this.#deps;
    const feeds = new Feeds({ log, account: WEBSOCKET, logger: context.logger, retryMs: limits.retryMs });
    const heartbeat = setInterval(() => this.#beat(), limits.pingMs);
    heartbeat.unref();
    this.#running = { context, feeds, connections: new Map(), crowd: new Crowd(), heartbeat };
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
    client.on("error", (error) => running?.context.logger.debug({ err: error }, "connection error"));
    if (running === null) {
      this.#turnAway(client, CLOSE.restarting, "restarting");
      return;
    }
    const { url = "/", headers, socket } = request;
    const judged = admit({ url, headers, remoteAddress: socket.remoteAddress }, this.#deps.token);
    const { connections } = running;
    if (judged.ok === false) {
      this.#turnAway(client, judged.code, judged.reason);
    } else if (connections.size >= this.#deps.limits.maxConnections) {
      this.#turnAway(client, CLOSE.overloaded, "too many connections");
    } else {
      connections.set(client, null);
      client.on("close", () => connections.delete(client));
      if (judged.ok === true) this.#welcome(client, judged.visitor, running);
      else void this.#letInByToken(client, judged, running);
    }
  }

  async #letInByToken(client: WebSocket, { token, named }: Presented, running: Running): Promise<void> {
    const { context, crowd } = running;
    // What it sends meanwhile stays in the network.
    client.pause();
    const admission = await this.#redeem(token, named, context.logger);
    client.resume();
    // It has gone, or the channel was stopped, which has ended it.
    if (client.readyState !== client.OPEN) return;
    if (!admission.ok) {
      this.#turnAway(client, admission.code, admission.reason);
      return;
    }
    const { identity } = admission.visitor;
    if (crowd.enter(identity, this.#deps.limits.maxPerClient)) {
      client.on("close", () => crowd.leave(identity));
      this.#welcome(client, admission.visitor, running);
    } else this.#turnAway(client, CLOSE.overloaded, "too many connections of this client");
  }

  async #redeem(token: string, named: string | null, logger: Logger): Promise<Admission | Busy> {
    try {
      return byToken(await this.#deps.tokens.redeem(token), named);
    } catch (error) {
      logger.warn({ err: error }, "a one-time token could not be looked up");
      return { ok: false, code: CLOSE.overloaded, reason: "the token could not be looked up" };
    }
  }

  #welcome(client: WebSocket, visitor: Visitor, { context, feeds, connections }: Running): void {
    const { log, isStreaming, limits } = this.#deps;
    const connection = new Connection({ socket: client, visitor, feeds, log, context, isStreaming, limits });
    connections.set(client, connection);
    client.on("pong", () => this.#missed.set(client, 0));
    connection.open();
  }

  /** Nothing that a stranger sends is read. */
  #turnAway(client: WebSocket, code: number, reason: string): void {
    client.close(code, reason);
    const grace = setTimeout(() => client.terminate(), this.#deps.limits.closeGraceMs);
    client.once("close", () => clearTimeout(grace));
    this.#running?.context.logger.info({ code, reason }, "a connection was refused");
  }

  async #end(socket: WebSocket, connection: Connection | null): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      if (socket.readyState === socket.CLOSED) resolve();
      else socket.once("close", () => resolve());
    });
    if (connection === null) this.#turnAway(socket, CLOSE.restarting, "restarting");
    else await connection.end(CLOSE.restarting, "restarting");
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

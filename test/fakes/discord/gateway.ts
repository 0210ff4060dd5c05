/**
 * The gateway of the fake Discord: who may connect, its sessions, the budget of identifies, and the faults a test orders.
 * It changes nothing in the world. Invariant: an event reaches each session once, in order, or waits there to be replayed.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { type ConnectionHost, GatewayConnection, type Json, Op } from "./gateway-connection.js";
import { GatewaySession } from "./gateway-session.js";
import type { WorldEvent } from "./model.js";
import { guildCreateWire, userWire } from "./wire.js";
import type { World } from "./world.js";

export interface GatewaySettings {
  heartbeatMs: number;
  /** Least time between two identifies. */
  identifyEveryMs: number;
  /** Identifies a day. */
  identifyBudget: number;
  /** So long a session without a connection can be resumed. */
  resumeWithinMs: number;
  /** Whether the message content switch in the developer portal is on. */
  mayReadContent: boolean;
}

export interface GatewayDeps {
  world: World;
  settings: GatewaySettings;
  token: () => string | null;
  /** The bot has burnt its budget: its token is reset. */
  onBurnt: () => void;
  origin: () => string;
}

/** All intents there are in version 10. */
const KNOWN_INTENTS = 0b11_0011_0001_1111_1111_1111_1111;
const MEMBERS_AND_PRESENCES = (1 << 1) | (1 << 8);
const MESSAGE_CONTENT = 1 << 15;
const PATHS = ["/gateway", "/resume"];

export class Gateway implements ConnectionHost {
  readonly #deps: GatewayDeps;
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #connections = new Set<GatewayConnection>();
  readonly #sessions = new Map<string, GatewaySession>();
  readonly #watchers = new Set<() => void>();
  #refusals = 0;
  #lastIdentifyMs = Number.NEGATIVE_INFINITY;
  #ignoredResumes = 0;
  isAcking = true;
  isDeaf = false;
  /** When each identify came, ms of `performance.now`. */
  readonly identifies: number[] = [];
  /** Identifies that came too early after the one before. */
  readonly hasty: number[] = [];
  /** Close code with which every identify is answered; null: none. */
  refuseIdentifyWith: number | null = null;
  readonly counts = { connects: 0, resumes: 0, resumed: 0, heartbeats: 0 };

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
    deps.world.listen((event) => this.#spread(event));
  }

  get heartbeatMs(): number {
    return this.#deps.settings.heartbeatMs;
  }

  /** Connections that are identified or resumed. */
  get connected(): number {
    return [...this.#connections].filter(({ session }) => session !== null).length;
  }

  /** What GET /gateway/bot answers. */
  about(): unknown {
    const { settings, origin } = this.#deps;
    const remaining = Math.max(0, settings.identifyBudget - this.identifies.length);
    const limit = { total: settings.identifyBudget, remaining, reset_after: 86_400_000, max_concurrency: 1 };
    return { url: origin().replace("http", "ws") + PATHS[0], shards: 1, session_start_limit: limit };
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = new URL(request.url ?? "/", this.#deps.origin());
    this.counts.connects += 1;
    this.#changed();
    if (this.#refusals > 0 || !PATHS.includes(url.pathname)) {
      this.#refusals = Math.max(0, this.#refusals - 1);
      socket.end("HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (opened) => this.#open(opened, url.searchParams));
  }

  #open(socket: WebSocket, query: URLSearchParams): void {
    const connection = new GatewayConnection(socket, this);
    this.#connections.add(connection);
    if (query.get("v") !== "10") connection.close(4012);
    else if (query.get("encoding") !== "json" || query.has("compress")) connection.close(4002);
  }

  // ---- What a test orders.

  /** Closes every connection with this code; the sessions can be resumed unless the code says otherwise. */
  kick(code: number): void {
    for (const connection of this.#connections) connection.close(code);
  }

  /** Every line is cut. */
  cut(): void {
    for (const connection of this.#connections) connection.cut();
  }

  /** Asks every connection to come again (opcode 7). */
  askReconnect(): void {
    for (const connection of this.#connections) connection.tell(Op.reconnect, null);
  }

  /** Tells every connection that its session is invalid (opcode 9). */
  invalidate(isResumable: boolean): void {
    for (const connection of [...this.#connections]) {
      if (!isResumable) this.#forget(connection);
      if (connection.session !== null) connection.session.outlet = null;
      connection.session = null;
      connection.tell(Op.invalidSession, isResumable);
    }
  }

  /** No session can be resumed any more. */
  forgetSessions(): void {
    for (const session of this.#sessions.values()) session.isGood = false;
  }

  /** The next so many connects get 503. */
  refuseConnects(count: number): void {
    this.#refusals = count;
  }

  /** The next so many resumes get no answer at all. */
  ignoreResumes(count: number): void {
    this.#ignoredResumes = count;
  }

  /** Calls `watcher` after each change, until the returned function is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  close(): void {
    for (const connection of this.#connections) connection.cut();
    this.#server.close();
  }

  // ---- What connections ask.

  identify(d: Json, connection: GatewayConnection): number | null {
    const { settings, world, token } = this.#deps;
    const now = performance.now();
    const isHasty = now - this.#lastIdentifyMs < settings.identifyEveryMs;
    this.identifies.push(now);
    this.#lastIdentifyMs = now;
    this.#changed();
    if (this.identifies.length > settings.identifyBudget) {
      this.#deps.onBurnt();
      return 4004;
    }
    if (d.token !== token()) return 4004;
    if (this.refuseIdentifyWith !== null) return this.refuseIdentifyWith;
    const refusal = this.#judgeIntents(d.intents);
    if (refusal !== null) return refusal;
    if (isHasty) {
      this.hasty.push(now);
      connection.tell(Op.invalidSession, false);
      return null;
    }
    const session = new GatewaySession(`s${world.ids.next()}`, Number(d.intents), world.bot);
    this.#sessions.set(session.id, session);
    connection.isCompressed = d.compress === true;
    this.#join(session, connection);
    this.#welcome(session);
    return null;
  }

  #judgeIntents(intents: unknown): number | null {
    if (typeof intents !== "number" || (intents & ~KNOWN_INTENTS) !== 0) return 4013;
    const isContentAllowed = this.#deps.settings.mayReadContent || (intents & MESSAGE_CONTENT) === 0;
    return (intents & MEMBERS_AND_PRESENCES) !== 0 || !isContentAllowed ? 4014 : null;
  }

  #welcome(session: GatewaySession): void {
    const { world, origin } = this.#deps;
    const guilds = [...world.guilds.values()];
    session.push("READY", {
      v: 10,
      user: { ...userWire(world.bot), verified: true, mfa_enabled: false, email: null, flags: 0 },
      guilds: guilds.map(({ id }) => ({ id, unavailable: true })),
      private_channels: [],
      session_id: session.id,
      resume_gateway_url: origin().replace("http", "ws") + PATHS[1],
      shard: [0, 1],
      application: { id: world.bot.id, flags: 0 },
    });
    for (const guild of guilds) {
      session.tell({ t: "GUILD_CREATE", d: guildCreateWire(guild, world.bot), intents: 1 });
    }
  }

  resume(d: Json, connection: GatewayConnection): number | null {
    this.counts.resumes += 1;
    this.#changed();
    if (this.#ignoredResumes > 0) {
      this.#ignoredResumes -= 1;
      return null;
    }
    if (d.token !== this.#deps.token()) return 4004;
    const session = this.#sessions.get(String(d.session_id));
    const isLate = session?.lostMs != null && performance.now() - session.lostMs > this.#deps.settings.resumeWithinMs;
    if (session === undefined || isLate || !session.isGood) {
      connection.tell(Op.invalidSession, false);
      return null;
    }
    if (typeof d.seq !== "number" || d.seq > session.seq) return 4007;
    const missed = session.since(d.seq);
    this.#join(session, connection);
    for (const payload of missed) connection.send(payload);
    session.push("RESUMED", { _trace: [] });
    this.counts.resumed += 1;
    this.#changed();
    return null;
  }

  closed(connection: GatewayConnection, code: number): void {
    this.#connections.delete(connection);
    const { session } = connection;
    // A client that says good-bye for good ends its session.
    if (code === 1000 || code === 1001) this.#forget(connection);
    if (session?.outlet === connection) {
      session.outlet = null;
      session.lostMs = performance.now();
    }
    this.#changed();
  }

  heartbeat(): void {
    this.counts.heartbeats += 1;
    this.#changed();
  }

  #join(session: GatewaySession, connection: GatewayConnection): void {
    connection.session = session;
    session.outlet = connection;
    session.lostMs = null;
  }

  #forget({ session }: GatewayConnection): void {
    if (session === null) return;
    session.isGood = false;
    session.outlet = null;
    this.#sessions.delete(session.id);
  }

  #spread(event: WorldEvent): void {
    for (const session of this.#sessions.values()) session.tell(event);
  }

  #changed(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}

/**
 * One connection to the fake gateway: hello, identify or resume, heartbeats, and the close codes for whoever breaks the
 * protocol. Which sessions there are, its host knows. Invariant: nothing is dispatched before identify or resume, and what a
 * client may not send closes the connection with Discord's own code.
 */
import { deflateSync } from "node:zlib";
import type { RawData, WebSocket } from "ws";
import type { GatewaySession, Outlet, Payload } from "./gateway-session.js";

export const Op = {
  dispatch: 0,
  heartbeat: 1,
  identify: 2,
  presence: 3,
  resume: 6,
  reconnect: 7,
  members: 8,
  invalidSession: 9,
  hello: 10,
  heartbeatAck: 11,
} as const;

export type Json = Record<string, unknown>;

/** What a connection asks of the gateway. A number is the code to close with. */
export interface ConnectionHost {
  readonly heartbeatMs: number;
  readonly isAcking: boolean;
  readonly isDeaf: boolean;
  identify(d: Json, connection: GatewayConnection): number | null;
  resume(d: Json, connection: GatewayConnection): number | null;
  closed(connection: GatewayConnection, code: number): void;
  heartbeat(): void;
}

/** Payloads that a client may send in a minute. */
const MAX_PER_MINUTE = 120;
const MAX_BYTES = 4096;

export class GatewayConnection implements Outlet {
  session: GatewaySession | null = null;
  /** Whether payloads go out as zlib, as the client asked in its identify. */
  isCompressed = false;
  #sent: number[] = [];
  #deadline: NodeJS.Timeout | null = null;

  constructor(
    private readonly socket: WebSocket,
    private readonly host: ConnectionHost,
  ) {
    socket.on("message", (data) => this.#take(data));
    socket.on("close", (code) => this.#ended(code));
    socket.on("error", () => socket.terminate());
    this.#await();
    this.#write({ op: Op.hello, d: { heartbeat_interval: host.heartbeatMs, _trace: [] }, s: null, t: null });
  }

  /** Dispatches; a deaf connection says nothing. */
  send(payload: Payload): void {
    if (!this.host.isDeaf) this.#write(payload);
  }

  /** Says something of the protocol itself. */
  tell(op: number, d: unknown): void {
    this.#write({ op, d, s: null, t: null });
  }

  close(code: number): void {
    this.socket.close(code);
  }

  /** The line is cut: no close frame. */
  cut(): void {
    this.socket.terminate();
  }

  #write(payload: Payload): void {
    if (this.socket.readyState !== this.socket.OPEN) return;
    const text = JSON.stringify(payload);
    this.socket.send(this.isCompressed ? deflateSync(text) : text);
  }

  #take(data: RawData): void {
    const code = this.#judge(String(data));
    if (code !== null) this.close(code);
  }

  /** Does what the client asks; the code to close with when it may not ask that. */
  #judge(text: string): number | null {
    const payload = parse(text);
    if (payload === null || text.length > MAX_BYTES) return 4002;
    // Tests let hearts beat faster than Discord does, so heartbeats do not count here.
    if (payload.op === Op.heartbeat) return this.#beat();
    const now = performance.now();
    this.#sent = [...this.#sent.filter((at) => now - at < 60_000), now];
    if (this.#sent.length > MAX_PER_MINUTE) return 4008;
    return this.#obey(Number(payload.op), (payload.d ?? {}) as Json);
  }

  #obey(op: number, d: Json): number | null {
    switch (op) {
      case Op.identify:
        return this.session === null ? this.host.identify(d, this) : 4005;
      case Op.resume:
        return this.session === null ? this.host.resume(d, this) : 4005;
      case Op.presence:
      case Op.members:
        return this.session === null ? 4003 : null;
      default:
        return 4001;
    }
  }

  #beat(): null {
    this.host.heartbeat();
    this.#await();
    if (this.host.isAcking) this.tell(Op.heartbeatAck, null);
    return null;
  }

  /** A client that falls silent loses its connection. */
  #await(): void {
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.close(4009), this.host.heartbeatMs * 2 + 2000);
  }

  #ended(code: number): void {
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.host.closed(this, code);
  }
}

function parse(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Json) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

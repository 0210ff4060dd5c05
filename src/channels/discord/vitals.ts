/**
 * Whether the bot is alive, judged by what comes in: acknowledged heartbeats, events, the echo of its own messages. "Connected"
 * alone counts for nothing. It mends nothing; a failed channel is started anew by whoever watches it. Invariant: what only a
 * person can mend is called permanent and names what to do.
 */
import { ERROR_ADVICE, type ErrorCode, NanogateError } from "../../errors.js";
import type { ChannelHealth } from "../channel.js";
import type { Clock } from "../clock.js";

/** How long silence is taken for a pause, ms each. */
export interface Patience {
  /** No heartbeat acknowledged and no event: twice Discord's 41 s and some more. */
  stallMs: number;
  /** Connected, and neither ready nor resumed. */
  handshakeMs: number;
  /** Not connected, or never for long enough to be ready. */
  downMs: number;
  /** A message was sent, and the gateway has told nothing at all since. */
  echoMs: number;
}

export const PATIENCE: Patience = { stallMs: 100_000, handshakeMs: 20_000, downMs: 60_000, echoMs: 30_000 };

type Phase =
  | { kind: "running" | "stopped" }
  /** `shakingMs`: since when there is a connection that is not ready yet. */
  | { kind: "down"; sinceMs: number; shakingMs: number | null }
  /** Waits until it may identify. */
  | { kind: "waiting" }
  | { kind: "failed"; error: NanogateError; isPermanent: boolean };

/** Close codes after which trying again is of no use. */
const PERMANENT: ReadonlyMap<number, [ErrorCode, string]> = new Map([
  [4004, ["DISCORD_TOKEN_INVALID", "Discord does not take the bot's token (close code 4004)."]],
  [4010, ["DISCORD_PROTOCOL", "Discord does not take the bot's shard (close code 4010)."]],
  [4011, ["DISCORD_PROTOCOL", "Discord wants this bot to be split up into shards (close code 4011)."]],
  [4012, ["DISCORD_PROTOCOL", "Discord does not know the version of the gateway (close code 4012)."]],
  [4013, ["DISCORD_INTENTS", "Discord does not know the intents that the bot asked for (close code 4013)."]],
  [4014, ["DISCORD_INTENTS", "Discord does not allow the bot the message content intent (close code 4014)."]],
]);

export class Vitals {
  readonly #clock: Clock;
  readonly #patience: Patience;
  #phase: Phase = { kind: "stopped" };
  #aliveMs = 0;
  #heardMs = 0;
  /** When a message was sent after which nothing was heard; null: all is answered. */
  #unheardMs: number | null = null;

  constructor({ clock, patience }: { clock: Clock; patience: Patience }) {
    this.#clock = clock;
    this.#patience = patience;
  }

  starting(): void {
    this.#phase = { kind: "down", sinceMs: this.#clock.nowMs(), shakingMs: null };
    this.#unheardMs = null;
  }

  /** An acknowledged heartbeat. */
  beat(): void {
    this.#aliveMs = this.#clock.nowMs();
  }

  /** An event. */
  heard(): void {
    this.beat();
    this.#heardMs = this.#aliveMs;
    this.#unheardMs = null;
  }

  /** The bot has sent a message, of which the gateway tells: often before the call that began at `begunMs` has its answer. */
  sent(begunMs: number): void {
    if (this.#heardMs < begunMs) this.#unheardMs ??= this.#clock.nowMs();
  }

  /** Ready or resumed. */
  up(): void {
    if (this.#phase.kind === "failed" || this.#phase.kind === "stopped") return;
    this.beat();
    this.#unheardMs = null;
    this.#phase = { kind: "running" };
  }

  /** The connection was closed with this code; tries to connect go on unless it is a permanent one. */
  closed(code: number): void {
    const permanent = PERMANENT.get(code);
    if (permanent === undefined) this.#goDown(false);
    else this.fail(new NanogateError(...permanent), { isPermanent: true });
  }

  /** There is a connection, and something is expected of it. */
  shaking(): void {
    this.#goDown(true);
  }

  /** It may not identify yet. */
  waiting(): void {
    if (this.#phase.kind !== "failed" && this.#phase.kind !== "stopped") this.#phase = { kind: "waiting" };
  }

  fail(error: NanogateError, { isPermanent }: { isPermanent: boolean }): void {
    if (this.#phase.kind === "failed" && this.#phase.isPermanent) return;
    this.#phase = { kind: "failed", error, isPermanent };
  }

  stopped(): void {
    if (this.#phase.kind !== "failed") this.#phase = { kind: "stopped" };
  }

  /** The failure, if there is one. */
  failure(): NanogateError | null {
    this.#judge();
    return this.#phase.kind === "failed" ? this.#phase.error : null;
  }

  health(): ChannelHealth {
    this.#judge();
    const phase = this.#phase;
    switch (phase.kind) {
      case "running":
      case "stopped":
        return { state: phase.kind };
      case "down":
      case "waiting":
        return { state: "starting" };
      case "failed": {
        const { error, isPermanent } = phase;
        const words = { state: "failed", problem: error.message, advice: ERROR_ADVICE[error.code] } as const;
        return isPermanent ? { ...words, isPermanent } : words;
      }
      default:
        return phase satisfies never;
    }
  }

  /** A connection that comes and goes without ever being ready is as bad as none. */
  #goDown(isShaking: boolean): void {
    const phase = this.#phase;
    if (phase.kind === "failed" || phase.kind === "stopped") return;
    const nowMs = this.#clock.nowMs();
    const sinceMs = phase.kind === "down" ? phase.sinceMs : nowMs;
    this.#phase = { kind: "down", sinceMs, shakingMs: isShaking ? nowMs : null };
  }

  /** Silence that lasts too long is a failure. */
  #judge(): void {
    const why = this.#whySilent(this.#clock.nowMs());
    if (why !== null) this.fail(new NanogateError("DISCORD_SILENT", why), { isPermanent: false });
  }

  #whySilent(nowMs: number): string | null {
    const { stallMs, handshakeMs, downMs, echoMs } = this.#patience;
    const phase = this.#phase;
    if (phase.kind === "down") {
      if (phase.shakingMs !== null && nowMs - phase.shakingMs > handshakeMs)
        return "Discord took the connection and did not go on with it.";
      return nowMs - phase.sinceMs > downMs ? "There is no connection to Discord, and none comes about." : null;
    }
    if (phase.kind !== "running") return null;
    if (nowMs - this.#aliveMs > stallMs) return "Discord has not answered a heartbeat for too long.";
    const isDeaf = this.#unheardMs !== null && nowMs - this.#unheardMs > echoMs;
    return isDeaf ? "Discord takes messages of the bot but tells it of none." : null;
  }
}

/**
 * The agent room of one process, run by hand: a bus over a real Redis, sessions in real files, the loop and the way in,
 * but no consumer, so a test says when a session is worked on. Two on one prefix and folder are two processes.
 */
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { createPairingCommand } from "../../src/agent/commands/pairing.js";
import { createContextBuilder } from "../../src/agent/context.js";
import { Ingress, type Taken } from "../../src/agent/ingress.js";
import { AgentLoop } from "../../src/agent/loop.js";
import type { Provider } from "../../src/agent/providers/provider.js";
import type { Tool } from "../../src/agent/tools/tool.js";
import type { TurnSettings } from "../../src/agent/turn-context.js";
import type { TurnMedia } from "../../src/agent/turn-media.js";
import {
  type InboundMessage,
  type OutboundMessage,
  type SessionKey,
  sessionKeyOf,
  type TurnResult,
} from "../../src/bus/messages.js";
import { type FaultPoint, noFaults } from "../../src/faults.js";
import { createLogger } from "../../src/logger.js";
import { noMetrics } from "../../src/metrics.js";
import { nodeIo, type SessionIo } from "../../src/session/io.js";
import { SessionManager } from "../../src/session/manager.js";
import type { Row } from "../../src/session/row.js";
import { noMedia } from "../fakes/no-media.js";
import { type BusFixture, createBusFixture } from "./bus-fixture.js";

export interface AgentOptions {
  address: { socketPath: string };
  /** Becomes the workspace. */
  folder: string;
  provider: Provider;
  prefix?: string;
  tools?: () => readonly Tool[];
  media?: TurnMedia;
  settings?: Partial<TurnSettings>;
  debounceMs?: number;
  retryDelaysMs?: readonly [number, number];
}

/** Where the model is told that files are. */
export const MEDIA_FOLDER = "/kept";

/** What a test may replace while it runs. */
export interface Hooks {
  io: { -readonly [Name in keyof SessionIo]: SessionIo[Name] };
  fault: (point: FaultPoint) => void;
}

/** Rows of a holder that died, and the stream it had begun to show. */
export interface Left {
  rows: readonly Row[];
  stream?: { streamId: string; turnId: string; text: string };
}

const SETTINGS: TurnSettings = {
  maxIterations: 20,
  maxOutputTokens: 1000,
  toolResultMaxChars: 1000,
  queueMode: "steer",
};

export class AgentFixture {
  #unhint: () => Promise<void> = async () => {};

  private constructor(
    readonly fixture: BusFixture,
    readonly sessions: SessionManager,
    readonly loop: AgentLoop,
    readonly ingress: Ingress,
    readonly hooks: Hooks,
    /** Everything logged, as JSON lines. */
    readonly log: string[],
  ) {}

  static async open(options: AgentOptions): Promise<AgentFixture> {
    const hooks: Hooks = { io: { ...nodeIo }, fault: noFaults };
    const log: string[] = [];
    const logger = createLogger({ level: "debug", secrets: [], destination: { write: (line) => log.push(line) } });
    const faults = (point: FaultPoint) => hooks.fault(point);
    const own = options.prefix === undefined ? {} : { prefix: options.prefix };
    const fixture = await createBusFixture(options.address, { ...own, faults, logger });
    const folder = path.join(options.folder, "sessions");
    await mkdir(folder, { recursive: true });
    const tools = { io: ioOf(hooks), faults, logger, clock: Date.now };
    const sessions = new SessionManager({ folder, fsync: "turn", cacheSize: 16, tools });
    const { bus, lock, stack } = fixture;
    const settings = { ...SETTINGS, ...options.settings };
    const window = { contextWindow: 200_000, maxOutputTokens: 1000 };
    const context = createContextBuilder({
      folder: options.folder,
      ...window,
      templates: new Map(),
      mediaFolder: MEDIA_FOLDER,
    });
    const providers = { resolve: () => ({ provider: options.provider, model: "m", label: "m" }) };
    const turnTools = options.tools ?? (() => []);
    const turn = {
      bus,
      providers,
      context,
      media: options.media ?? noMedia(),
      tools: turnTools,
      settings,
      faults,
      logger,
      metrics: noMetrics,
      nowMs: Date.now,
    };
    const retryDelaysMs = options.retryDelaysMs ?? [1, 1];
    const loop = new AgentLoop({ bus, lock, sessions, turn, retryDelaysMs, logger });
    const watched = { logger, metrics: noMetrics };
    const ingress = new Ingress({
      bus,
      debounceMs: options.debounceMs ?? 0,
      describe: async (which) => `<${which}>`,
      pairing: createPairingCommand(stack.pairings(false)),
      ...watched,
    });
    const agent = new AgentFixture(fixture, sessions, loop, ingress, hooks, log);
    await lock.start();
    agent.#unhint = await stack.signals.onHint((key) => void loop.onHint(key));
    return agent;
  }

  get prefix(): string {
    return this.fixture.prefix;
  }

  accept(message: InboundMessage): Promise<Taken> {
    return this.ingress.accept(message);
  }

  /** Takes a message in and works until its session sleeps; gives its result. */
  async talk(message: InboundMessage): Promise<TurnResult | null> {
    const { inboundKey } = await this.accept(message);
    await this.work(message);
    return this.result(inboundKey);
  }

  /** Works on the session of a message, as often as it is ready (or `times`), whatever a retry is delayed. */
  async work(message: InboundMessage, times = 20): Promise<void> {
    const key = keyOf(message);
    for (let count = 0; count < times; count += 1) {
      const wake = await this.fixture.bus.peek(key);
      if (wake === null) return;
      await this.loop.run(key, wake.wake);
    }
  }

  result(inboundKey: string): Promise<TurnResult | null> {
    return this.fixture.stack.results.get(inboundKey);
  }

  /** Everything a chat was sent, in order. */
  async said(chatId: string): Promise<OutboundMessage[]> {
    const page = await this.fixture.stack.chatEvents.read("web", chatId, 0, null);
    if (page.kind !== "events") throw new Error("the chat's beginning is gone");
    return page.events.map(({ message }) => message);
  }

  async rows(message: InboundMessage): Promise<readonly Row[]> {
    return (await this.sessions.readSessionFile(keyOf(message)))?.messages ?? [];
  }

  /** Takes the session as a holder, writes what is given, and is gone: nothing settled, no try counted. */
  async leave(message: InboundMessage, left: Left): Promise<void> {
    const { bus, lock } = this.fixture;
    const key = keyOf(message);
    const wake = await bus.peek(key);
    const done = await lock.withLease(key, { wake: wake?.wake ?? -1 }, async (held) => {
      const { lease, claim } = held;
      const session = await this.sessions.open(lease, claim.file, { check: async () => {}, commit: async () => {} });
      await session.append(left.rows);
      if (left.stream !== undefined) {
        const { text, ...stream } = left.stream;
        const { channel, chatId } = message.route;
        const event = { type: "delta" as const, streamId: stream.streamId, offset: 0 };
        const rest = { media: [], buttons: [], turnId: stream.turnId, seq: 1, metadata: {} };
        const delta = { id: "d", channel, chatId, content: text, event, ...rest };
        const outgoing = [{ route: message.route, message: delta }];
        const openStream = { ...stream, route: message.route };
        await bus.emit({ key, fence: lease.fence, batch: 1, outgoing, openStream });
      }
      await session.close();
      const file = claim.file === null ? null : session.state();
      await bus.yield({ key, fence: lease.fence, why: "drain", delayMs: 0, file, reason: "" });
      held.left();
    });
    if (!done.held) throw new Error(`the session could not be taken: ${done.why}`);
  }

  async close(): Promise<void> {
    await this.#unhint();
    await this.fixture.close();
  }
}

function ioOf(hooks: Hooks): SessionIo {
  return {
    append: (handle, bytes) => hooks.io.append(handle, bytes),
    sync: (handle) => hooks.io.sync(handle),
  };
}

export function keyOf(message: InboundMessage): SessionKey {
  return sessionKeyOf(message, { unified: false });
}

/** Events in short, without deltas' ids: `delta hel`, `final hello`, `turn_end completed`. */
export function brief(messages: readonly OutboundMessage[]): string[] {
  return messages.map(({ event, content }) => {
    switch (event.type) {
      case "turn_end":
        return `turn_end ${event.outcome}`;
      case "tool":
        return `tool ${event.phase} ${event.callId}`;
      default:
        return content === "" ? event.type : `${event.type} ${content}`;
    }
  });
}

/** Rows in short: `user hi`, `calls a b`, `tool a`, `final hello`, `assistant x`, `wait a`. */
export function briefRows(rows: readonly Row[]): string[] {
  return rows.map((row) => {
    if (row.role === "tool") return `tool ${row.tool_call_id}`;
    if (row.role === "wait") return `wait ${row.call_id}`;
    if (row.role !== "assistant") return `${row.role} ${String(row.content)}`;
    if ((row.tool_calls ?? []).length > 0) return `calls ${(row.tool_calls ?? []).map(({ id }) => id).join(" ")}`;
    return `${row.final === true ? "final" : "assistant"} ${String(row.content)}`;
  });
}

/**
 * The whole line inside the test's process: bus over a real Redis, sessions in real files, loop, ingress and direct calls,
 * with a model of the test's own. Several on one Redis, prefix and folder are as many workers. Ended by `close`.
 */
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { createContextBuilder } from "../../src/agent/context.js";
import { DirectCalls } from "../../src/agent/direct.js";
import { Ingress, type Taken } from "../../src/agent/ingress.js";
import { AgentLoop } from "../../src/agent/loop.js";
import type { Provider } from "../../src/agent/providers/provider.js";
import type { Tool } from "../../src/agent/tools/tool.js";
import type { InboundMessage, OutboundMessage, TurnResult } from "../../src/bus/messages.js";
import type { Consumer, Upkeep } from "../../src/bus/ports.js";
import { UpkeepLoop } from "../../src/bus/upkeep-loop.js";
import { timingOf } from "../../src/config/timing.js";
import { noFaults } from "../../src/faults.js";
import { noMetrics } from "../../src/metrics.js";
import { nodeIo } from "../../src/session/io.js";
import { SessionManager } from "../../src/session/manager.js";
import type { Row } from "../../src/session/row.js";
import { noMedia } from "../fakes/no-media.js";
import { type BusFixture, createBusFixture, LEASE_MS, sessionKey, silent, until } from "./bus-fixture.js";

export interface LineOptions {
  address: { socketPath: string };
  /** Holds the sessions' files; shared by the lines of one test. */
  folder: string;
  provider: Provider;
  prefix?: string;
  tools?: () => readonly Tool[];
  queueMode?: "steer" | "followup";
  debounceMs?: number;
  /** 0: no worker, only a caller. */
  concurrency?: number;
  maxTurns?: number;
  leaseMs?: number;
  /** False: hints of stops are lost on their way. */
  hears?: boolean;
  /** Awaited by a holder between taking a session and opening its file. */
  onOpen?: () => Promise<void>;
}

interface Parts {
  bus: BusFixture;
  loop: AgentLoop;
  ingress: Ingress;
  direct: DirectCalls;
  sessions: SessionManager;
  upkeep: UpkeepLoop;
  /** How often direct calls have looked whether a worker lives. */
  looks: { count: number };
}

export class Line {
  #consumer: Consumer | null = null;
  #unhint: () => Promise<void> = async () => {};

  private constructor(readonly parts: Parts) {}

  get bus(): BusFixture {
    return this.parts.bus;
  }

  static async start(options: LineOptions): Promise<Line> {
    const { address, concurrency = 8, maxTurns = null, leaseMs = LEASE_MS, prefix } = options;
    const own = prefix === undefined ? {} : { prefix };
    const fixture = await createBusFixture(address, { ...own, maxTurns, leaseMs, isWorker: concurrency > 0 });
    const folder = path.join(options.folder, "sessions");
    await mkdir(folder, { recursive: true });
    const line = new Line(partsOf(fixture, options, folder));
    await fixture.lock.start();
    if (options.hears !== false)
      line.#unhint = await fixture.stack.signals.onHint((key) => void line.parts.loop.onHint(key));
    line.parts.upkeep.start();
    if (concurrency > 0)
      line.#consumer = await fixture.stack.ready.consume(concurrency, (k, w) => line.parts.loop.run(k, w));
    return line;
  }

  get prefix(): string {
    return this.bus.prefix;
  }

  accept(message: InboundMessage): Promise<Taken> {
    return this.parts.ingress.accept(message);
  }

  /** Waits for the result of a message. */
  result(inboundKey: string): Promise<TurnResult> {
    return until(() => this.bus.stack.results.get(inboundKey));
  }

  /** Everything a chat was sent so far, in order. */
  async said(chatId: string): Promise<OutboundMessage[]> {
    const all: OutboundMessage[] = [];
    let after = 0;
    for (;;) {
      const page = await this.bus.stack.chatEvents.read("web", chatId, after, null);
      if (page.kind !== "events") throw new Error("the chat's beginning is gone");
      if (page.events.length === 0) return all;
      all.push(...page.events.map(({ message }) => message));
      after = page.events.at(-1)?.seq ?? after;
    }
  }

  /** The rows of a session as its file holds them. */
  async rows(key: string): Promise<readonly Row[]> {
    return (await this.parts.sessions.readSessionFile(sessionKey(key)))?.messages ?? [];
  }

  /** Fetches nothing more and waits for what runs. */
  async leave(): Promise<void> {
    await this.#consumer?.close();
    this.#consumer = null;
  }

  async close(): Promise<void> {
    this.parts.loop.drain();
    await this.leave();
    await this.parts.upkeep.stop();
    await this.#unhint();
    await this.bus.close();
  }
}

function partsOf(made: BusFixture, given: LineOptions, folder: string): Parts {
  const sessions = managerOf(folder, given.onOpen ?? (async () => {}));
  const loop = loopOf(made, given, sessions);
  const { bus, stack } = made;
  const watched = { logger: silent, metrics: noMetrics };
  const debounceMs = given.debounceMs ?? 0;
  const ingress = new Ingress({
    bus,
    debounceMs,
    describe: async () => "described",
    pairing: async () => "paired",
    ...watched,
  });
  const { results, signals } = stack;
  const looks = { count: 0 };
  const upkeep: Upkeep = {
    reap: () => stack.upkeep.reap(),
    sweep: (waits) => stack.upkeep.sweep(waits),
    depths: () => {
      looks.count += 1;
      return stack.upkeep.depths();
    },
  };
  const liveAddressOf = (replyKey: string) => `caller:${replyKey}`;
  const direct = new DirectCalls({ bus, ingress, loop, results, signals, upkeep, liveAddressOf });
  return { bus: made, loop, ingress, direct, sessions, upkeep: upkeepOf(made), looks };
}

function managerOf(folder: string, onOpen: () => Promise<void>): SessionManager {
  class Watched extends SessionManager {
    override async open(...args: Parameters<SessionManager["open"]>): ReturnType<SessionManager["open"]> {
      await onOpen();
      return super.open(...args);
    }
  }
  const tools = { io: nodeIo, faults: noFaults, logger: silent, clock: Date.now };
  return new Watched({ folder, fsync: "exit", cacheSize: 64, tools });
}

function loopOf({ bus, lock }: BusFixture, given: LineOptions, sessions: SessionManager): AgentLoop {
  const { provider, queueMode = "steer", tools = () => [], folder } = given;
  const window = { contextWindow: 200_000, maxOutputTokens: 1000 };
  const turn = {
    bus,
    providers: { resolve: () => ({ provider, model: "m", label: "m" }) },
    context: createContextBuilder({ folder, ...window, templates: new Map(), mediaFolder: "/kept" }),
    media: noMedia(),
    tools,
    settings: { maxIterations: 20, maxOutputTokens: 1000, toolResultMaxChars: 1000, queueMode },
    faults: noFaults,
    logger: silent,
    metrics: noMetrics,
    nowMs: Date.now,
  };
  return new AgentLoop({ bus, lock, sessions, turn, retryDelaysMs: [10, 10], logger: silent });
}

function upkeepOf({ bus, stack }: BusFixture): UpkeepLoop {
  const { reapEveryMs, sweepAfterMs } = timingOf(LEASE_MS);
  const { upkeep, ready } = stack;
  const rounds = { measurePressure: async () => {}, reapMs: reapEveryMs, sweepMs: sweepAfterMs / 3, logger: silent };
  return new UpkeepLoop({ bus, upkeep, ready, ...rounds });
}

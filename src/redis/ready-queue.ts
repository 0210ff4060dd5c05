/**
 * The ready-queue: BullMQ. A job says only that a session is ready under a wake number. Nothing rests on BullMQ's locks,
 * deduplication or stalled check: a late, stale or doubled job is a no-op, a lost one is found by the sweep.
 * It starts no turn itself. Invariant: it works also when memory is full, or what waits could not be worked off.
 */
import { setTimeout as wait } from "node:timers/promises";
import { Queue, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { asSessionKey, type SessionKey } from "../bus/messages.js";
import type { Consumer, ReadyQueue, Wake } from "../bus/ports.js";
import { NanogateError } from "../errors.js";
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import { disconnect, type RedisClient } from "./client.js";
import { jobIdOf, type Keys } from "./keys.js";
import { isOutage } from "./outage.js";

interface WakeJob {
  s: string;
  w: number;
}

const QUEUE_NAME = "ready";
/** For what BullMQ still has to say once nothing runs any more; nothing rests on it. */
const CLOSE_LIMIT_MS = 2000;
/**
 * How long an idle consumer waits to be called before it looks by itself, s. A call goes to one consumer only, and is
 * lost when that one sleeps: the others find the job after this time.
 */
const LOOK_AFTER_SECONDS = 1;

export interface ReadyQueueDeps {
  client: RedisClient;
  keys: Keys;
  faults: FaultHook;
  logger: Logger;
}

/** BullMQ's scripts would be refused when memory is full. Jobs are small, and only what was taken in makes any. */
function evenWhenFull(connection: Redis): Redis {
  const define = connection.defineCommand.bind(connection);
  connection.defineCommand = (name, script) => define(name, { ...script, lua: `#!lua flags=allow-oom\n${script.lua}` });
  return connection;
}

function whenReady(connection: Redis, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.once("ready", resolve);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const limit = wait(ms, undefined, { signal: over.signal }).catch(() => "the work ended first");
  await Promise.race([work, limit]);
  over.abort();
}

export class BullReadyQueue implements ReadyQueue {
  readonly #deps: ReadyQueueDeps;
  readonly #queue: Queue<WakeJob>;
  readonly #connection: Redis;

  /** Connects first, however long that takes. Throws the signal's reason. */
  static async connect(deps: ReadyQueueDeps, signal: AbortSignal): Promise<BullReadyQueue> {
    const connection = evenWhenFull(deps.client.connection("hasty"));
    try {
      await whenReady(connection, signal);
    } catch (error) {
      disconnect(connection);
      throw error;
    }
    return new BullReadyQueue(deps, connection);
  }

  private constructor(deps: ReadyQueueDeps, connection: Redis) {
    this.#deps = deps;
    this.#connection = connection;
    this.#queue = new Queue<WakeJob>(QUEUE_NAME, {
      connection,
      prefix: deps.keys.queuePrefix,
      skipWaitingForReady: true,
      // It would be asked once, at the start; if that fails, BullMQ never works again.
      skipVersionCheck: true,
      streams: { events: { maxLen: 1000 } },
      defaultJobOptions: { removeOnComplete: true, removeOnFail: true, attempts: 1 },
    });
    this.#queue.on("error", (error) => deps.logger.debug({ err: error }, "the ready-queue's connection failed"));
  }

  async add(wake: Wake): Promise<void> {
    const delay = wake.delayMs > 0 ? { delay: wake.delayMs } : {};
    const job = { s: wake.key, w: wake.wake };
    await this.#ask(() => this.#queue.add("wake", job, { jobId: jobIdOf(wake.key, wake.wake), ...delay }));
  }

  async waits(wake: Wake): Promise<boolean> {
    const state = await this.#ask(() => this.#queue.getJobState(jobIdOf(wake.key, wake.wake)));
    return state === "waiting" || state === "delayed" || state === "prioritized";
  }

  async #ask<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (error) {
      if (!isOutage(error)) throw error;
      throw new NanogateError("BUS_UNAVAILABLE", "Redis could not be reached.", { cause: error });
    }
  }

  async consume(concurrency: number, work: (key: SessionKey, wake: number) => Promise<void>): Promise<Consumer> {
    const { client, keys, faults, logger } = this.#deps;
    const connection = evenWhenFull(client.connection("patient"));
    const running = new Set<Promise<void>>();
    let isDrained = false;
    const worker = new Worker<WakeJob>(
      QUEUE_NAME,
      async (job) => {
        isDrained = false;
        faults("wake.fetched");
        const run = work(asSessionKey(job.data.s), job.data.w);
        running.add(run);
        await run.finally(() => running.delete(run));
      },
      {
        connection,
        prefix: keys.queuePrefix,
        concurrency,
        lockDuration: 15_000,
        stalledInterval: 30_000,
        maxStalledCount: 1_000_000,
        drainDelay: LOOK_AFTER_SECONDS,
        runRetryDelay: 500,
      },
    );
    worker.on("error", (error) => logger.debug({ err: error }, "the ready-queue's consumer met an error"));
    worker.on("drained", () => {
      isDrained = true;
    });
    worker.on("failed", (job, error) => logger.error({ err: error, session: job?.data.s }, "a wake-up failed"));
    await worker.waitUntilReady();
    return {
      close: async () => {
        // A polite end asks the server, and would wait for one that is away.
        const closing = worker.close(!client.isReady);
        await Promise.allSettled(running);
        await atMost(CLOSE_LIMIT_MS, closing);
        disconnect(connection);
      },
      isRunning: () => worker.isRunning(),
      limit: (most) => {
        worker.concurrency = Math.max(1, most);
      },
      isDrained: () => isDrained,
    };
  }

  async close(): Promise<void> {
    await this.#queue.close();
    disconnect(this.#connection);
  }
}

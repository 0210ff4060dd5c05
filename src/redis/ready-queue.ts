/**
 * The ready-queue: BullMQ. A job says only that a session is ready under a wake number. Nothing rests on BullMQ's locks,
 * deduplication or stalled check: a late, stale or doubled job is a no-op, a lost one is found by the sweep.
 * It starts no turn itself.
 */
import { once } from "node:events";
import { Queue, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { asSessionKey, type SessionKey } from "../bus/messages.js";
import type { Consumer, ReadyQueue, Wake } from "../bus/ports.js";
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import { disconnect, type RedisClient } from "./client.js";
import { jobIdOf, type Keys } from "./keys.js";

interface WakeJob {
  s: string;
  w: number;
}

const QUEUE_NAME = "ready";

export interface ReadyQueueDeps {
  client: RedisClient;
  keys: Keys;
  faults: FaultHook;
  logger: Logger;
}

export class BullReadyQueue implements ReadyQueue {
  readonly #deps: ReadyQueueDeps;
  readonly #queue: Queue<WakeJob>;
  readonly #connection: Redis;

  /** Connects first: BullMQ speaks to the server as soon as it is made. */
  static async connect(deps: ReadyQueueDeps): Promise<BullReadyQueue> {
    const connection = deps.client.connection("hasty");
    await once(connection, "ready");
    return new BullReadyQueue(deps, connection);
  }

  private constructor(deps: ReadyQueueDeps, connection: Redis) {
    this.#deps = deps;
    this.#connection = connection;
    this.#queue = new Queue<WakeJob>(QUEUE_NAME, {
      connection,
      prefix: deps.keys.queuePrefix,
      skipWaitingForReady: true,
      streams: { events: { maxLen: 1000 } },
      defaultJobOptions: { removeOnComplete: true, removeOnFail: true, attempts: 1 },
    });
    this.#queue.on("error", (error) => deps.logger.debug({ err: error }, "the ready-queue's connection failed"));
  }

  async add(wake: Wake): Promise<void> {
    const delay = wake.delayMs > 0 ? { delay: wake.delayMs } : {};
    await this.#queue.add("wake", { s: wake.key, w: wake.wake }, { jobId: jobIdOf(wake.key, wake.wake), ...delay });
  }

  async waits(wake: Wake): Promise<boolean> {
    const state = await this.#queue.getJobState(jobIdOf(wake.key, wake.wake));
    return state === "waiting" || state === "delayed" || state === "prioritized";
  }

  async consume(concurrency: number, work: (key: SessionKey, wake: number) => Promise<void>): Promise<Consumer> {
    const { client, keys, faults, logger } = this.#deps;
    const connection = client.connection("patient");
    const worker = new Worker<WakeJob>(
      QUEUE_NAME,
      async (job) => {
        faults("wake.fetched");
        await work(asSessionKey(job.data.s), job.data.w);
      },
      {
        connection,
        prefix: keys.queuePrefix,
        concurrency,
        lockDuration: 15_000,
        stalledInterval: 30_000,
        maxStalledCount: 1_000_000,
        drainDelay: 5,
        runRetryDelay: 500,
      },
    );
    worker.on("error", (error) => logger.debug({ err: error }, "the ready-queue's consumer met an error"));
    worker.on("failed", (job, error) => logger.error({ err: error, session: job?.data.s }, "a wake-up failed"));
    await worker.waitUntilReady();
    return {
      close: async () => {
        await worker.close();
        disconnect(connection);
      },
      isRunning: () => worker.isRunning(),
    };
  }

  async close(): Promise<void> {
    await this.#queue.close();
    disconnect(this.#connection);
  }
}

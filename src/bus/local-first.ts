/**
 * The ready-queue of a process that works: a session that this process has scheduled itself is run here at once while
 * nothing waits in the queue and a slot is free; everything else goes through the queue. No job stands behind such a run:
 * a process that dies before it has opened the session leaves it to the sweep, like a lost job. Invariant: what runs from
 * here and what runs from the queue together never take more slots than there are.
 */
import type { SessionKey } from "./messages.js";
import type { Consumer, ReadyQueue, Wake } from "./ports.js";

type Work = (key: SessionKey, wake: number) => Promise<void>;

/** The worker behind the queue. */
interface Worker {
  slots: number;
  consumer: Consumer;
  work: Work;
}

export class LocalFirst implements ReadyQueue {
  readonly #queue: ReadyQueue;
  /** Runs that came from the queue, and such that did not. */
  #queued = 0;
  readonly #local = new Set<Promise<void>>();
  #worker: Worker | null = null;

  constructor(queue: ReadyQueue) {
    this.#queue = queue;
  }

  async add(wake: Wake): Promise<void> {
    if (this.#worker !== null && wake.delayMs <= 0 && this.#hasRoom(this.#worker)) this.#run(this.#worker, wake);
    else await this.#queue.add(wake);
  }

  waits(wake: Wake): Promise<boolean> {
    return this.#queue.waits(wake);
  }

  async consume(slots: number, work: Work): Promise<Consumer> {
    const consumer = await this.#queue.consume(slots, async (key, wake) => {
      this.#queued += 1;
      await work(key, wake).finally(() => {
        this.#queued -= 1;
      });
    });
    this.#worker = { slots, consumer, work };
    return {
      close: async () => {
        this.#worker = null;
        await Promise.all([consumer.close(), ...this.#local]);
      },
      isRunning: () => consumer.isRunning(),
      limit: (most) => consumer.limit(most),
      isDrained: () => consumer.isDrained(),
    };
  }

  /** Nobody is overtaken, and one slot stays for what the queue may be fetching at this moment. */
  #hasRoom({ slots, consumer }: Worker): boolean {
    return consumer.isDrained() && this.#local.size + this.#queued + 2 <= slots;
  }

  #run(worker: Worker, { key, wake }: Wake): void {
    const run = worker.work(key, wake).finally(() => {
      this.#local.delete(run);
      worker.consumer.limit(worker.slots - this.#local.size);
    });
    this.#local.add(run);
    worker.consumer.limit(worker.slots - this.#local.size);
  }
}

/**
 * The scheduler of a process. One that works runs a session that it has scheduled itself at once, while nothing waits in the
 * queue and a slot is free; everything else goes through the queue. No job stands behind such a run: a process that dies
 * before it has opened the session leaves it to the sweep, like a lost job. Invariant: what runs from here and what runs
 * from the queue together never take more slots than there are.
 */
import type { SessionKey } from "./messages.js";
import type { Consumer, ReadyQueue, Scheduler, Wake } from "./ports.js";

/** Works on a session; a stale wake-up does nothing. Never throws. `onTaken`: called once when the session is taken. */
export type Work = (key: SessionKey, wake: number | "any", onTaken?: () => void) => Promise<void>;

/** The worker behind the queue. */
interface Worker {
  slots: number;
  consumer: Consumer;
  work: Work;
}

export class LocalFirst implements Scheduler {
  readonly #queue: ReadyQueue;
  /** Runs that came from the queue, and such that did not. */
  #queued = 0;
  readonly #local = new Map<Promise<void>, SessionKey>();
  #worker: Worker | null = null;

  constructor(queue: ReadyQueue) {
    this.#queue = queue;
  }

  async add(wake: Wake): Promise<void> {
    const worker = this.#free();
    if (worker === null || wake.delayMs > 0) await this.#queue.add(wake);
    else void this.#run(worker, wake.key, (work) => work(wake.key, wake.wake));
  }

  async expect(key: SessionKey): Promise<boolean> {
    const worker = this.#free();
    // Where it runs already, the mail is the holder's.
    if (worker === null || [...this.#local.values()].includes(key)) return false;
    return new Promise((resolve) => {
      const run = this.#run(worker, key, (work) => work(key, "any", () => resolve(true)));
      void run.then(() => resolve(false));
    });
  }

  /** Begins to work, on as many sessions at a time as there are slots. */
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
        await Promise.all([consumer.close(), ...this.#local.keys()]);
      },
      isRunning: () => consumer.isRunning(),
      limit: (most) => consumer.limit(most),
      isDrained: () => consumer.isDrained(),
    };
  }

  /** The worker, if it may run one more: nobody is overtaken, and one slot stays for what the queue may be fetching. */
  #free(): Worker | null {
    const worker = this.#worker;
    const hasRoom = worker !== null && this.#local.size + this.#queued + 2 <= worker.slots;
    return hasRoom && worker.consumer.isDrained() ? worker : null;
  }

  #run(worker: Worker, key: SessionKey, begin: (work: Work) => Promise<void>): Promise<void> {
    const run = begin(worker.work).finally(() => {
      this.#local.delete(run);
      worker.consumer.limit(worker.slots - this.#local.size);
    });
    this.#local.set(run, key);
    worker.consumer.limit(worker.slots - this.#local.size);
    return run;
  }
}

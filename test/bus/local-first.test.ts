/** Sessions that this process schedules itself: run at once while there is room, else queued; never more than the slots. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LocalFirst } from "../../src/bus/local-first.js";
import { asSessionKey, type SessionKey } from "../../src/bus/messages.js";
import type { Consumer, ReadyQueue, Wake } from "../../src/bus/ports.js";

const wakeOf = (name: string, delayMs = 0): Wake => ({ key: asSessionKey(name), wake: 1, delayMs });

/** A queue that fetches when told to, as BullMQ's worker does: one at a time, below its limit. */
class HandQueue implements ReadyQueue {
  readonly jobs: string[] = [];
  isDrained = true;
  most = 0;
  closed = 0;
  #active = 0;
  #work: (key: SessionKey, wake: number) => Promise<void> = async () => {};

  async add({ key }: Wake): Promise<void> {
    this.jobs.push(key);
    this.isDrained = false;
  }

  async waits(): Promise<boolean> {
    return true;
  }

  async consume(slots: number, work: (key: SessionKey, wake: number) => Promise<void>): Promise<Consumer> {
    this.most = slots;
    this.#work = work;
    return {
      close: async () => {
        this.closed += 1;
      },
      isRunning: () => true,
      limit: (most) => {
        this.most = most;
      },
      isDrained: () => this.isDrained,
    };
  }

  /** A fetch that began under `most` slots comes back. */
  fetch(most = this.most): void {
    const key = this.jobs.shift();
    if (key === undefined) this.isDrained = true;
    else if (this.#active < Math.max(1, most)) this.#start(key);
    else this.jobs.unshift(key);
  }

  #start(key: string): void {
    this.#active += 1;
    void this.#work(asSessionKey(key), 1).finally(() => {
      this.#active -= 1;
    });
  }
}

/** Work that runs until the test ends it. */
class Runs {
  readonly running = new Map<string, () => void>();
  most = 0;

  readonly work = (key: SessionKey): Promise<void> =>
    new Promise((resolve) => {
      this.running.set(key, resolve);
      this.most = Math.max(this.most, this.running.size);
    });

  async end(name: string): Promise<void> {
    this.running.get(name)?.();
    this.running.delete(name);
    for (let i = 0; i < 5; i += 1) await Promise.resolve();
  }
}

async function opened(slots: number) {
  const queue = new HandQueue();
  const runs = new Runs();
  const local = new LocalFirst(queue);
  const consumer = await local.consume(slots, runs.work);
  return { queue, runs, local, consumer };
}

describe("a process that works", () => {
  test("runs what it has scheduled itself, without a job", async () => {
    const { queue, runs, local } = await opened(4);
    await local.add(wakeOf("a"));
    expect([...runs.running.keys()]).toEqual(["a"]);
    expect(queue.jobs).toEqual([]);
  });

  test("queues what is to wait, what would overtake, and what finds no room", async () => {
    const { queue, runs, local } = await opened(3);
    await local.add(wakeOf("later", 100));
    expect(queue.jobs).toEqual(["later"]);
    await local.add(wakeOf("behind"));
    expect(queue.jobs).toEqual(["later", "behind"]);
    queue.jobs.length = 0;
    queue.fetch();
    for (const name of ["a", "b", "c"]) await local.add(wakeOf(name));
    // One slot stays for what the queue may be fetching.
    expect([...runs.running.keys()]).toEqual(["a", "b"]);
    expect(queue.jobs).toEqual(["c"]);
  });

  test("lets the queue fetch less while it runs sessions of its own, and as much as before afterwards", async () => {
    const { queue, runs, local } = await opened(4);
    await local.add(wakeOf("a"));
    expect(queue.most).toBe(3);
    await runs.end("a");
    expect(queue.most).toBe(4);
  });

  test("does not end before what it runs has ended, and begins nothing more", async () => {
    const { queue, runs, local, consumer } = await opened(4);
    await local.add(wakeOf("a"));
    let isClosed = false;
    const closing = consumer.close().then(() => {
      isClosed = true;
    });
    await local.add(wakeOf("b"));
    expect(queue.jobs).toEqual(["b"]);
    expect(isClosed).toBe(false);
    await runs.end("a");
    await closing;
    expect(queue.closed).toBe(1);
  });

  test("never runs more than its slots, whatever comes when", async () => {
    const step = fc.oneof(
      fc.record({ add: fc.integer({ min: 0, max: 9 }) }),
      fc.constant({ fetch: true }),
      fc.record({ end: fc.nat({ max: 8 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 60 }), async (slots, steps) => {
        const { queue, runs, local } = await opened(slots);
        // A fetch is under way all the time, begun when the last one came back.
        let fetchingUnder = queue.most;
        for (const [index, each] of steps.entries()) {
          if ("add" in each) await local.add(wakeOf(`s${index}`));
          else if ("fetch" in each) {
            queue.fetch(fetchingUnder);
            fetchingUnder = queue.most;
          } else await runs.end([...runs.running.keys()][each.end] ?? "");
          expect(runs.most).toBeLessThanOrEqual(slots);
        }
      }),
    );
  });
});

test("a process that does not work queues everything", async () => {
  const queue = new HandQueue();
  await new LocalFirst(queue).add(wakeOf("a"));
  expect(queue.jobs).toEqual(["a"]);
});

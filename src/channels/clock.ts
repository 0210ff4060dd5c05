/**
 * Time as the delivery side sees it: what it is, and waiting that can be cut short. Handed in, so that tests hold the
 * clock. Invariant: a wait leaves no timer behind.
 */

export interface Clock {
  /** Grows steadily; its zero means nothing. */
  nowMs(): number;
  /** Returns after `ms`, or as soon as the signal aborts: ask the signal. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The clock of the machine. */
export function createSystemClock(): Clock {
  return {
    nowMs: () => performance.now(),
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const end = () => {
          clearTimeout(timer);
          signal.removeEventListener("abort", end);
          resolve();
        };
        const timer = setTimeout(end, ms);
        signal.addEventListener("abort", end, { once: true });
      }),
  };
}

/** The outcome of `work`, or null when the signal aborts first; leaves nothing behind on the signal. */
export function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const end = () => resolve(null);
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
    const forget = () => signal.removeEventListener("abort", end);
    work.then(resolve, reject).then(forget, forget);
  });
}

/** The outcome of `work`, or null when it takes longer than `ms` or the signal aborts; the work's own signal tells it. */
export async function inTime<T>(
  clock: Clock,
  { ms, signal }: { ms: number; signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const over = new AbortController();
  const done = new AbortController();
  const limit = clock.sleep(ms, AbortSignal.any([signal, done.signal])).then(() => {
    if (!done.signal.aborted) over.abort();
    return null;
  });
  try {
    return await Promise.race([work(over.signal), limit]);
  } finally {
    done.abort();
  }
}

/** 1, 2, 4, … s, at most a minute unless said otherwise; `tries` counts from 1. */
export function backOffMs(tries: number, mostMs = 60_000): number {
  return Math.min(mostMs, 1_000 * 2 ** (tries - 1));
}

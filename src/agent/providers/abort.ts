/**
 * Waiting that an abort ends at once, whatever the awaited work does. It starts and stops no work of its own.
 * Invariant: after an abort the caller goes on with the signal's reason, and the abandoned promise can never
 * become an unhandled rejection.
 */

/** Resolves with `work`, or rejects with the signal's reason as soon as it aborts; `work` itself may go on. */
export function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    const settle = (finish: () => void) => {
      signal.removeEventListener("abort", onAbort);
      finish();
    };
    work.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error)),
    );
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** A controller of our own that also follows an outer signal. `close` aborts it and lets go of the outer signal. */
export interface LinkedAbort {
  readonly controller: AbortController;
  close(): void;
}

/** Follows `outer` without leaving a listener behind once closed. */
export function linkAbort(outer: AbortSignal): LinkedAbort {
  const controller = new AbortController();
  const follow = () => controller.abort(outer.reason);
  if (outer.aborted) follow();
  else outer.addEventListener("abort", follow, { once: true });
  return {
    controller,
    close() {
      outer.removeEventListener("abort", follow);
      controller.abort();
    },
  };
}

/** Waits; rejects with the signal's reason at once when it aborts. Leaves no timer behind. */
export async function sleepMs(durationMs: number, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const waited = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, durationMs);
  });
  try {
    await raceAbort(waited, signal);
  } finally {
    clearTimeout(timer);
  }
}

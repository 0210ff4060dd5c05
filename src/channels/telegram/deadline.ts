/**
 * Work that must end in time, by the channel's clock. It knows nothing of what is done. Invariant: neither a timer nor a
 * listener outlives the work.
 */
import type { Clock } from "../clock.js";

/** The work took longer than it may. */
export class Late extends Error {
  override readonly name = "Late";
}

export interface Deadline {
  clock: Clock;
  ms: number;
  /** Ends the work early. */
  signal: AbortSignal;
}

/** The outcome of `work`, whose signal aborts with `Late` in time or with the caller's reason. Rejects then at once. */
export async function withDeadline<T>(
  { clock, ms, signal }: Deadline,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ended = new AbortController();
  const cut = new AbortController();
  const onAbort = () => cut.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  void clock.sleep(ms, ended.signal).then(() => {
    if (!ended.signal.aborted) cut.abort(new Late(`not done within ${Math.round(ms / 1000)} s`));
  });
  try {
    return await Promise.race([work(cut.signal), rejectedBy(cut.signal)]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    ended.abort();
  }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
  });
}

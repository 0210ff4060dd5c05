/**
 * What an error of Redis, or of the connection to it, says about the server: is it away, is it full? It handles none.
 * Invariant: what is called an outage may be tried again unchanged; everything else is a fault of the command.
 */

/** Answers of a server that takes no commands now: it loads, it cannot write its files, it is being replaced. */
const REFUSES = /^(LOADING|READONLY|MASTERDOWN|UNBLOCKED|BUSY|TRYAGAIN|CLUSTERDOWN|MISCONF|NOREPLICAS)/;
const BROKEN =
  /Connection is closed|Stream isn't writeable|Command timed out|ECONN|EPIPE|ENOENT|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN|max retries|Socket closed|Socket timeout/i;

/** Whether an error says that the server is away (and not that the command is wrong). */
export function isOutage(error: unknown): boolean {
  return error instanceof Error && (REFUSES.test(error.message) || BROKEN.test(error.message));
}

/** Whether an error says that the server's memory is full. */
export function isFull(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("OOM");
}

/** Waits for a promise no longer than until the signal aborts; throws the signal's reason then. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

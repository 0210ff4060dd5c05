/**
 * Reads a stream of chunks from a provider's client under two time limits. It knows no wire and interprets no chunk.
 * Invariants: silence is bounded, also before the first byte; an abort and a consumer that walks away both end the
 * connection; whatever the client throws leaves as a `ProviderError`.
 */
import { linkAbort, raceAbort } from "./abort.js";
import type { EndpointDeps } from "./endpoint.js";
import type { ProviderError } from "./provider.js";
import { type Endpoint, providerFailure, translateError } from "./provider-errors.js";

/** The longest delay a timer takes: switches a client's own time limit off. */
export const NEVER_MS = 2_147_483_647;
/** After the finish reason only numbers are missing; nobody waits long for them. */
const USAGE_WAIT_MS = 2_000;

/**
 * Waiting under the two time limits; each limit aborts `signal`, and with it the connection. A wait that was aborted
 * throws, although clients end an aborted stream as if it were complete.
 */
interface Watch {
  readonly signal: AbortSignal;
  within<T>(work: Promise<T>, limitMs: number): Promise<T>;
  close(): void;
}

/** A delay a timer takes; zero or less means no limit. */
function timerMs(limitMs: number): number {
  return limitMs > 0 ? Math.min(limitMs, NEVER_MS) : NEVER_MS;
}

function createWatch(outer: AbortSignal, requestTimeoutMs: number, onSilence: () => ProviderError): Watch {
  const link = linkAbort(outer);
  const stop = () => link.controller.abort(onSilence());
  const whole = setTimeout(stop, timerMs(requestTimeoutMs));
  return {
    signal: link.controller.signal,
    async within(work, limitMs) {
      const idle = setTimeout(stop, timerMs(limitMs));
      try {
        return await raceAbort(work, link.controller.signal);
      } finally {
        clearTimeout(idle);
      }
    },
    close() {
      clearTimeout(whole);
      link.close();
    },
  };
}

/** A stream that can be opened. */
export interface ChunkSource<Chunk> {
  endpoint: Endpoint;
  deps: Pick<EndpointDeps, "requestTimeoutMs" | "streamIdleTimeoutMs">;
  /** Sends the request; the stream must end when `signal` aborts. */
  open(signal: AbortSignal): Promise<AsyncIterable<Chunk>>;
  /** True once the finish reason was read: a stream that breaks or lingers afterwards is complete. */
  isFinished(): boolean;
}

/** The chunks, as they come. Throws `ProviderError`, or the outer signal's reason on abort. */
export async function* readChunks<Chunk>(source: ChunkSource<Chunk>, outer: AbortSignal): AsyncGenerator<Chunk> {
  const { deps, endpoint } = source;
  const watch = createWatch(outer, deps.requestTimeoutMs, () => providerFailure("PROVIDER_TIMEOUT", endpoint));
  let hasBegun = false;
  try {
    const opened = await watch.within(source.open(watch.signal), deps.streamIdleTimeoutMs);
    const chunks = opened[Symbol.asyncIterator]();
    while (true) {
      const limitMs = source.isFinished()
        ? Math.min(USAGE_WAIT_MS, timerMs(deps.streamIdleTimeoutMs))
        : deps.streamIdleTimeoutMs;
      const next = await watch.within(chunks.next(), limitMs);
      if (next.done) return;
      hasBegun = true;
      yield next.value;
    }
  } catch (error) {
    if (outer.aborted) throw outer.reason;
    if (source.isFinished()) return;
    throw watch.signal.aborted ? watch.signal.reason : translateError(error, endpoint, hasBegun);
  } finally {
    watch.close();
  }
}

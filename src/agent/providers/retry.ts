/**
 * A provider that tries again. It repeats a failed call only while nothing of its answer was seen, so nobody reads a
 * beginning twice; it chooses no other model, and whoever does says when it was in vain. Invariants: a wait the provider asked for is kept exactly or not at all;
 * an abort ends a wait at once.
 */
import type { Logger } from "../../logger.js";
import { type ModelRequest, type Provider, ProviderError, type ProviderEvent } from "./provider.js";

/** How to repeat. */
export interface RetryDeps {
  /** Waits before the second, third, … try. */
  delaysMs: readonly number[];
  logger: Logger;
  /** Waits; rejects with the signal's reason when it aborts (`sleepMs` in production). */
  sleep(durationMs: number, signal: AbortSignal): Promise<void>;
}

/** The waits of production: four tries. [RUN-26] */
export const STANDARD_DELAYS_MS: readonly number[] = [1000, 2000, 4000];
/** A provider that asks for more than this is not waited for. */
const LONGEST_WAIT_MS = 60_000;

/** The wait before the next try, or null when there is none. */
function nextWaitMs(error: ProviderError, tableMs: number | undefined): number | null {
  if (!error.isTransient || tableMs === undefined) return null;
  const askedMs = error.options.retryAfterMs;
  if (askedMs === undefined) return tableMs;
  return askedMs > LONGEST_WAIT_MS ? null : askedMs;
}

/** One model call under way. */
interface Call {
  signal: AbortSignal;
  logger: Logger;
}

/** The same provider, with transient failures before any output repeated. [RUN-26..28, 30] */
export function withRetries(provider: Provider, deps: RetryDeps): Provider {
  async function waitBeforeRetry(error: ProviderError, tries: number, call: Call): Promise<void> {
    const waitMs = nextWaitMs(error, deps.delaysMs[tries - 1]);
    if (waitMs === null) throw error;
    const facts = { err: error, provider: provider.name, detail: error.options.detail, tries, waitMs };
    call.logger.info(facts, "model call is tried again");
    await deps.sleep(waitMs, call.signal);
  }

  return {
    name: provider.name,
    async *stream(request: ModelRequest, signal: AbortSignal, logger = deps.logger): AsyncGenerator<ProviderEvent> {
      for (let tries = 1; ; tries += 1) {
        let isSeen = false;
        try {
          for await (const event of provider.stream(request, signal, logger)) {
            isSeen = true;
            yield event;
          }
          return;
        } catch (error) {
          if (isSeen || signal.aborted || !(error instanceof ProviderError)) throw error;
          await waitBeforeRetry(error, tries, { signal, logger });
        }
      }
    },
  };
}

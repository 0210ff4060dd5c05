/**
 * Providers whose calls are timed: to the first piece and to the end, by provider and outcome. It changes no event and no
 * error. Invariant: every request is counted once, however its stream is left.
 */
import type { Logger } from "../../logger.js";
import type { Metrics } from "../../metrics.js";
import { type ModelRequest, type Provider, ProviderError, type ProviderEvent } from "./provider.js";
import type { Providers } from "./registry.js";

function failureOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return "aborted";
  return error instanceof ProviderError ? error.code : "error";
}

function measured(provider: Provider, metrics: Metrics): Provider {
  const { name } = provider;
  return {
    name,
    async *stream(request: ModelRequest, signal: AbortSignal, logger?: Logger): AsyncGenerator<ProviderEvent> {
      const startedMs = performance.now();
      let isFirst = true;
      // What stays when the reader walks away.
      let outcome = "aborted";
      try {
        for await (const event of provider.stream(request, signal, logger)) {
          if (isFirst) metrics.observe("model_first_byte_seconds", { provider: name }, performance.now() - startedMs);
          isFirst = false;
          if (event.type === "finish") outcome = "ok";
          yield event;
        }
      } catch (error) {
        outcome = failureOf(error, signal);
        throw error;
      } finally {
        metrics.observe("model_call_seconds", { provider: name, outcome }, performance.now() - startedMs);
      }
    },
  };
}

/** The same providers, timed. */
export function withModelMetrics(providers: Providers, metrics: Metrics): Providers {
  const made = new Map<Provider, Provider>();
  return {
    resolve(name) {
      const resolved = providers.resolve(name);
      const known = made.get(resolved.provider) ?? measured(resolved.provider, metrics);
      made.set(resolved.provider, known);
      return { ...resolved, provider: known };
    },
  };
}

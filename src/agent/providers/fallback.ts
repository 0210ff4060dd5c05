/**
 * Several models in order: when one cannot be reached or used, the next is asked, each with retries of its own. It never
 * goes on after anything of an answer was seen, and a refused request is refused by everyone, so it is not handed on.
 * It knows no model's context window, so the configured one is planned with for all of them. Invariant: a chain that
 * fails throws the last error and says once, in one line, that it gave up. [RUN-32..35]
 */
import type { Logger } from "../../logger.js";
import { type CallEnd, CircuitBreaker } from "./breaker.js";
import {
  type ModelRequest,
  type Provider,
  ProviderError,
  type ProviderErrorCode,
  type ProviderEvent,
} from "./provider.js";
import type { Providers, ResolvedModel } from "./registry.js";
import { type RetryDeps, withRetries } from "./retry.js";

/** What a chain needs beside its models. */
export interface FallbackDeps {
  /** Names of the models to ask when the first cannot be used, in order. */
  names: readonly string[];
  retries: RetryDeps;
  logger: Logger;
  /** Ms of any clock that does not go back; for the first model's circuit breaker. */
  nowMs(): number;
}

/** Whether another model may fare better. [RUN-33] */
function isWorthAnother(code: ProviderErrorCode): boolean {
  switch (code) {
    case "PROVIDER_AUTH":
    case "PROVIDER_INCOMPLETE":
    case "PROVIDER_NO_KEY":
    case "PROVIDER_QUOTA":
    case "PROVIDER_RATE_LIMITED":
    case "PROVIDER_SERVER":
    case "PROVIDER_TIMEOUT":
    case "PROVIDER_UNREACHABLE":
      return true;
    case "PROVIDER_INVALID":
    case "PROVIDER_MODEL_UNKNOWN":
      return false;
    default:
      return code satisfies never;
  }
}

/** A model of the chain; only the first one has a breaker, and only when there is another to ask instead. */
interface Candidate extends ResolvedModel {
  breaker: CircuitBreaker | null;
}

function endOf(error: unknown, signal: AbortSignal): CallEnd {
  const isItsFault = !signal.aborted && error instanceof ProviderError && isWorthAnother(error.code);
  return isItsFault ? "failure" : "neither";
}

/** One model call over a chain. */
interface Call {
  request: ModelRequest;
  signal: AbortSignal;
  logger: Logger;
  /** Logs a failure; true when the next model shall be asked. */
  goesOn(failed: Candidate, next: Candidate | undefined, error: ProviderError): boolean;
}

/** Asks one model and tells its breaker how that ended. False: the next one shall be asked. */
async function* ask(
  candidate: Candidate,
  next: Candidate | undefined,
  { request, signal, logger, goesOn }: Call,
): AsyncGenerator<ProviderEvent, boolean> {
  const leave = candidate.breaker === null ? () => {} : candidate.breaker.enter();
  if (leave === null) return false;
  let end: CallEnd = "neither";
  let isSeen = false;
  try {
    for await (const event of candidate.provider.stream({ ...request, model: candidate.model }, signal, logger)) {
      isSeen = true;
      yield event;
    }
    end = "success";
    return true;
  } catch (error) {
    end = endOf(error, signal);
    if (signal.aborted || !(error instanceof ProviderError)) throw error;
    if (!goesOn(candidate, isSeen ? undefined : next, error)) throw error;
    return false;
  } finally {
    // Also when the consumer walked away.
    leave(end);
  }
}

function chainOf(candidates: readonly Candidate[], processLogger: Logger): Provider {
  const decide =
    (logger: Logger): Call["goesOn"] =>
    (failed, next, error) => {
      const facts = { err: error, model: failed.label, detail: error.options.detail };
      if (next !== undefined && isWorthAnother(error.code)) {
        logger.warn({ ...facts, next: next.label }, "a model failed, the next one is asked");
        return true;
      }
      logger.warn({ ...facts, models: candidates.map(({ label }) => label) }, "model call gave up");
      return false;
    };

  return {
    name: candidates[0]?.provider.name ?? "none",
    async *stream(request: ModelRequest, signal: AbortSignal, logger = processLogger): AsyncGenerator<ProviderEvent> {
      const goesOn = decide(logger);
      for (const [position, candidate] of candidates.entries()) {
        const isAnswered = yield* ask(candidate, candidates[position + 1], { request, signal, logger, goesOn });
        if (isAnswered && position > 0) logger.info({ model: candidate.label }, "a fallback model answered");
        if (isAnswered) return;
      }
    },
  };
}

function breakerOf({ label }: ResolvedModel, { nowMs, logger }: FallbackDeps): CircuitBreaker {
  const onOpen = (openMs: number) => logger.warn({ model: label, openMs }, "a model fails too often and is left out");
  return new CircuitBreaker({ nowMs, onOpen });
}

/** The same models with retries, and with the fallbacks behind each. */
export function withFallbacks(providers: Providers, deps: FallbackDeps): Providers {
  const { logger } = deps;
  const chains = new Map<string, ResolvedModel>();
  const warned = new Set<string>();

  function resolveFallback(name: string): ResolvedModel[] {
    try {
      return [providers.resolve(name)];
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      if (!warned.has(name)) logger.warn({ err: error, model: name }, "a fallback model cannot be used and is skipped");
      warned.add(name);
      return [];
    }
  }

  function chain(first: ResolvedModel): ResolvedModel {
    const known = chains.get(first.label);
    if (known !== undefined) return known;
    const models = new Map([first, ...deps.names.flatMap(resolveFallback)].map((model) => [model.label, model]));
    const candidates = [...models.values()].map((model, position): Candidate => {
      const breaker = position === 0 && models.size > 1 ? breakerOf(model, deps) : null;
      return { ...model, provider: withRetries(model.provider, deps.retries), breaker };
    });
    const made = { ...first, provider: chainOf(candidates, logger) };
    chains.set(first.label, made);
    return made;
  }

  return { resolve: (name) => chain(providers.resolve(name)) };
}

/**
 * The part of the composition root that knows models: which one answers, and what stands behind it. It starts nothing.
 * Invariant: `auto` means the same model for everything in one process, since it is settled once, before anything else.
 */
import { sleepMs } from "./agent/providers/abort.js";
import { withFallbacks } from "./agent/providers/fallback.js";
import { withModelMetrics } from "./agent/providers/measured.js";
import { findOllamaModel } from "./agent/providers/ollama.js";
import { createProviders, type Providers } from "./agent/providers/registry.js";
import { STANDARD_DELAYS_MS } from "./agent/providers/retry.js";
import type { LoadedConfig } from "./config/load.js";
import type { GatewayOptions } from "./gateway-options.js";
import type { Logger } from "./logger.js";
import type { Metrics } from "./metrics.js";

type Config = LoadedConfig["config"];

/** The configured model by name; the text of what is wrong when there is none. */
export function labelOf(providers: Providers): string {
  try {
    return providers.resolve().label;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What a person calls the model that answers, `auto` resolved; the text of what is wrong when there is none. */
export function modelLabelOf({ agent, providers }: Config): string {
  return labelOf(createProviders({ ...agent, providers }));
}

/**
 * The configuration with `auto` settled where only asking tells: when no provider has a key, an Ollama that answers at
 * once is taken. Nobody is asked, and nothing waits, when there is a key or a model is named.
 */
export async function settleModel({
  loaded,
  logger,
}: Pick<GatewayOptions, "loaded" | "logger">): Promise<LoadedConfig> {
  const { config, ollamaUrl } = loaded;
  const written = config.providers.ollama;
  const address = written?.baseUrl ?? ollamaUrl;
  if (config.agent.model !== "auto" || modelLabelOf(config) !== "demo" || address === null) return loaded;
  const onAbsent = (err: unknown) => logger.debug({ err, address }, "no Ollama answers");
  const model = await findOllamaModel({ address, onAbsent });
  if (model === null) return loaded;
  // Ollama wants no key, but one on another host is only asked with one.
  const ollama = written ?? { kind: "openai" as const, apiKey: "ollama", baseUrl: `${address}/v1` };
  const agent = { ...config.agent, model: `ollama/${model}` };
  return { ...loaded, config: { ...config, agent, providers: { ...config.providers, ollama } } };
}

/** The models of a configuration, each with its retries and with the fallbacks behind it. */
export function assembleModels({ agent, providers }: Config, logger: Logger, metrics: Metrics): Providers {
  return withFallbacks(withModelMetrics(createProviders({ ...agent, providers }), metrics), {
    names: agent.fallbackModels,
    retries: { delaysMs: STANDARD_DELAYS_MS, logger, sleep: sleepMs },
    logger,
    nowMs: () => performance.now(),
  });
}

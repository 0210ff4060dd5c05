/**
 * From a model's name to the provider that serves it. Adding a kind of provider is one file and one line in `KINDS`.
 * It connects to nothing and reads no environment. Invariant: a name resolves to the same provider object every time,
 * and a name nobody serves is an error that lists the names there are.
 */
import { createAnthropicProvider } from "./anthropic.js";
import { createDemoProvider } from "./demo.js";
import type { EndpointDeps } from "./endpoint.js";
import { createOpenAiProvider } from "./openai.js";
import { type Provider, ProviderError } from "./provider.js";

/** A provider as the config describes it. */
export interface ProviderSlice {
  kind: "openai" | "anthropic";
  apiKey: string | null;
  /** Null: the kind's own address. */
  baseUrl: string | null;
}

/** What this room needs of the config. */
export interface ProvidersSlice {
  /** `provider/model`, `demo`, or `auto`. */
  model: string;
  providers: Readonly<Record<string, ProviderSlice>>;
  requestTimeoutMs: number;
  streamIdleTimeoutMs: number;
}

/** A model ready to be asked. */
export interface ResolvedModel {
  provider: Provider;
  /** The name without its provider, as the wire wants it. */
  model: string;
  /** What a person calls it: `provider/model`, or `demo`. */
  label: string;
}

export interface Providers {
  /** Resolves a name; without one, the configured model. Throws `ProviderError`. */
  resolve(name?: string): ResolvedModel;
}

/** How each kind is made, and where it is when the config does not say. */
const KINDS: Readonly<Record<ProviderSlice["kind"], { create: (deps: EndpointDeps) => Provider; baseUrl: string }>> = {
  anthropic: { create: createAnthropicProvider, baseUrl: "https://api.anthropic.com" },
  openai: { create: createOpenAiProvider, baseUrl: "https://api.openai.com/v1" },
};

/** Models that `auto` takes, in the order in which their providers are preferred. */
const AUTO_MODELS: ReadonlyMap<string, string> = new Map([
  ["anthropic", "claude-sonnet-5"],
  ["openai", "gpt-5-mini"],
  ["openrouter", "openai/gpt-5-mini"],
]);

function unknownProvider(name: string, known: readonly string[]): ProviderError {
  const names = [...known.map((provider) => `${provider}/…`), "demo", "auto"].join(", ");
  return new ProviderError(
    "PROVIDER_MODEL_UNKNOWN",
    `No provider serves "${name}". A model is named provider/model; there are: ${names}. Correct agent.model, or add the provider to the config.`,
  );
}

/** The name that `auto` stands for. */
function autoName(slice: ProvidersSlice): string {
  const withKey = Object.keys(slice.providers).filter((name) => slice.providers[name]?.apiKey);
  const preferred = [...AUTO_MODELS.keys()].find((name) => withKey.includes(name));
  if (preferred !== undefined) return `${preferred}/${AUTO_MODELS.get(preferred)}`;
  // An Ollama may have a key and still no model: whether it answers is found out before, and no mistake.
  const other = withKey.find((name) => name !== "ollama");
  if (other === undefined) return "demo";
  throw new ProviderError(
    "PROVIDER_MODEL_UNKNOWN",
    `There is a key for ${other}, but "auto" knows no model of it. Name one in agent.model, as ${other}/<model>.`,
  );
}

/** The providers of one configuration. */
export function createProviders(slice: ProvidersSlice): Providers {
  const made = new Map<string, Provider>();

  function create(name: string, { kind, apiKey, baseUrl }: ProviderSlice): Provider {
    const { requestTimeoutMs, streamIdleTimeoutMs } = slice;
    const address = baseUrl ?? KINDS[kind].baseUrl;
    return KINDS[kind].create({ name, apiKey, baseUrl: address, requestTimeoutMs, streamIdleTimeoutMs });
  }

  function providerNamed(name: string): Provider | undefined {
    const known = made.get(name);
    if (known !== undefined) return known;
    const described = Object.hasOwn(slice.providers, name) ? slice.providers[name] : undefined;
    if (described === undefined && name !== "demo") return undefined;
    const provider = described === undefined ? createDemoProvider() : create(name, described);
    made.set(name, provider);
    return provider;
  }

  return {
    resolve(name = slice.model) {
      const label = name === "auto" ? autoName(slice) : name;
      const slash = label.indexOf("/");
      const [prefix, model] = slash < 0 ? [label, ""] : [label.slice(0, slash), label.slice(slash + 1)];
      const provider = model === "" && prefix !== "demo" ? undefined : providerNamed(prefix);
      if (provider === undefined) throw unknownProvider(label, Object.keys(slice.providers));
      return { provider, model: model === "" ? prefix : model, label };
    },
  };
}

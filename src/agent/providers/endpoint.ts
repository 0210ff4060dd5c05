/**
 * What every provider over HTTP is made from, and the checks that need no connection. It connects to nothing.
 * Invariant: an address with credentials in it, or a far one without a key, is refused before anything is sent.
 */
import { ProviderError } from "./provider.js";
import { type Endpoint, providerFailure } from "./provider-errors.js";

/** Where and how to ask. */
export interface EndpointDeps {
  /** The provider's name in the config, for messages. */
  name: string;
  /** Null: none is set; only a server on this machine is asked without one. */
  apiKey: string | null;
  baseUrl: string;
  /** Limit of one whole model call; 0 for none. */
  requestTimeoutMs: number;
  /** Longest silence between two chunks, and before the first; 0 for no limit. */
  streamIdleTimeoutMs: number;
}

function isLoopback(baseUrl: string): boolean {
  const host = new URL(baseUrl).hostname;
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127\./.test(host);
}

/** Throws `ProviderError` when the endpoint can never answer. `example` shows what an address looks like. */
export function assertUsable(endpoint: Endpoint, example: string): void {
  const { name, baseUrl, apiKey } = endpoint;
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new ProviderError(
      "PROVIDER_INVALID",
      `providers.${name}.baseUrl is not a plain http or https address. Write it without user name and password, for instance ${example}.`,
    );
  }
  if (apiKey === null && !isLoopback(baseUrl)) throw providerFailure("PROVIDER_NO_KEY", endpoint);
}

/**
 * What a user is told when a turn fails: one short, fixed sentence by kind. Never a provider's own words, never a stack,
 * since the chat may be a group. Invariant: nothing that came from outside is in it.
 */
import type { ProviderErrorCode } from "./providers/provider.js";

const SENTENCES: Readonly<Record<ProviderErrorCode, string>> = {
  PROVIDER_AUTH:
    "The model provider refused the gateway's API key, so I cannot answer. The operator must check the key.",
  PROVIDER_INCOMPLETE: "The model's answer broke off. Please try again.",
  PROVIDER_INVALID: "The model provider refused this request. The operator finds the reason in the log.",
  PROVIDER_MODEL_UNKNOWN: "The configured model does not exist at the provider. The operator must correct agent.model.",
  PROVIDER_NO_KEY: "No API key is configured for the model provider. The operator must set it.",
  PROVIDER_QUOTA: "The model provider's account has no quota left. The operator must check its billing.",
  PROVIDER_RATE_LIMITED: "The model provider is too busy just now. Please try again in a minute.",
  PROVIDER_SERVER: "The model provider has a problem just now. Please try again in a minute.",
  PROVIDER_TIMEOUT: "The model did not answer in time. Please try again.",
  PROVIDER_UNREACHABLE: "The model provider cannot be reached. The operator must check the network and its base URL.",
};

export function apologyFor(code: ProviderErrorCode): string {
  return SENTENCES[code];
}

/** Said when a message was given up after its last try. */
export const GIVE_UP_NOTICE =
  "Sorry, I could not answer this message, even after several tries. Please send it again later.";

/** Stands in history where a model failed, so that roles alternate and no error text is learned from. [RUN-18] */
export const FAILED_ROW = "[No answer was given: the model could not be used.]";
export const STOPPED_ROW = "[Stopped by the user.]";
export const INTERRUPTED_ROW = "[This turn was interrupted before it was answered.]";

/** Results of calls that have none. */
export const INTERRUPTED_CALL = "Interrupted: the process that ran this call ended. Whether it took effect is unknown.";
export const STOPPED_CALL = "Stopped by the user before a result was known.";
export const EXPIRED_CALL = "No answer came in time.";

/**
 * What went wrong with a model call, in one of our codes and in words a person can act on. Pure. Invariants: no message
 * holds a key, a URL's credentials or the provider's own words (those go to `detail`, for the log); an explicit word of
 * the provider on retrying is obeyed.
 */
import { ProviderError, type ProviderErrorCode } from "./provider.js";

/** Which endpoint was asked, for the wording; the key only to take it out of `detail`. */
export interface Endpoint {
  name: string;
  baseUrl: string;
  model: string;
  apiKey: string | null;
}

const DETAIL_MAX_CHARS = 2000;
const QUOTA =
  /insufficient_quota|quota|billing|credit balance|api usage limit|insufficient (?:balance|funds|credit)|payment required/i;
const NO_MODEL = /model_not_found|model\b.{0,80}(?:not found|does not exist|not exist|unknown|not supported)/i;
const TLS = /^(CERT_|ERR_TLS_|ERR_SSL_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_)/;
const SILENCE = /^(UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT)$/;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Host and port of a URL, without its credentials. */
export function hostOf(baseUrl: string): string {
  const url = new URL(baseUrl);
  return `${url.hostname}:${url.port || (url.protocol === "http:" ? "80" : "443")}`;
}

/** Milliseconds from `retry-after-ms`, or `retry-after` as seconds or HTTP date; undefined when there is none. */
export function retryAfterMsOf(headers: unknown, nowMs: number): number | undefined {
  if (!(headers instanceof Headers)) return undefined;
  const exact = headers.get("retry-after-ms");
  if (exact !== null && /^\d+(\.\d+)?$/.test(exact.trim())) return Math.ceil(Number(exact));
  const after = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+(\.\d+)?$/.test(after)) return Math.ceil(Number(after) * 1000);
  const date = after === "" ? Number.NaN : Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

function retryFlagOf(headers: unknown): boolean | undefined {
  const flag = headers instanceof Headers ? headers.get("x-should-retry") : null;
  return flag === "true" ? true : flag === "false" ? false : undefined;
}

function systemCodeOf(error: unknown, depth = 0): string | undefined {
  if (!isRecord(error) || depth > 5) return undefined;
  const own = typeof error.code === "string" && /^[A-Z][A-Z_]+$/.test(error.code) ? error.code : undefined;
  const first = Array.isArray(error.errors) ? error.errors[0] : undefined;
  return own ?? systemCodeOf(error.cause, depth + 1) ?? systemCodeOf(first, depth + 1);
}

function statusOf(error: Record<string, unknown>): number | undefined {
  const named = [error.status, error.code].map(Number).find((value) => value >= 400 && value <= 599);
  if (named !== undefined) return named;
  const body = isRecord(error.error) ? Number(error.error.code) : Number.NaN;
  return body >= 400 && body <= 599 ? body : undefined;
}

function codeOf(status: number | undefined, text: string): ProviderErrorCode {
  if (status === 402 || ([400, 403, 429].includes(status ?? 0) && QUOTA.test(text))) return "PROVIDER_QUOTA";
  if (status === 401 || status === 403) return "PROVIDER_AUTH";
  if (status === 404 || (status === 400 && NO_MODEL.test(text))) return "PROVIDER_MODEL_UNKNOWN";
  if (status === 429) return "PROVIDER_RATE_LIMITED";
  if (status === 408 || status === 504) return "PROVIDER_TIMEOUT";
  if (status === 409 || (status !== undefined && status >= 500)) return "PROVIDER_SERVER";
  if (status !== undefined) return "PROVIDER_INVALID";
  if (QUOTA.test(text)) return "PROVIDER_QUOTA";
  return /rate.?limit/i.test(text) ? "PROVIDER_RATE_LIMITED" : "PROVIDER_SERVER";
}

function sentenceOf(code: ProviderErrorCode, endpoint: Endpoint): string {
  const { name, model } = endpoint;
  const host = hostOf(endpoint.baseUrl);
  switch (code) {
    case "PROVIDER_AUTH":
      return `${name} refused the API key. It is usually mistyped, revoked, or not allowed to use ${model}: check providers.${name}.apiKey.`;
    case "PROVIDER_MODEL_UNKNOWN":
      return `${name} knows no model "${model}" at ${host}. Check the spelling in agent.model, and that providers.${name}.baseUrl ends where the provider says (often in /v1).`;
    case "PROVIDER_QUOTA":
      return `The account at ${name} has no quota or credit left. Check its billing page, or choose another model.`;
    case "PROVIDER_RATE_LIMITED":
      return `${name} takes no more requests for the moment. Wait a little; if it stays, the account's rate limit is too low.`;
    case "PROVIDER_TIMEOUT":
      return `${name} at ${host} did not answer in time. It is usually overloaded, or the model is still loading: try again.`;
    case "PROVIDER_SERVER":
      return `${name} had a failure of its own. That usually passes within a minute: try again.`;
    case "PROVIDER_INVALID":
      return `${name} refused the request for ${model}. Usually the conversation is too long for the model, or the model does not take tools: the log has its reason.`;
    case "PROVIDER_UNREACHABLE":
      return `${name} cannot be reached at ${host}. Check the network, and providers.${name}.baseUrl.`;
    case "PROVIDER_INCOMPLETE":
      return `The connection to ${name} broke before the answer was complete. Usually a proxy or the network cut it; it can be tried again.`;
    case "PROVIDER_NO_KEY":
      return `There is no API key for ${name}. Set providers.${name}.apiKey, or the environment variable it names.`;
    default:
      return code satisfies never;
  }
}

/** A failure that we know by its code; `extra` goes into the error's options. */
export function providerFailure(
  code: ProviderErrorCode,
  endpoint: Endpoint,
  extra: ProviderError["options"] = {},
): ProviderError {
  return new ProviderError(code, sentenceOf(code, endpoint), extra);
}

function detailOf(error: Record<string, unknown>, apiKey: string | null): string {
  const text = typeof error.message === "string" ? error.message : String(error);
  const clean = apiKey ? text.replaceAll(apiKey, "[redacted]") : text;
  return clean.slice(0, DETAIL_MAX_CHARS);
}

function connectionFailure(error: unknown, endpoint: Endpoint, hasBegun: boolean): ProviderError {
  const code = systemCodeOf(error);
  const detail = code ?? (error instanceof Error ? error.message : String(error));
  if (code !== undefined && SILENCE.test(code)) return providerFailure("PROVIDER_TIMEOUT", endpoint, { cause: error });
  if (hasBegun) return providerFailure("PROVIDER_INCOMPLETE", endpoint, { cause: error, detail });
  const isTls = code !== undefined && TLS.test(code);
  const options = { cause: error, detail, ...(isTls ? { isTransient: false } : {}) };
  if (!isTls) return providerFailure("PROVIDER_UNREACHABLE", endpoint, options);
  const host = hostOf(endpoint.baseUrl);
  return new ProviderError(
    "PROVIDER_UNREACHABLE",
    `The certificate of ${host} is not trusted (${code}). Usually a proxy replaces it: add its certificate with NODE_EXTRA_CA_CERTS, or correct providers.${endpoint.name}.baseUrl.`,
    options,
  );
}

/** Translates whatever the client library threw. `hasBegun`: chunks of the answer had arrived already. */
export function translateError(error: unknown, endpoint: Endpoint, hasBegun: boolean): ProviderError {
  if (error instanceof ProviderError) return error;
  if (!isRecord(error)) return connectionFailure(error, endpoint, hasBegun);
  const status = statusOf(error);
  if (status === undefined && !isRecord(error.error)) return connectionFailure(error, endpoint, hasBegun);
  const text = [error.message, error.code, error.type].filter((part) => typeof part === "string").join(" ");
  const retryAfterMs = retryAfterMsOf(error.headers, Date.now());
  const isTransient = retryFlagOf(error.headers);
  return providerFailure(codeOf(status, text), endpoint, {
    cause: error,
    detail: detailOf(error, endpoint.apiKey),
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(isTransient === undefined ? {} : { isTransient }),
  });
}

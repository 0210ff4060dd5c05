/**
 * The official client of the OpenAI wire, loaded on first use, for one endpoint. It sends nothing by itself. Invariant: the
 * client takes nothing from the environment, logs nothing, retries nothing and sets no time limit of its own.
 */
import type OpenAI from "openai";
import type { EndpointDeps } from "./endpoint.js";
import { NEVER_MS } from "./guarded-stream.js";

/** A client for one endpoint. Nothing is connected before the first call. */
export async function createOpenAiClient(deps: Pick<EndpointDeps, "apiKey" | "baseUrl">): Promise<OpenAI> {
  const { default: Client } = await import("openai");
  return new Client({
    apiKey: deps.apiKey ?? "none",
    baseURL: deps.baseUrl,
    // Named, so that the client does not look for them in the environment.
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: "off",
    maxRetries: 0,
    timeout: NEVER_MS,
    defaultHeaders: { "X-Stainless-Timeout": null, ...(deps.apiKey === null ? { Authorization: null } : {}) },
  });
}

/**
 * Asks over HTTP whether a gateway answers where the configuration says it listens, and how it is. It starts nothing and
 * sends no token: the health routes ask for none. Invariant: it returns within its time limit and never throws for what
 * answers, or does not.
 */
import { z } from "zod";
import type { Problem } from "../http/health.js";

const LIMIT_MS = 2_000;

const health = z.object({ status: z.string(), role: z.string(), version: z.string(), pid: z.number() });
const readiness = z.object({
  problems: z.array(z.object({ part: z.string(), problem: z.string(), advice: z.string() })),
});

/** What answers at an address. */
export type GatewayLook =
  | { state: "none" }
  /** Something listens that is not a gateway, or one that does not answer. */
  | { state: "other" }
  | { state: "gateway"; url: string; role: string; version: string; pid: number; problems: Problem[] };

/** Where a program on this machine reaches a gateway that listens on `host`. */
function urlOf({ host, port }: { host: string; port: number }): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reachable.includes(":") && !reachable.startsWith("[") ? `[${reachable}]` : reachable}:${port}`;
}

/** Looks once. A port of 0 is any port, so there is nowhere to look. */
export async function lookForGateway(place: { host: string; port: number }): Promise<GatewayLook> {
  if (place.port === 0) return { state: "none" };
  const url = urlOf(place);
  try {
    const found = health.safeParse(await get(`${url}/healthz`));
    if (!found.success) return { state: "other" };
    const { role, version, pid } = found.data;
    const ready = readiness.safeParse(await get(`${url}/readyz`));
    const silent = { part: "readiness", problem: "The gateway did not say how it is.", advice: "Look at its log." };
    return { state: "gateway", url, role, version, pid, problems: ready.success ? ready.data.problems : [silent] };
  } catch (error) {
    return { state: isRefused(error) ? "none" : "other" };
  }
}

async function get(url: string): Promise<unknown> {
  const response = await fetch(url, { signal: AbortSignal.timeout(LIMIT_MS), redirect: "error" });
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Nobody listens: the connection was refused, on every address of the name. */
function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : null;
  const errors = cause instanceof AggregateError ? cause.errors : [cause];
  return errors.every((each: unknown) => each instanceof Error && "code" in each && each.code === "ECONNREFUSED");
}

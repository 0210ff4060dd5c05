/**
 * Where the gateway may listen; pure. Asked before anything starts. Invariant: nobody but this machine reaches a gateway
 * that has no token.
 */
import { NanogateError } from "../errors.js";

/** True for names and addresses that only this machine reaches. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Throws `BIND_NEEDS_TOKEN` when others could reach a gateway without a token. */
export function assertBindAllowed({ host, token }: { host: string; token: string | null }): void {
  if (isLoopbackHost(host) || (token !== null && token !== "")) return;
  throw new NanogateError("BIND_NEEDS_TOKEN", `Listening on ${host} lets other machines in, and no token is set.`);
}

/** What a gateway is made from. Types only, so that both halves of the composition root may know them. */
import type { LoadedConfig } from "./config/load.js";
import type { Logger } from "./logger.js";

/** `all`: everything. `channels`: platforms and HTTP. `worker`: turns. `direct`: one caller, no server, no queue. */
export type Role = "all" | "channels" | "worker" | "direct";

export interface GatewayOptions {
  loaded: LoadedConfig;
  role: Role;
  logger: Logger;
  /** Ends a start that waits for Redis. */
  signal: AbortSignal;
}

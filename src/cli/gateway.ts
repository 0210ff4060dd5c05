/**
 * `nanogate gateway`: runs the daemon until a signal comes. The first SIGTERM or SIGINT stops it in order, a second one
 * ends it at once. Invariant: it ends by itself when stopping takes longer than it may.
 */
import { loadConfig } from "../config/load.js";
import { ensureToken, readToken } from "../config/token.js";
import { createGateway } from "../gateway.js";
import type { Role } from "../gateway-options.js";
import { createLogger } from "../logger.js";
import type { CommonOptions } from "./options.js";

interface GatewayCommandOptions extends CommonOptions {
  role: Role;
  host?: string;
  port?: number;
  ensureToken?: boolean;
}

/** Beyond `drainMs`: for flushing, closing, and leaving Redis. */
export const STOP_EXTRA_MS = 15_000;

function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => resolve(name));
  });
}

export async function gatewayCommand(options: GatewayCommandOptions): Promise<number> {
  const { config: file, workspace, host, port } = options;
  const request = { file, workspace, host, port };
  const first = await loadConfig(request);
  const needsToken = options.ensureToken === true && first.config.gateway.token === null;
  if (needsToken) await ensureToken(first.home);
  const loaded = needsToken ? await loadConfig(request) : first;
  const logger = createLogger({ level: loaded.logLevel, secrets: loaded.secrets });
  const starting = new AbortController();
  const signal = nextSignal();
  void signal.then(() => starting.abort(new Error("stopped while starting")));
  const gateway = await createGateway({ loaded, role: options.role, logger, signal: starting.signal }).catch(
    (error: unknown) => {
      if (starting.signal.aborted) return null;
      throw error;
    },
  );
  if (gateway === null) {
    logger.info({ signal: await signal }, "stopped while starting");
    return 0;
  }
  const isKept = options.ensureToken === true && loaded.config.gateway.token === (await readToken(loaded.home));
  if (isKept) logger.info("clients need the token of this home folder; `nanogate token` prints it");
  logger.info({ signal: await signal }, "stopping");
  const limitMs = loaded.config.gateway.drainMs + STOP_EXTRA_MS;
  void nextSignal().then(() => process.exit(1));
  setTimeout(() => {
    logger.error({ limitMs }, "stopping took too long");
    process.exit(1);
  }, limitMs).unref();
  await gateway.stop();
  logger.info("stopped");
  return 0;
}

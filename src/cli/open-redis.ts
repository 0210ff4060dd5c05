/**
 * Redis for commands, without a server of our own in front of it: to look, or with the bus and the leases to change
 * something. Invariant: what was opened is closed in the mirror of the order, also on Ctrl-C, and an embedded Redis that
 * runs only for a command does not outlive it.
 */

import { NanogateError } from "../errors.js";
import { assembleBus, type BusParts, findServer, type Server } from "../gateway-bus.js";
import { noMetrics } from "../metrics.js";
import { findEmbeddedRedis, leaveEmbeddedRedis } from "../redis/embedded.js";
import { clientName } from "../redis/embedded-probe.js";
import { probeRedis } from "../redis/probe.js";
import { connectRedisView, type RedisView } from "../redis/view.js";
import { faultsOf, type Opened } from "./open.js";

/** How long a command waits for a server that a URL names, ms. */
const REACH_LIMIT_MS = 5_000;
/** The embedded one may have to load its file first, ms. */
const START_LIMIT_MS = 60_000;
/** As a shell says that a signal ended a command. */
const SIGNAL_EXIT: Readonly<Record<string, number>> = { SIGINT: 130, SIGTERM: 143 };

/**
 * Shows what runs and waits in a workspace. `work` gets null where an embedded server would have to be started only to
 * look. Throws `REDIS_UNREACHABLE` or `REDIS_TOO_OLD`.
 */
export async function lookIntoRedis<T>(
  opened: Opened,
  workspaceId: string,
  work: (view: RedisView | null) => Promise<T>,
): Promise<T> {
  const server = await runningServer(opened);
  return server === null ? work(null) : viewServer({ opened, workspaceId, server }, work);
}

/** The same, but started if need be: for what is kept also while nothing runs. */
export async function openRedisView<T>(
  opened: Opened,
  workspaceId: string,
  work: (view: RedisView) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(START_LIMIT_MS);
  const server = await findServer({ ...opened, signal }).catch((error: unknown) => Promise.reject(tooSlow(error)));
  return viewServer({ opened, workspaceId, server }, work);
}

/** The bus and the leases of a workspace. Throws `REDIS_UNREACHABLE`, `REDIS_MISSING` or `REDIS_TOO_OLD`. */
export async function openBus<T>(
  opened: Opened,
  workspaceId: string,
  work: (parts: BusParts) => Promise<T>,
): Promise<T> {
  const { loaded, logger } = opened;
  const { url } = loaded.config.redis;
  if (url !== null) await probeRedis(addressOf(url), clientName(), REACH_LIMIT_MS);
  const faults = faultsOf(loaded);
  const signal = AbortSignal.timeout(START_LIMIT_MS);
  const assembling = assembleBus({ loaded, role: "direct", logger, workspaceId, faults, signal, metrics: noMetrics });
  const parts = await assembling.catch((error: unknown) => Promise.reject(tooSlow(error)));
  const close = async () => {
    parts.lock.stop();
    await parts.close();
  };
  return closing(close, async () => {
    await parts.lock.start();
    return work(parts);
  });
}

function addressOf(url: string): Server["address"] {
  return url.startsWith("/") ? { socketPath: url } : { url };
}

/** The server where one runs; an embedded one is not started. */
async function runningServer({ loaded, logger }: Opened): Promise<Server | null> {
  const { url } = loaded.config.redis;
  if (url !== null) return { address: addressOf(url), onUnreachable: null, leave: async () => {} };
  const folder = loaded.redisFolder;
  const found = await findEmbeddedRedis(folder);
  if (found === null) return null;
  // Whoever stops meanwhile sees us connected and leaves the stopping to us.
  const leave = () => leaveEmbeddedRedis({ folder, logger, signal: AbortSignal.timeout(15_000) });
  return { address: found, onUnreachable: null, leave };
}

interface Viewing {
  opened: Opened;
  workspaceId: string;
  server: Server;
}

async function viewServer<T>(
  { opened, workspaceId, server }: Viewing,
  work: (view: RedisView) => Promise<T>,
): Promise<T> {
  const { address } = server;
  const name = clientName();
  const open: { view: RedisView | null } = { view: null };
  const close = async () => {
    await open.view?.close();
    await server.leave();
  };
  return closing(close, async () => {
    await probeRedis(address, name, REACH_LIMIT_MS);
    const { logger, loaded } = opened;
    const { prefix } = loaded.config.redis;
    const options = { address, clientName: name, prefix, workspaceId, deadlineMs: REACH_LIMIT_MS, logger };
    open.view = await connectRedisView(options, AbortSignal.timeout(REACH_LIMIT_MS));
    return work(open.view);
  });
}

/** Runs `work`, then `end`, once and whatever happened; a signal does the latter first and then ends the process. */
async function closing<T>(end: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  let ending: Promise<void> | null = null;
  const close = (): Promise<void> => {
    ending ??= end();
    return ending;
  };
  const onSignal = (name: NodeJS.Signals) => void close().finally(() => process.exit(SIGNAL_EXIT[name] ?? 1));
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, onSignal);
  try {
    return await work();
  } catch (error) {
    throw tooSlow(error);
  } finally {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.removeListener(name, onSignal);
    await close();
  }
}

/** A time limit of ours as the failure that it means; anything else as it is. */
function tooSlow(error: unknown): unknown {
  const isLimit = error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError");
  return isLimit ? new NanogateError("REDIS_UNREACHABLE", "Redis did not answer in time.", { cause: error }) : error;
}

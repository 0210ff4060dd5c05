/**
 * The embedded Redis: one server for each home, shared by its processes, started by whoever comes first and stopped by
 * whoever leaves last. It knows no key and keeps no connection. Invariant: at most one server runs on a folder; a second
 * one would silently take the socket over and both would write one append-only file.
 *
 * A client whose reconnect fails calls `ensureEmbeddedRedis` again: the server may have been killed, or stopped by one
 * who left just before the client had connected.
 */
import { existsSync } from "node:fs";
import type { Redis } from "ioredis";
import { NanogateError } from "../errors.js";
import type { Logger } from "../logger.js";
import { underLock } from "./embedded-lock.js";
import { pause, pidOfClientName, probeServer, withConnection } from "./embedded-probe.js";
import { endUnreachableServer, type Place, placeOf, serverPid, startServer } from "./embedded-server.js";

/** For starting, and for waiting until another process has; loading a large file takes its time. */
const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 10_000;
const LOOK_EVERY_MS = 10;

/** What is needed to use the embedded server. */
export interface EmbeddedRedisDeps {
  /** Its folder; made where it is missing. */
  folder: string;
  fsync: "everysec" | "always";
  logger: Logger;
  signal: AbortSignal;
}

/**
 * Returns when a server answers on the socket, started here if need be. Throws `REDIS_MISSING`, `REDIS_UNREACHABLE`, or
 * the signal's reason.
 */
export async function ensureEmbeddedRedis(deps: EmbeddedRedisDeps): Promise<{ socketPath: string }> {
  const { logger, signal } = deps;
  const place = await placeOf(deps.folder);
  const deadline = Date.now() + START_LIMIT_MS;
  const limits = { logger, signal, limitMs: START_LIMIT_MS };
  const whenReady = async () => ((await isReady(place, signal, deadline)) ? true : null);
  await underLock({ ...limits, folder: place.folder }, whenReady, async (held) => {
    if (await isReady(place, held, deadline)) return true;
    const start = { ...limits, ...place, fsync: deps.fsync, signal: held };
    await endUnreachableServer(start);
    await startServer(start);
    return true;
  });
  await withConnection(place.socketPath, (client) => applyFsync(client, deps));
  return { socketPath: place.socketPath };
}

/** The socket of the server that runs now; null when none runs. Starts nothing and makes no folder. */
export async function findEmbeddedRedis(folder: string): Promise<{ socketPath: string } | null> {
  if (!existsSync(folder)) return null;
  const { socketPath } = await placeOf(folder);
  return (await probeServer(socketPath)).state === "absent" ? null : { socketPath };
}

/** True when a server answers, false when nobody listens; one that is loading or slow must not get a second beside it. */
async function isReady(place: Place, signal: AbortSignal, deadline: number): Promise<boolean> {
  for (;;) {
    const { state } = await probeServer(place.socketPath);
    if (state !== "busy") return state === "ready";
    if (Date.now() > deadline) {
      throw new NanogateError("REDIS_UNREACHABLE", `The embedded Redis in ${place.folder} runs but does not answer.`);
    }
    await pause(LOOK_EVERY_MS, signal);
  }
}

/** A server that runs already may have been started with another setting. */
async function applyFsync(client: Redis, { fsync, folder, logger }: EmbeddedRedisDeps): Promise<void> {
  const present: unknown = Object.values(await client.config("GET", "appendfsync")).at(-1);
  if (present === fsync) return;
  await client.config("SET", "appendfsync", fsync);
  logger.info({ folder, fsync }, "the running Redis was set to another fsync");
}

/**
 * Called by a process after it closed its connections: stops the server when no other process is connected.
 * `stopped` is false when somebody is, or when no server ran. Throws `REDIS_UNREACHABLE`, or the signal's reason.
 */
export async function leaveEmbeddedRedis(deps: Omit<EmbeddedRedisDeps, "fsync">): Promise<{ stopped: boolean }> {
  const place = await placeOf(deps.folder);
  const whenAbsent = async () => ((await probeServer(place.socketPath)).state === "absent" ? { stopped: false } : null);
  const lock = { ...deps, folder: place.folder, limitMs: STOP_LIMIT_MS };
  return underLock(lock, whenAbsent, async (held) => {
    const isTold = await withConnection(place.socketPath, async (client) => {
      return !(await hasOthers(client)) && (await shutDown(client, deps.logger));
    });
    return { stopped: isTold === true && (await hasEnded(place, held)) };
  });
}

async function hasOthers(client: Redis): Promise<boolean> {
  const names = [...String(await client.client("LIST")).matchAll(/ name=(\S*)/g)].map(([, name]) => name ?? "");
  return names.map(pidOfClientName).some((pid) => pid !== null && pid !== process.pid);
}

/** True when the server took the order: it answers by closing the connection, and only a refusal by words. */
async function shutDown(client: Redis, logger: Logger): Promise<boolean> {
  try {
    await client.shutdown();
  } catch (err) {
    if (!(err instanceof Error) || err.name !== "ReplyError") return true;
    logger.warn({ err }, "the embedded Redis does not want to stop now; it goes on");
  }
  return false;
}

async function hasEnded(place: Place, signal: AbortSignal): Promise<boolean> {
  const deadline = Date.now() + STOP_LIMIT_MS;
  while (Date.now() < deadline) {
    const isAbsent = (await probeServer(place.socketPath)).state === "absent";
    if (isAbsent && (await serverPid(place.folder)) === null) return true;
    await pause(LOOK_EVERY_MS, signal);
  }
  return false;
}

/**
 * Asks a Redis on a unix socket how it is, over a connection of its own that is closed again. It starts and stops
 * nothing. Invariant: "absent" is said only when nobody listens on the socket; a server that is slow, loading or
 * stopped is never taken for none.
 */
import { setTimeout as wait } from "node:timers/promises";
import { Redis } from "ioredis";
import { NanogateError } from "../errors.js";

/** Waits; throws the signal's own reason on abort. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error;
  });
}

/** What listens on a socket: nobody, a server (with its process id), or one that does not answer or is loading. */
export type ServerState = { state: "absent" } | { state: "ready"; pid: number } | { state: "busy" };

/** True for an error of the system, or of a library that speaks like it, with this code. */
export function hasErrno(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}

/** The name under which every connection of this process is known to the server. */
export function clientName(): string {
  return `nanogate:${process.pid}`;
}

/** The process id in a name made by `clientName`; null for any other name. */
export function pidOfClientName(name: string): number | null {
  const [, pid] = /^nanogate:(\d+)$/.exec(name) ?? [];
  return pid === undefined ? null : Number(pid);
}

/** Runs `work` over one connection without retries. Null when nobody listens. Throws what the connection throws. */
export async function withConnection<T>(socketPath: string, work: (client: Redis) => Promise<T>): Promise<T | null> {
  const client = new Redis({
    path: socketPath,
    lazyConnect: true,
    connectionName: clientName(),
    connectTimeout: 1000,
    commandTimeout: 1000,
    disconnectTimeout: 200,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // The promise of connect() only says "closed"; the reason comes as an event.
  let reason: unknown;
  client.on("error", (error: unknown) => {
    reason = error;
  });
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    if (isAbsent(reason) || isAbsent(error)) return null;
    throw reason ?? error;
  } finally {
    // On a closed connection it would set a timer that nothing clears, and hold the process up for its length.
    if (client.status !== "end") client.disconnect();
  }
}

function isAbsent(error: unknown): boolean {
  return hasErrno(error, "ECONNREFUSED", "ENOENT");
}

/** What listens on the socket now. Throws `REDIS_UNREACHABLE` when the socket may not be used. */
export async function probeServer(socketPath: string): Promise<ServerState> {
  try {
    const state = await withConnection(socketPath, async (client): Promise<ServerState> => {
      const pid = Number(/^process_id:(\d+)/m.exec(await client.info("server"))?.[1]);
      const answer = await client.ping().catch((error: unknown) => String(error));
      return answer === "PONG" ? { state: "ready", pid } : { state: "busy" };
    });
    return state ?? { state: "absent" };
  } catch (cause) {
    if (hasErrno(cause, "EACCES")) {
      throw new NanogateError("REDIS_UNREACHABLE", `The socket ${socketPath} belongs to another user.`, { cause });
    }
    return { state: "busy" };
  }
}

/**
 * The server process of the embedded Redis: where its socket is, starting it, and finding one whose socket is gone.
 * It takes no lock: whoever calls `startServer` or `endUnreachableServer` holds it. Invariant: two servers never write
 * one append-only file, since one that lives without a socket is ended before another begins.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmod, lstat, mkdir, open, readFile, realpath, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { NanogateError } from "../errors.js";
import type { Logger } from "../logger.js";
import { hasErrno, pause, probeServer } from "./embedded-probe.js";
import { isProcessOf } from "./embedded-process.js";

/** Longer ones do not fit into a socket address on every system. */
const SOCKET_PATH_MAX_BYTES = 100;
const LOG_MAX_BYTES = 1024 * 1024;
const LOOK_EVERY_MS = 15;
const BINARIES = ["redis-server", "valkey-server"];

/** One embedded server. */
export interface Place {
  /** Its folder, without symbolic links. */
  folder: string;
  socketPath: string;
}

/** Makes the folder of a server, for its owner only, and says where the socket is. Throws `REDIS_UNREACHABLE`. */
export async function placeOf(folder: string): Promise<Place> {
  const real = await makeFolder(folder);
  const near = path.join(real, "redis.sock");
  if (Buffer.byteLength(near) <= SOCKET_PATH_MAX_BYTES) return { folder: real, socketPath: near };
  const short = path.join(tmpdir(), `nanogate-${hashOf(real)}`);
  await makePrivate(short);
  return { folder: real, socketPath: path.join(short, "redis.sock") };
}

async function makeFolder(folder: string): Promise<string> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return await realpath(folder);
  } catch (cause) {
    const message = `The folder of the embedded Redis, ${folder}, cannot be made.`;
    throw new NanogateError("REDIS_UNREACHABLE", message, { cause });
  }
}

function hashOf(folder: string): string {
  return createHash("sha256").update(folder).digest("hex").slice(0, 16);
}

/** Another user may have put something under this name into the common temp folder: that is refused, not used. */
async function makePrivate(folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
    if (!hasErrno(error, "EEXIST")) throw error;
  });
  const { uid, mode } = await lstat(folder);
  const isOurs = uid === process.getuid?.() && (mode & 0o170_000) === 0o040_000;
  if (!isOurs) throw new NanogateError("REDIS_UNREACHABLE", `The folder ${folder} belongs to another user.`);
  await chmod(folder, 0o700);
}

/** What is needed to start a server. */
export interface StartDeps extends Place {
  fsync: "everysec" | "always";
  logger: Logger;
  signal: AbortSignal;
  limitMs: number;
}

/** Starts a server and returns when it answers. Throws `REDIS_MISSING` or `REDIS_UNREACHABLE`. */
export async function startServer(deps: StartDeps): Promise<void> {
  const child = await spawnServer(deps);
  try {
    await untilReady(deps, child);
  } catch (error) {
    child.kill("SIGTERM");
    throw error;
  } finally {
    child.unref();
  }
}

async function spawnServer(deps: StartDeps): Promise<ChildProcess> {
  const file = logFileIn(deps.folder);
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  const log = await open(file, size > LOG_MAX_BYTES ? "w" : "a", 0o600);
  try {
    for (const binary of BINARIES) {
      const child = spawn(binary, argumentsOf(deps), {
        cwd: deps.folder,
        detached: true,
        stdio: ["ignore", log.fd, log.fd],
      });
      const error: unknown = await once(child, "spawn").then(
        () => null,
        (reason: unknown) => reason,
      );
      if (error === null) return child;
      if (!hasErrno(error, "ENOENT")) {
        throw new NanogateError("REDIS_UNREACHABLE", `${binary} could not be started.`, { cause: error });
      }
    }
  } finally {
    await log.close();
  }
  throw new NanogateError("REDIS_MISSING", "No redis-server and no valkey-server was found on PATH.");
}

function argumentsOf({ folder, socketPath, fsync }: StartDeps): string[] {
  const settings: Record<string, string> = {
    port: "0",
    unixsocket: socketPath,
    unixsocketperm: "700",
    appendonly: "yes",
    appendfsync: fsync,
    save: "",
    "maxmemory-policy": "noeviction",
    dir: folder,
    pidfile: pidFileIn(folder),
    daemonize: "no",
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

async function untilReady(deps: StartDeps, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + deps.limitMs;
  while (Date.now() < deadline) {
    deps.signal.throwIfAborted();
    if (child.exitCode !== null || child.signalCode !== null) throw await endedAtOnce(deps.folder);
    const server = await probeServer(deps.socketPath);
    if (server.state === "ready" && server.pid === child.pid) return;
    if (server.state === "ready") {
      // Whoever started it held no lock; two must not write one file, and clients are on the other one.
      deps.logger.error({ folder: deps.folder, pid: server.pid }, "another Redis took the socket; ours is ended");
      child.kill("SIGTERM");
      return;
    }
    await pause(LOOK_EVERY_MS, deps.signal);
  }
  const message = `The embedded Redis did not get ready in time; its log is ${logFileIn(deps.folder)}.`;
  throw new NanogateError("REDIS_UNREACHABLE", message);
}

async function endedAtOnce(folder: string): Promise<NanogateError> {
  const file = logFileIn(folder);
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n").slice(-8).join("\n");
  const message = `The embedded Redis ended right after its start; its log is ${file}.`;
  return new NanogateError("REDIS_UNREACHABLE", message, { cause: new Error(lines) });
}

/** Ends a server that lives although nobody can reach its socket (a cleaner of temp folders removed it). */
export async function endUnreachableServer(deps: StartDeps): Promise<void> {
  const deadline = Date.now() + deps.limitMs;
  for (let isTold = false; ; ) {
    const pid = await serverPid(deps.folder);
    if (pid === null) return;
    if (!isTold) {
      deps.logger.warn({ folder: deps.folder, pid }, "a Redis without its socket was found; it is ended");
      process.kill(pid, "SIGTERM");
      isTold = true;
    }
    if (Date.now() > deadline) {
      const message = `A Redis with process id ${pid} uses ${deps.folder}, cannot be reached and does not end.`;
      throw new NanogateError("REDIS_UNREACHABLE", message);
    }
    await pause(LOOK_EVERY_MS, deps.signal);
  }
}

/** The process id of the living server of a folder; null when there is none. */
export async function serverPid(folder: string): Promise<number | null> {
  const text = await readFile(pidFileIn(folder), "utf8").catch((error: unknown) => {
    if (hasErrno(error, "ENOENT")) return "";
    throw error;
  });
  const pid = Number(text.trim());
  if (!Number.isSafeInteger(pid) || pid <= 1) return null;
  const isServer = (line: string) =>
    /^\S*(?:redis|valkey)-server\b/.test(line) && (line.includes(folder) || line.includes(hashOf(folder)));
  return (await isProcessOf(pid, isServer)) ? pid : null;
}

function logFileIn(folder: string): string {
  return path.join(folder, "redis.log");
}

function pidFileIn(folder: string): string {
  return path.join(folder, "redis.pid");
}

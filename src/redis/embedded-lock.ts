/**
 * The exclusive lock under which the embedded server is started and stopped, between processes and within one.
 * It knows no Redis. Invariant: at most one `work` runs at a time. The lock of a dead holder is taken over after 5 s, by
 * one process only: the library alone lets two who saw the same dead holder remove each other's lock.
 */
import { open, rm, rmdir, stat } from "node:fs/promises";
import path from "node:path";
import lockfile from "proper-lockfile";
import { NanogateError } from "../errors.js";
import type { Logger } from "../logger.js";
import { hasErrno, pause } from "./embedded-probe.js";

const STALE_MS = 5000;
const TRY_EVERY_MS = 40;

/** What the lock needs. */
export interface LockDeps {
  /** The folder that is locked; it exists. */
  folder: string;
  logger: Logger;
  signal: AbortSignal;
  /** How long to try. */
  limitMs: number;
}

/**
 * Runs `work` under the lock of a folder, unless `early`, asked before each try, gives a result without it. The signal
 * of `work` aborts with `deps.signal`, and when the lock is lost. Throws `REDIS_UNREACHABLE` after `limitMs`, and the
 * signal's reason on abort.
 */
export async function underLock<T>(
  deps: LockDeps,
  early: () => Promise<T | null>,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = Date.now() + deps.limitMs;
  for (;;) {
    deps.signal.throwIfAborted();
    const result = await early();
    if (result !== null) return result;
    const lock = await tryLock(deps);
    if (lock !== null) return await work(AbortSignal.any([deps.signal, lock.lost])).finally(lock.release);
    if (Date.now() > deadline) {
      const message = `The embedded Redis in ${deps.folder} is being started or stopped by another process for too long.`;
      throw new NanogateError("REDIS_UNREACHABLE", message);
    }
    await pause(TRY_EVERY_MS * (0.5 + Math.random()), deps.signal);
  }
}

interface Lock {
  lost: AbortSignal;
  release(): Promise<void>;
}

async function tryLock({ folder, logger }: LockDeps): Promise<Lock | null> {
  const lockfilePath = path.join(folder, "start.lock");
  await removeDead(lockfilePath);
  const lost = new AbortController();
  const release = await lockfile
    .lock(folder, {
      lockfilePath,
      stale: Number.POSITIVE_INFINITY,
      update: STALE_MS / 4,
      realpath: false,
      onCompromised: (cause) => {
        logger.warn({ err: cause, folder }, "the lock of the embedded Redis was lost");
        lost.abort(new NanogateError("REDIS_UNREACHABLE", `The lock in ${folder} was lost.`, { cause }));
      },
    })
    .catch((error: unknown) => {
      if (hasErrno(error, "ELOCKED")) return null;
      throw error;
    });
  if (release === null) return null;
  const mine = await look(lockfilePath);
  return {
    lost: lost.signal,
    // A holder that was frozen for long may have lost it without knowing: releasing would then remove another's.
    release: async () => {
      if (lost.signal.aborted || (await look(lockfilePath))?.identity !== mine?.identity) return;
      await release().catch((err: unknown) => logger.warn({ err, folder }, "the lock was not released"));
    },
  };
}

/**
 * Removes a lock that nobody has refreshed for 5 s. Who creates the claim named after this very lock may remove it, and
 * nobody else; the claim of one who died in between counts for another 5 s.
 */
async function removeDead(lockfilePath: string): Promise<void> {
  const seen = await look(lockfilePath);
  if (seen === null || seen.ageMs < STALE_MS) return;
  const claim = `${lockfilePath}.dead-${seen.identity}-${Math.floor(seen.ageMs / STALE_MS)}`;
  try {
    await (await open(claim, "wx")).close();
  } catch (error) {
    if (hasErrno(error, "EEXIST")) return;
    throw error;
  }
  const now = await look(lockfilePath);
  if (now?.identity === seen.identity && now.ageMs >= STALE_MS) await rmdir(lockfilePath);
  await rm(claim);
}

async function look(file: string): Promise<{ identity: string; ageMs: number } | null> {
  try {
    const { ino, birthtimeNs, mtimeMs } = await stat(file, { bigint: true });
    return { identity: `${ino}-${birthtimeNs}`, ageMs: Date.now() - Number(mtimeMs) };
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return null;
    throw error;
  }
}

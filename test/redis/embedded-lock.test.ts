/**
 * The lock of the embedded Redis: one at a time, also when many see the same dead holder, and a holder learns of a loss.
 */
import { mkdir, mkdtemp, readdir, rm, rmdir, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createLogger } from "../../src/logger.js";
import { underLock } from "../../src/redis/embedded-lock.js";
import { pause } from "../../src/redis/embedded-probe.js";

const logger = createLogger({ level: "silent", secrets: [] });
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nanogate-lock-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const never = async () => null;
const deps = (limitMs = 20_000) => ({ folder, logger, signal: new AbortController().signal, limitMs });

async function leaveDeadLock(): Promise<void> {
  const lock = path.join(folder, "start.lock");
  const longAgo = new Date(Date.now() - 60_000);
  await mkdir(lock);
  await utimes(lock, longAgo, longAgo);
}

it("lets one work at a time, also after a dead holder, and leaves nothing behind", async () => {
  await leaveDeadLock();
  let running = 0;
  const seen: number[] = [];
  const work = async (signal: AbortSignal) => {
    seen.push(++running);
    await pause(2, signal);
    running -= 1;
    return "done";
  };
  const results = await Promise.all(Array.from({ length: 15 }, () => underLock(deps(), never, work)));
  expect(results).toEqual(Array(15).fill("done"));
  expect(new Set(seen)).toEqual(new Set([1]));
  expect(await readdir(folder)).toEqual([]);
});

it("is not needed when there is a result without it", async () => {
  await mkdir(path.join(folder, "start.lock"));
  expect(await underLock(deps(), async () => "early", never)).toBe("early");
});

it("gives up after its limit, and is free again after a work that throws", async () => {
  const failing = underLock(deps(), never, async () => {
    await expect(underLock(deps(60), never, never)).rejects.toMatchObject({ code: "REDIS_UNREACHABLE" });
    throw new Error("the work failed");
  });
  await expect(failing).rejects.toThrow("the work failed");
  expect(await underLock(deps(), never, async () => "next")).toBe("next");
});

it("tells a holder whose lock was taken, and does not release what another holds now", async () => {
  const lock = path.join(folder, "start.lock");
  const losing = underLock(deps(), never, async (held) => {
    await rmdir(lock);
    await mkdir(lock);
    await pause(10_000, held);
  });
  await expect(losing).rejects.toThrow("was lost");
  expect(await readdir(folder)).toEqual(["start.lock"]);
});

/**
 * The embedded Redis with real servers and real processes: one server however many come, whatever was killed before,
 * and it goes when the last one leaves.
 */

import { mkdir, stat, unlink, utimes } from "node:fs/promises";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Embedded, type OtherProcess, Program, until } from "./embedded-fixture.js";

let redis: Embedded;
let program: Program;
let others: OtherProcess[];

beforeAll(async () => {
  program = await Program.compile();
});
afterAll(() => program.dispose());
beforeEach(async () => {
  redis = await Embedded.create();
  others = [];
});
afterEach(async () => {
  for (const other of others) await other.end();
  await redis.dispose();
});

function startOther(): OtherProcess {
  const other = program.start(redis.folder);
  others.push(other);
  return other;
}

const together = (count: number) => Promise.all(Array.from({ length: count }, () => redis.ensure()));

async function runId(socketPath: string): Promise<string | undefined> {
  return /run_id:(\w+)/.exec(String(await redis.call(socketPath, "INFO", "server")))?.[1];
}

describe("starting", () => {
  it("gives 20 callers and 4 other processes at once one server, for its user only", async () => {
    const processes = Array.from({ length: 4 }, startOther);
    const sockets = await together(20);
    const said = await Promise.all(processes.map((other) => other.says()));
    const [socketPath = ""] = sockets;
    expect(new Set(sockets).size).toBe(1);
    expect(new Set([...said, await runId(socketPath)]).size).toBe(1);
    expect(await redis.starts()).toBe(1);
    expect(await redis.call(socketPath, "GET", "processes")).toBe("4");
    expect((await stat(redis.folder)).mode & 0o777).toBe(0o700);
    expect((await stat(socketPath)).mode & 0o777).toBe(0o700);
  });

  it("starts anew after a kill, with the data, over the socket file that was left", async () => {
    const socketPath = await redis.ensure({ fsync: "always" });
    await redis.call(socketPath, "SET", "kept", "yes");
    await redis.kill();
    expect((await stat(socketPath)).isSocket()).toBe(true);
    expect(new Set(await together(5))).toEqual(new Set([socketPath]));
    expect(await redis.call(socketPath, "GET", "kept")).toBe("yes");
    expect(await redis.starts()).toBe(2);
  });

  it("takes the lock of a dead holder over, and still starts one server", async () => {
    const lock = path.join(redis.folder, "start.lock");
    await mkdir(lock, { recursive: true });
    const longAgo = new Date(Date.now() - 60_000);
    await utimes(lock, longAgo, longAgo);
    const processes = Array.from({ length: 4 }, startOther);
    await together(10);
    await Promise.all(processes.map((other) => other.says()));
    expect(await redis.starts()).toBe(1);
  });

  it("waits for a lock that is held, and needs it no more when the server is there", async () => {
    await mkdir(path.join(redis.folder, "start.lock"), { recursive: true });
    const stopWaiting = new AbortController();
    const waiting = redis.ensure({ signal: stopWaiting.signal });
    setImmediate(() => stopWaiting.abort(new Error("enough")));
    await expect(waiting).rejects.toThrow("enough");
    await expect(redis.starts()).rejects.toThrow("ENOENT");
  });

  it("sets a server that runs already to the fsync that is asked for", async () => {
    const socketPath = await redis.ensure();
    expect(redis.lines).toEqual([]);
    await redis.ensure({ fsync: "always" });
    expect(await redis.call(socketPath, "CONFIG", "GET", "appendfsync")).toEqual(["appendfsync", "always"]);
  });

  it("keeps what it was told: nothing on TCP, every write on disk, nothing evicted", async () => {
    const socketPath = await redis.ensure();
    const setting = async (name: string) => redis.call(socketPath, "CONFIG", "GET", name);
    expect(await setting("port")).toEqual(["port", "0"]);
    expect(await setting("appendonly")).toEqual(["appendonly", "yes"]);
    expect(await setting("save")).toEqual(["save", ""]);
    expect(await setting("maxmemory-policy")).toEqual(["maxmemory-policy", "noeviction"]);
  });
});

describe("a server that is there but not well", () => {
  it("is ended and replaced when its socket is gone, so that two never write one file", async () => {
    const socketPath = await redis.ensure();
    await redis.call(socketPath, "SET", "kept", "yes");
    const before = await redis.pid();
    await unlink(socketPath);
    await together(5);
    expect(await redis.pid()).not.toBe(before);
    expect(() => process.kill(before, 0)).toThrow("ESRCH");
    expect(await redis.call(socketPath, "GET", "kept")).toBe("yes");
    expect(redis.lines.join()).toContain("without its socket");
  });

  it("gets no second one beside it, and no order to end, while it is frozen", async () => {
    await redis.ensure();
    const pid = await redis.pid();
    process.kill(pid, "SIGSTOP");
    // Long enough for a whole probe, so that what is done about its silence would have been done.
    const waiting = redis.ensure({ signal: AbortSignal.timeout(2500) });
    await expect(waiting).rejects.toMatchObject({ name: "TimeoutError" });
    process.kill(pid, "SIGCONT");
    await redis.ensure();
    expect([await redis.starts(), await redis.pid(), redis.lines]).toEqual([1, pid, []]);
  });
});

describe("leaving", () => {
  it("stops the server with the last one, not with the first", async () => {
    const socketPath = await redis.ensure();
    const [first, second] = [startOther(), startOther()];
    await Promise.all([first.says(), second.says()]);
    expect(await redis.leave()).toBe(false);
    expect(await first.leaves()).toBe(false);
    expect(await redis.call(socketPath, "GET", "processes")).toBe("2");
    expect(await second.leaves()).toBe(true);
    expect(await redis.call(socketPath, "PING")).toBeNull();
    await expect(redis.pid()).rejects.toThrow("no server runs");
    expect(await redis.leave()).toBe(false);
  });

  it("does not count a process that was killed, and keeps the data for the next", async () => {
    const other = startOther();
    await other.says();
    await other.end();
    const socketPath = await redis.ensure();
    await until("the connection of the killed process to be gone", async () => {
      return !String(await redis.call(socketPath, "CLIENT", "LIST")).includes("incr") || null;
    });
    expect(await redis.leave()).toBe(true);
    await redis.ensure();
    expect(await redis.call(socketPath, "GET", "processes")).toBe("1");
  });

  it("is done by one of many who leave at once", async () => {
    const processes = Array.from({ length: 4 }, startOther);
    await Promise.all(processes.map((other) => other.says()));
    const stopped = await Promise.all(processes.map((other) => other.leaves()));
    expect(stopped.filter(Boolean)).toHaveLength(1);
    await expect(redis.pid()).rejects.toThrow("no server runs");
  });
});

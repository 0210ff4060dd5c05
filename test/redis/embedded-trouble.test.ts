/**
 * The embedded Redis where something is missing or broken: no binary, a path that is too long, a damaged file, a server
 * that never gets ready. PATH is changed here, for this test file's own process only.
 */
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hasCode } from "../../src/errors.js";
import { clientName, pidOfClientName } from "../../src/redis/embedded-probe.js";
import { Embedded, until } from "./embedded-fixture.js";

const PATH = process.env.PATH ?? "";
let redis: Embedded;

beforeEach(async () => {
  redis = await Embedded.create();
});
afterEach(async () => {
  process.env.PATH = PATH;
  await redis.dispose();
});

async function onlyOnPath(name: string, make: (file: string) => Promise<void>): Promise<void> {
  const bin = path.join(redis.base, "bin");
  await mkdir(bin);
  await make(path.join(bin, name));
  process.env.PATH = bin;
}

async function whereIs(name: string): Promise<string> {
  for (const folder of PATH.split(path.delimiter)) {
    const files = await readdir(folder).catch(() => [] as string[]);
    if (files.includes(name)) return path.join(folder, name);
  }
  throw new Error(`${name} is not on PATH`);
}

async function failure(ensuring: Promise<unknown>): Promise<unknown> {
  return ensuring.then(
    () => new Error("it started"),
    (reason: unknown) => reason,
  );
}

describe("the binary", () => {
  it("that is missing is named, with what to install", async () => {
    process.env.PATH = path.join(redis.base, "nothing");
    const error = await failure(redis.ensure());
    expect(hasCode(error, "REDIS_MISSING") && error.advice).toContain("Install redis-server or valkey-server");
  });

  it("may be called valkey-server", async () => {
    const real = await whereIs("redis-server");
    await onlyOnPath("valkey-server", (file) => symlink(real, file));
    expect(await redis.call(await redis.ensure(), "PING")).toBe("PONG");
    expect(await redis.leave()).toBe(true);
  });
});

describe("the socket", () => {
  it("moves to a short private folder when its path would be too long", async () => {
    const deep = await Embedded.create(`${"d".repeat(90)}/redis`);
    try {
      const socketPath = await deep.ensure();
      expect(Buffer.byteLength(socketPath)).toBeLessThanOrEqual(100);
      expect(path.dirname(path.dirname(socketPath))).toBe(tmpdir());
      expect((await stat(path.dirname(socketPath))).mode & 0o777).toBe(0o700);
      expect(await deep.ensure()).toBe(socketPath);
      expect(await deep.starts()).toBe(1);
      expect(await deep.leave()).toBe(true);
      await rm(path.dirname(socketPath), { recursive: true });
    } finally {
      await deep.dispose();
    }
  });

  it("is refused where somebody else put something in its place", async () => {
    const deep = await Embedded.create(`${"d".repeat(90)}/redis`);
    try {
      const folder = path.dirname(await deep.ensure());
      expect(await deep.leave()).toBe(true);
      await rm(folder, { recursive: true });
      await symlink(deep.base, folder);
      const error = await failure(deep.ensure());
      expect(hasCode(error, "REDIS_UNREACHABLE") && error.message).toContain("belongs to another user");
      await rm(folder);
    } finally {
      await deep.dispose();
    }
  });
});

describe("a server that does not get ready", () => {
  it("because its file is damaged: the error names the log and carries its last lines", async () => {
    const socketPath = await redis.ensure({ fsync: "always" });
    for (let i = 0; i < 20; i++) await redis.call(socketPath, "SET", `key${i}`, "x".repeat(50));
    expect(await redis.leave()).toBe(true);
    const folder = path.join(redis.folder, "appendonlydir");
    const file = (await readdir(folder)).find((name) => name.includes(".incr."));
    const text = await readFile(path.join(folder, file ?? ""));
    text.fill("?", 100, 140);
    await writeFile(path.join(folder, file ?? ""), text);
    const error = await failure(redis.ensure());
    if (!hasCode(error, "REDIS_UNREACHABLE")) throw error;
    expect(error.message).toContain(path.join(redis.folder, "redis.log"));
    expect(String(error.cause)).toContain("Bad file format");
  });

  it("is ended when the start is given up", async () => {
    const note = path.join(redis.base, "pid");
    await onlyOnPath("redis-server", async (file) => {
      await writeFile(file, `#!/bin/sh\necho $$ > ${note}.new\n/bin/mv ${note}.new ${note}\nexec /bin/sleep 600\n`);
      await chmod(file, 0o755);
    });
    const giveUp = new AbortController();
    const starting = failure(redis.ensure({ signal: giveUp.signal }));
    const pid = Number(await until("the server to start", () => readFile(note, "utf8").catch(() => null)));
    giveUp.abort(new Error("given up"));
    expect(String(await starting)).toContain("given up");
    await until("the server to end", async () => {
      const state = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      return state === "";
    });
  });

  it("in a folder that cannot be made is said so", async () => {
    await writeFile(redis.folder, "a file in the way");
    const error = await failure(redis.ensure());
    expect(hasCode(error, "REDIS_UNREACHABLE") && error.message).toContain(redis.folder);
    await rm(redis.folder);
  });
});

describe("client names", () => {
  it("say the process and are told from all others", () => {
    expect(clientName()).toBe(`nanogate:${process.pid}`);
    expect(pidOfClientName(clientName())).toBe(process.pid);
    for (const other of ["", "nanogate", "nanogate:", "nanogate:1x", "bull:cXVldWU=:w"]) {
      expect(pidOfClientName(other)).toBeNull();
    }
  });
});

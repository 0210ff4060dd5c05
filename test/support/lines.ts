/** Lines for one test file: a Redis, a folder and a model for each test, and everything closed behind it. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { Line, type LineOptions } from "./line.js";
import { TestRedis } from "./redis-server.js";
import { Talker } from "./talker.js";

export interface Lines {
  readonly talker: Talker;
  readonly redis: TestRedis;
  /** Starts a line; the ones of a test share Redis, prefix and folder, so they are as many processes. */
  start(options?: Partial<LineOptions>): Promise<Line>;
}

interface Present {
  redis: TestRedis | null;
  talker: Talker;
  folder: string;
  prefix: string;
  lines: Line[];
}

/** Call it once at the top of a test file. */
export function useLines(): Lines {
  const now: Present = { redis: null, talker: new Talker(), folder: "", prefix: "", lines: [] };
  const redis = (): TestRedis => {
    if (now.redis === null) throw new Error("the Redis of this file has not been started");
    return now.redis;
  };
  beforeAll(async () => {
    now.redis = await TestRedis.start();
  });
  afterAll(() => redis().stop());
  beforeEach(async () => {
    now.folder = await mkdtemp(path.join(tmpdir(), "ng-line-"));
    now.talker = new Talker();
    now.prefix = `t${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => {
    await Promise.all(now.lines.splice(0).map((line) => line.close()));
    await rm(now.folder, { recursive: true, force: true });
  });
  return {
    get talker() {
      return now.talker;
    },
    get redis() {
      return redis();
    },
    start: async (options = {}) => {
      const { address } = redis();
      const { folder, prefix, talker } = now;
      const line = await Line.start({ address, folder, prefix, provider: talker, ...options });
      now.lines.push(line);
      return line;
    },
  };
}

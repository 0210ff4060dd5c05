/** Redis goes away while a direct call waits for its answer: the call waits longer, and gets it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LEASE_MS, sessionKey, until } from "../support/bus-fixture.js";
import { Line } from "../support/line.js";
import { TestRedis } from "../support/redis-server.js";
import { Talker } from "../support/talker.js";

let redis: TestRedis;
let folder: string;
let line: Line;

beforeEach(async () => {
  redis = await TestRedis.start();
  folder = await mkdtemp(path.join(tmpdir(), "ng-outage-"));
});
afterEach(async () => {
  await line.close();
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
});

it.each([0, 1])("with %i workers", async (concurrency) => {
  const talker = new Talker();
  line = await Line.start({ address: redis.address, folder, provider: talker, concurrency });
  const release = talker.hold("slow");
  const arrived = talker.arrival("slow");
  const asked = { sessionKey: sessionKey("cli:direct"), content: "slow", channel: "cli" };
  const answer = line.parts.direct.process({ ...asked, signal: new AbortController().signal });
  await arrived;
  await redis.kill();
  // Longer than the caller's own questions wait, which is the length of a lease.
  const killedMs = performance.now();
  await until(() => performance.now() - killedMs > 2 * LEASE_MS);
  await redis.up();
  release();
  expect(await answer).toMatchObject({ outcome: "completed", text: "re: slow" });
  expect(await line.rows("cli:direct")).toHaveLength(2);
});

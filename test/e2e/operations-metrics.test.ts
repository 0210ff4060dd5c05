/** What `/metrics` of real processes says about messages, about workers that freeze, and about a Redis that goes away. */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../support/bus-fixture.js";
import { Client } from "./support/client.js";
import { scrape, scrapeUntil } from "./support/metrics.js";
import { LEASE_MS, Stage } from "./support/stage.js";

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.open();
});
afterEach(() => stage.close());

it("counts each stage of a message in the process that does it", async () => {
  const [door, worker] = await Promise.all([stage.gateway({ role: "channels" }), stage.gateway({ role: "worker" })]);
  await mkdir(stage.workspace, { recursive: true });
  await writeFile(path.join(stage.workspace, "a.txt"), "text");
  const client = new Client("c1");
  await client.connect(await door.url("alice"));
  await client.say('call read_file {"path":"a.txt"}', "m1");
  await client.end("m1");
  await client.say("/help", "m2");
  const [doorPort, workerPort] = [await door.ready, await worker.ready];
  const isDone = (series: ReadonlyMap<string, number>) => (series.get('nanogate_sessions{state="running"}') ?? 1) === 0;
  const [at, in_] = [await scrapeUntil(doorPort, isDone), await scrapeUntil(workerPort, isDone)];
  expect(at.get('nanogate_intake_seconds_count{channel="websocket",outcome="stored"}')).toBe(1);
  expect(at.get('nanogate_intake_seconds_count{channel="websocket",outcome="command"}')).toBe(1);
  expect(at.get("nanogate_websocket_connections")).toBe(1);
  expect(at.get("nanogate_workers")).toBe(1);
  expect(at.get("nanogate_redis_up")).toBe(1);
  expect(at.get("nanogate_oldest_waiting_seconds")).toBe(0);
  expect(at.get('nanogate_dead_letters{direction="inbound"}')).toBe(0);
  expect(in_.get('nanogate_turn_seconds_count{outcome="completed"}')).toBe(1);
  for (const state of ["restore", "build", "run", "save", "respond"])
    expect(in_.get(`nanogate_turn_state_seconds_count{state="${state}",outcome="ok"}`)).toBe(1);
  expect(in_.get('nanogate_model_call_seconds_count{provider="peer",outcome="ok"}')).toBe(2);
  expect(in_.get('nanogate_model_first_byte_seconds_count{provider="peer"}')).toBe(2);
  expect(in_.get('nanogate_tool_call_seconds_count{tool="read_file",outcome="ok"}')).toBe(1);
  expect(in_.get('nanogate_settle_seconds_count{outcome="settled"}')).toBe(1);
  client.disconnect();
  await scrapeUntil(doorPort, (series) => series.get("nanogate_websocket_connections") === 0);
});

it(
  "tells what a worker lost while it stood still, and what another took from it",
  async () => {
    const [door, sleeper] = await Promise.all([
      stage.gateway({ role: "channels" }),
      stage.gateway({ role: "worker", fault: "stop:settle.before" }),
    ]);
    const client = new Client("c1");
    await client.connect(await door.url("alice"));
    await client.say("hello", "m1");
    await sleeper.frozen();
    const sinceMs = performance.now();
    const other = await stage.gateway({ role: "worker" });
    await client.end("m1");
    // The lease may have been a third gone when it fell asleep; the stall is to be longer than a whole one.
    await until(() => performance.now() - sinceMs > 2 * LEASE_MS);
    sleeper.thaw();
    const lost = await scrapeUntil(
      await sleeper.ready,
      (series) =>
        series.get("nanogate_event_loop_stalls_total") === 1 && series.get("nanogate_lease_losses_total") === 1,
    );
    const refused = [...lost].filter(([name]) => name.startsWith("nanogate_refused_writes_total{"));
    expect(refused).toEqual([['nanogate_refused_writes_total{operation="settle"}', 1]]);
    expect(lost.get('nanogate_settle_seconds_count{outcome="lost"}')).toBe(1);
    expect(lost.get('nanogate_turn_seconds_count{outcome="lease_lost"}')).toBe(1);
    await sleeper.logged("the process stood still for longer than a lease lasts");
    const ports = await Promise.all([door.ready, other.ready]);
    const took = await Promise.all(ports.map((port) => scrape(port)));
    expect(took.map((series) => series.get("nanogate_reaped_sessions_total")).sort()).toEqual([0, 1]);
  },
  LEASE_MS * 40,
);

it("says that Redis is away, and what was made good when it came back", async () => {
  const gateway = await stage.gateway();
  const port = await gateway.ready;
  const client = new Client("c1");
  await client.connect(await gateway.url("alice"));
  await client.say("hello", "m1");
  await client.end("m1");
  expect((await scrape(port)).get("nanogate_redis_up")).toBe(1);
  await stage.redis.kill();
  await scrapeUntil(port, (series) => series.get("nanogate_redis_up") === 0);
  await stage.redis.up();
  const after = await scrapeUntil(port, (series) => series.get("nanogate_redis_up") === 1);
  expect(after.get("nanogate_redis_reconnects_total")).toBe(1);
  expect(after.get("nanogate_replayed_entries_total")).toBe(1);
});

it("counts a message that waits for a worker that never comes", async () => {
  const door = await stage.gateway({ role: "channels" });
  const client = new Client("c1");
  await client.connect(await door.url("alice"));
  await client.say("hello", "m1");
  const waiting = await scrapeUntil(
    await door.ready,
    (series) => (series.get("nanogate_oldest_waiting_seconds") ?? 0) > 0.2,
  );
  expect(waiting.get('nanogate_sessions{state="scheduled"}')).toBe(1);
  expect(waiting.get("nanogate_workers")).toBe(0);
});

/** What becomes of the sessions of dead workers: taken back at once on the same host, given up after the third death. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, expect, it } from "vitest";
import { GIVE_UP_NOTICE } from "../../src/agent/apology.js";
import { createKeys } from "../../src/redis/keys.js";
import { Client } from "./support/client.js";
import { Stage } from "./support/stage.js";
import { endsOf, storyFaults } from "./support/story.js";

let stage: Stage;
afterEach(() => stage.close());

it("takes the session of a killed worker of this host long before its lease ends", async () => {
  const leaseMs = 15_000;
  stage = await Stage.open({ gateway: { leaseMs } });
  const [door, victim] = await Promise.all([
    stage.gateway({ role: "channels" }),
    stage.gateway({ role: "worker", fault: "kill:append.after" }),
  ]);
  const client = new Client("c1");
  await client.connect(await door.url("alice"));
  await client.say("first", "m1");
  await victim.ended;
  const killedAtMs = performance.now();
  await stage.gateway({ role: "worker" });
  await client.end("m1");
  expect(performance.now() - killedAtMs).toBeLessThan(leaseMs / 2);
  expect(await storyFaults(stage, client)).toEqual([]);
  expect(client.answers).toEqual(["re: first"]);
});

it("gives a message up after the third death, says so, keeps it, and goes on with the next", async () => {
  stage = await Stage.open();
  const door = await stage.gateway({ role: "channels" });
  const client = new Client("c1");
  await client.connect(await door.url("alice"));
  await client.say("poison", "m1");
  // Each dies before the answer is stored; only the first has to store the message.
  for (const fault of ["kill:append.before#2", "kill:append.before", "kill:append.before"]) {
    expect(endsOf(client)).toEqual([]);
    await (await stage.gateway({ role: "worker", fault })).ended;
  }
  await client.say("second", "m2");
  await stage.gateway({ role: "worker" });
  await client.end("m2");
  expect(await storyFaults(stage, client)).toEqual([]);
  expect(endsOf(client)).toEqual(["m1: failed", "m2: completed"]);
  expect(client.answers).toEqual([GIVE_UP_NOTICE, "re: second"]);
  expect(stage.model.asked("poison")).toBe(3);

  const workspaceId = (await readFile(path.join(stage.workspace, ".nanogate", "workspace-id"), "utf8")).trim();
  const redis = stage.redis.client();
  const letters = Object.values(await redis.hgetall(createKeys("nanogate", workspaceId).of("deadIn")));
  redis.disconnect();
  expect(letters.map((letter) => JSON.parse(letter) as unknown)).toEqual([
    expect.objectContaining({
      session: "websocket:c1",
      tries: 3,
      message: expect.objectContaining({ content: "poison" }),
    }),
  ]);
});

/** A worker is killed at each place a message passes; the answer arrives once all the same. */
import { afterEach, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { historyFaults } from "./support/history.js";
import { Stage } from "./support/stage.js";

let stage: Stage;
afterEach(() => stage.close());

const WORKER_POINTS = [
  "wake.fetched",
  "lease.opened",
  "session.fenced",
  "append.before",
  "append.after",
  "append.before#2",
  "append.after#2",
  "tool.finished",
  "emit.before",
  "turn.finished",
  "settle.before",
  "settle.after",
];

it.each(WORKER_POINTS)("worker killed at %s", async (point) => {
  stage = await Stage.open();
  const door = await stage.gateway({ role: "channels" });
  const victim = await stage.gateway({ role: "worker", fault: `kill:${point}` });
  const client = new Client("c1");
  await client.connect(await door.url("alice"));
  await client.say('call write_file {"path":"a.txt","content":"x"}', "m1");
  await victim.ended;
  await stage.gateway({ role: "worker" });
  await client.end("m1");
  await client.say("second", "m2");
  await client.end("m2");
  expect(client.faults).toEqual([]);
  expect(client.answers).toHaveLength(2);
  expect(client.answers[1]).toBe("re: second");
  const rows = await stage.rows("websocket:c1");
  expect(historyFaults(rows)).toEqual([]);
});

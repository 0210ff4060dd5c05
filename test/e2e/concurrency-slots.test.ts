/** Who gets a slot, and which messages belong together: bounds over all workers, fairness, one session for two chats. */
import { afterEach, expect, it } from "vitest";
import { until } from "../support/bus-fixture.js";
import { Client } from "./support/client.js";
import { historyFaults } from "./support/history.js";
import { type GatewayProcess, Stage } from "./support/stage.js";

let stage: Stage;
afterEach(() => stage.close());

async function clientAt(door: GatewayProcess, chat: string): Promise<Client> {
  const client = new Client(chat);
  await client.connect(await door.url("alice"));
  return client;
}

/** Whether a session of the stage has been refused a slot and waits for one. */
async function isWaitingForSlot(): Promise<boolean> {
  const redis = stage.redis.client();
  try {
    const [key] = await redis.keys("*:waiting");
    return key !== undefined && (await redis.zcard(key)) > 0;
  } finally {
    redis.disconnect();
  }
}

it("never runs more turns over two workers than gateway.maxTurns, and uses them all", async () => {
  stage = await Stage.open({ gateway: { maxTurns: 3, concurrency: 8 } });
  const roles = ["channels", "worker", "worker"] as const;
  const [door] = await Promise.all(roles.map((role) => stage.gateway({ role })));
  if (door === undefined) throw new Error("no door");
  const clients = await Promise.all(Array.from({ length: 24 }, (_, index) => clientAt(door, `c${index}`)));
  const open = stage.model.hold("first");
  for (const client of clients) for (const id of ["first", "second"]) await client.say(id, id);
  await until(() => stage.model.requests.length >= 3);
  open();
  await Promise.all(clients.flatMap((client) => [client.end("first"), client.end("second")]));
  expect(stage.model.peak).toBe(3);
  for (const client of clients) expect(client.answers).toEqual(["re: first", "re: second"]);
});

it("gives a killed worker's slot to the one that waits for it", async () => {
  // Its lease alone would keep the slot for a minute.
  stage = await Stage.open({ gateway: { maxTurns: 1, leaseMs: 60_000 } });
  const door = await stage.gateway({ role: "channels" });
  const victim = await stage.gateway({ role: "worker" });
  const [first, second] = [await clientAt(door, "c1"), await clientAt(door, "c2")];
  stage.model.hold("never ends");
  const begun = stage.model.arrival("never ends");
  await first.say("never ends", "m1");
  await begun;
  await stage.gateway({ role: "worker" });
  await second.say("waits", "m2");
  await until(isWaitingForSlot);
  await victim.kill();
  // Whoever is taken up first, the other one gets the slot when it is free again.
  await until(() => stage.model.asked("never ends") === 2 || stage.model.asked("waits") === 1);
  await first.say("/stop", "s1");
  expect((await first.end("m1")).outcome).toBe("stopped");
  expect((await second.end("m2")).outcome).toBe("completed");
});

it("does not let a session with forty messages starve another at one slot", async () => {
  stage = await Stage.open({ agent: { model: "peer/m", queueMode: "followup" }, gateway: { concurrency: 1 } });
  const gateway = await stage.gateway();
  const [hot, other] = [await clientAt(gateway, "hot"), await clientAt(gateway, "other")];
  const open = stage.model.hold("hot 0.");
  const begun = stage.model.arrival("hot 0.");
  for (let index = 0; index < 40; index += 1) await hot.say(`hot ${index}.`, `h${index}`);
  await begun;
  await other.say("only one", "o1");
  open();
  await Promise.all([hot.end("h39"), other.end("o1")]);
  const order = stage.model.requests.map(({ messages }) => String(messages.at(-1)?.content));
  expect(order.indexOf("only one")).toBe(16);
  expect(hot.answers).toEqual(Array.from({ length: 40 }, (_, index) => `re: hot ${index}.`));
});

it("answers in the chat that asked, with one session for all of them", async () => {
  stage = await Stage.open({ agent: { model: "peer/m", unifiedSession: true } });
  const roles = ["channels", "worker", "worker"] as const;
  const [door] = await Promise.all(roles.map((role) => stage.gateway({ role })));
  if (door === undefined) throw new Error("no door");
  const [a, b] = [await clientAt(door, "a"), await clientAt(door, "b")];
  const open = stage.model.hold("a1");
  const begun = stage.model.arrival("a1");
  await a.say("a1", "a1");
  await begun;
  await b.say("b1", "b1");
  await a.say("a2", "a2");
  await b.say("b2", "b2");
  open();
  await Promise.all([a.end("a2"), b.end("b2")]);
  expect(a.answers).toEqual(["re: a1", "re: a2"]);
  expect(b.answers).toEqual(["re: b1", "re: b2"]);
  const ends = [a, b].map(({ events }) => events.filter(({ event }) => event === "turn_end"));
  expect(ends.map((each) => each.map(({ message_ids }) => message_ids))).toEqual([[["a1", "a2"]], [["b1", "b2"]]]);
  const rows = await stage.rows("unified:default");
  expect(rows.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual(["a1", "a2", "b1", "b2"]);
  expect(historyFaults(rows)).toEqual([]);
  expect([...a.faults, ...b.faults]).toEqual([]);
});

it("joins fragments into one turn, over a door and a worker of their own; a command does not wait", async () => {
  stage = await Stage.open({ agent: { model: "peer/m", debounceMs: 400, queueMode: "followup" } });
  const [door] = await Promise.all([stage.gateway({ role: "channels" }), stage.gateway({ role: "worker" })]);
  const client = await clientAt(door, "c1");
  for (const text of ["one", "two", "three"]) client.post(text, text);
  const end = await client.end("three");
  expect(end.message_ids).toEqual(["one", "two", "three"]);
  expect(client.answers).toEqual(["re: one\n\ntwo\n\nthree"]);
  expect(stage.model.requests).toHaveLength(1);
  client.post("four", "four");
  client.post("/stop", "stop");
  expect((await client.end("four")).outcome).toBe("stopped");
  expect(stage.model.requests).toHaveLength(1);
});

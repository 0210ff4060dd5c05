/** Processes that are stopped while turns run: what they have is finished or handed over, in order, and nothing is lost. */
import { afterEach, expect, it } from "vitest";
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

async function faultsOf(client: Client): Promise<string[]> {
  return [...client.faults, ...historyFaults(await stage.rows(`websocket:${client.chatId}`))];
}

it("finishes a running turn before it ends", async () => {
  stage = await Stage.open();
  const [door, worker] = [await stage.gateway({ role: "channels" }), await stage.gateway({ role: "worker" })];
  const client = await clientAt(door, "c1");
  const open = stage.model.hold("hello");
  const begun = stage.model.arrival("hello");
  await client.say("hello", "m1");
  await begun;
  const ended = worker.stop();
  await worker.logged("stopping");
  open();
  expect(await ended).toEqual({ code: 0, signal: null });
  expect((await client.end("m1")).outcome).toBe("completed");
  expect(client.answers).toEqual(["re: hello"]);
  expect(stage.model.requests).toHaveLength(1);
});

it("takes nothing new in while it ends, and gives the running answer to who is still connected", async () => {
  stage = await Stage.open();
  const everything = await stage.gateway();
  const client = await clientAt(everything, "c1");
  const open = stage.model.hold("hello");
  const begun = stage.model.arrival("hello");
  await client.say("hello", "m1");
  await begun;
  const ended = everything.stop();
  await everything.logged("stopping");
  await expect(client.say("too late", "m2")).rejects.toThrow("unavailable");
  open();
  // What comes after the answer is the end of the connection.
  await client.end("m1");
  expect(client.answers).toEqual(["re: hello"]);
  expect(await ended).toEqual({ code: 0, signal: null });
});

it("begins nothing new when it is told to end: what waits behind the running turn is another worker's", async () => {
  stage = await Stage.open({ gateway: { drainMs: 20_000 }, agent: { model: "peer/m", queueMode: "followup" } });
  const [door, worker] = [await stage.gateway({ role: "channels" }), await stage.gateway({ role: "worker" })];
  const client = await clientAt(door, "c1");
  const open = stage.model.hold("m0");
  const begun = stage.model.arrival("m0");
  for (let index = 0; index < 10; index += 1) await client.say(`m${index}`, `m${index}`);
  await begun;
  await stage.gateway({ role: "worker" });
  const ended = worker.stop();
  await worker.logged("stopping");
  open();
  expect(await ended).toEqual({ code: 0, signal: null });
  await client.end("m9");
  expect(worker.log.split('"msg":"turn ended"')).toHaveLength(2);
  expect(client.answers).toHaveLength(10);
  expect(await faultsOf(client)).toEqual([]);
});

it("hands a turn that does not end in time over to another worker, with all that waits behind it", async () => {
  stage = await Stage.open({ gateway: { drainMs: 200 }, agent: { model: "peer/m", queueMode: "followup" } });
  const [door, worker] = [await stage.gateway({ role: "channels" }), await stage.gateway({ role: "worker" })];
  const client = await clientAt(door, "c1");
  const open = stage.model.hold("m0");
  const begun = stage.model.arrival("m0");
  for (let index = 0; index < 5; index += 1) await client.say(`m${index}`, `m${index}`);
  await begun;
  await stage.gateway({ role: "worker" });
  const again = stage.model.arrival("m0");
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
  await again;
  open();
  await client.end("m4");
  expect(client.answers).toEqual([0, 1, 2, 3, 4].map((index) => `re: m${index}`));
  expect(await faultsOf(client)).toEqual([]);
});

it("ends at once at the second signal, and the message is answered all the same", async () => {
  stage = await Stage.open({ gateway: { drainMs: 30_000 } });
  const [door, worker] = [await stage.gateway({ role: "channels" }), await stage.gateway({ role: "worker" })];
  const client = await clientAt(door, "c1");
  const open = stage.model.hold("hello");
  const begun = stage.model.arrival("hello");
  await client.say("hello", "m1");
  await begun;
  void worker.stop();
  await worker.logged("stopping");
  const before = performance.now();
  expect(await worker.stop()).toEqual({ code: 1, signal: null });
  expect(performance.now() - before).toBeLessThan(1000);
  open();
  await stage.gateway({ role: "worker" });
  await client.end("m1");
  expect(client.answers).toEqual(["re: hello"]);
  expect(await faultsOf(client)).toEqual([]);
});

/** Talks through a rolling restart: goes to whichever gateway is up, repeats what was not accepted, waits for answers. */
class Talker {
  readonly client: Client;
  readonly ids: string[] = [];

  constructor(chat: string) {
    this.client = new Client(chat);
  }

  /** Says one message and gets its end, however often it must come back for it. */
  async exchange(id: string, gateways: () => GatewayProcess[]): Promise<void> {
    this.ids.push(id);
    for (let attempt = 0; attempt < 200; attempt += 1) {
      if (await this.#tried(id, gateways()[attempt % gateways().length])) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`${id} was never answered`);
  }

  async #tried(id: string, gateway: GatewayProcess | undefined): Promise<boolean> {
    try {
      if (gateway === undefined) return false;
      if (!this.client.isConnected) await this.client.connect(await gateway.url("alice"));
      await this.client.say(id, id);
      const end = () => this.client.events.find((each) => each.message_ids?.includes(id));
      await this.client.until(() => end() ?? (this.client.isConnected ? undefined : { event: "closed" }));
      return end() !== undefined;
    } catch (error) {
      if (/not accepted|ECONNREFUSED|ECONNRESET|socket hang up|503/.test(String(error))) return false;
      throw error;
    }
  }
}

it("loses, doubles and reorders nothing while both gateways are replaced one after the other", async () => {
  stage = await Stage.open({ gateway: { drainMs: 1000 } });
  let gateways = [await stage.gateway(), await stage.gateway()];
  const talkers = ["a", "b", "c", "d"].map((chat) => new Talker(chat));
  const isOver = { now: false };
  const talking = talkers.map(async (talker) => {
    for (let round = 0; !isOver.now; round += 1)
      await talker.exchange(`${talker.client.chatId}${round}`, () => gateways);
  });
  for (let replaced = 0; replaced < 2; replaced += 1) {
    const rounds = Math.max(...talkers.map(({ ids }) => ids.length));
    while (talkers.some(({ ids }) => ids.length < rounds + 5)) await new Promise((resolve) => setTimeout(resolve, 10));
    const [oldest, ...rest] = gateways;
    gateways = [...rest, await stage.gateway()];
    expect(await oldest?.stop()).toEqual({ code: 0, signal: null });
  }
  isOver.now = true;
  await Promise.all(talking);
  for (const { client, ids } of talkers) {
    expect(client.answers).toEqual(ids.map((id) => `re: ${id}`));
    expect(client.events.filter(({ event }) => event === "turn_end")).toHaveLength(ids.length);
    expect(await faultsOf(client)).toEqual([]);
    expect(ids.length).toBeGreaterThan(10);
  }
});

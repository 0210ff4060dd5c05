/** Resuming: whatever happens to connections and to the store, a client gets each event once, in order, or a resync. */
import { afterEach, describe, expect, it } from "vitest";
import { NanogateError } from "../../../src/errors.js";
import { MemoryChatLogs } from "../../fakes/memory-chat-events.js";
import { eventually, type TestClient } from "../../fakes/websocket-client.js";
import { TestGateway } from "./harness.js";

const open: TestGateway[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((gateway) => gateway.close()));
});

async function gatewayOver(logs = new MemoryChatLogs()): Promise<TestGateway> {
  const gateway = await TestGateway.start({ logs });
  open.push(gateway);
  return gateway;
}

async function attach(gateway: TestGateway, place: object = {}): Promise<TestClient> {
  const { client } = await gateway.open();
  client.send({ type: "attach", chat_id: "chat", ...place });
  await client.until(() => client.frames.some(({ event }) => event === "attached" || event === "resync"), "an answer");
  return client;
}

const seqs = (client: TestClient) => client.numbered("chat").map(({ seq }) => seq);
const upTo = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
const read = (client: TestClient, seq: number) => client.until(() => seqs(client).includes(seq), `event ${seq}`);

describe("attach", () => {
  it("without a place, gives what comes from now on", async () => {
    const gateway = await gatewayOver();
    for (const text of ["a", "b"]) gateway.append("chat", text);
    const client = await attach(gateway);
    expect(await client.frame("attached")).toEqual({ event: "attached", chat_id: "chat", epoch: 1, seq: 2 });
    gateway.append("chat", "c");
    await read(client, 3);
    expect(seqs(client)).toEqual([3]);
  });

  it("with a place, gives what was missed and goes on, from another process", async () => {
    const logs = new MemoryChatLogs();
    const [one, other] = [await gatewayOver(logs), await gatewayOver(logs)];
    const first = await attach(one);
    for (const text of ["a", "b", "c"]) one.append("chat", text);
    await read(first, 3);
    first.socket.terminate();
    one.append("chat", "d");
    const second = await attach(other, { after: 2, epoch: 1 });
    one.append("chat", "e");
    await read(second, 5);
    expect(seqs(second)).toEqual([3, 4, 5]);
  });

  it("again on the same connection goes back to the place it names, and without one loses nothing", async () => {
    const gateway = await gatewayOver();
    const client = await attach(gateway, { after: 0 });
    for (const text of ["a", "b"]) gateway.append("chat", text);
    await read(client, 2);
    client.send({ type: "attach", chat_id: "chat" });
    gateway.append("chat", "c");
    await read(client, 3);
    expect(seqs(client)).toEqual([1, 2, 3]);
    client.send({ type: "attach", chat_id: "chat", after: 1 });
    await client.until(() => seqs(client).length === 5, "the replay");
    expect(seqs(client)).toEqual([1, 2, 3, 2, 3]);
  });

  it("asks for a resync when the place is no longer kept, beyond what survived, or ahead of the log", async () => {
    const logs = new MemoryChatLogs(3);
    const gateway = await gatewayOver(logs);
    for (const text of ["a", "b", "c", "d", "e"]) gateway.append("chat", text);
    const old = await attach(gateway, { after: 1 });
    expect(await old.frame("resync")).toEqual({ event: "resync", chat_id: "chat", epoch: 1, seq: 5 });
    const ahead = await attach(gateway, { after: 17 });
    await ahead.frame("resync", { seq: 5 });
    old.socket.terminate();
    ahead.socket.terminate();
    logs.loseTail("websocket", "chat", 1);
    for (const text of ["f", "g"]) gateway.append("chat", text);
    const beyond = await attach(gateway, { after: 5, epoch: 1 });
    await beyond.frame("resync", { epoch: 2, seq: 6 });
    const survivor = await attach(gateway, { after: 4, epoch: 1 });
    await read(survivor, 6);
    expect(seqs(survivor)).toEqual([5, 6]);
    gateway.append("chat", "h");
    for (const client of [beyond, survivor]) await read(client, 7);
    expect(seqs(beyond)).toEqual([7]);
  });
});

/** A repeatable source of chance. */
function dice(seed: number): (sides: number) => number {
  let state = seed * 7919;
  return (sides) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return (state >> 8) % sides;
  };
}

/** Reads take a few ticks, so that events come in the middle of them. */
function makeReadsLate(gateway: TestGateway, chance: (sides: number) => number): void {
  const late = async () => {
    for (let i = chance(4); i > 0; i -= 1) await new Promise((resolve) => setImmediate(resolve));
  };
  gateway.events.beforeRead = late;
  gateway.events.afterRead = late;
  gateway.events.portion = 5;
}

/** Cuts a process off from live events, brings it back, or lets things run for a moment. */
async function disturb(gateway: TestGateway, chance: (sides: number) => number): Promise<void> {
  if (chance(12) === 0) gateway.events.cut();
  if (chance(6) === 0) gateway.events.reconnect();
  if (chance(3) === 0) await new Promise((resolve) => setImmediate(resolve));
}

describe("without gap or repeat", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])("while events are appended, cut off, and read late (run %i)", async (run) => {
    const logs = new MemoryChatLogs();
    const chance = dice(run);
    const processes = [await gatewayOver(logs), await gatewayOver(logs)] as const;
    for (const gateway of processes) makeReadsLate(gateway, chance);
    const total = 120;
    const clients: Array<{ client: TestClient; after: number }> = [];
    for (let i = 1; i <= total; i += 1) {
      processes[0].append("chat", `e${i}`);
      const gateway = processes[chance(2) === 0 ? 0 : 1];
      await disturb(gateway, chance);
      if (chance(8) > 0) continue;
      const after = chance(i);
      const { client } = await gateway.open();
      client.send({ type: "attach", chat_id: "chat", after });
      clients.push({ client, after });
    }
    for (const { events } of processes) events.reconnect();
    for (const { client, after } of clients) {
      await read(client, total);
      expect(seqs(client)).toEqual(upTo(after + 1, total));
    }
    expect(clients.length).toBeGreaterThan(3);
  });

  it("reads the log once for all its connections when live events were missed", async () => {
    const gateway = await gatewayOver();
    const clients = await Promise.all([attach(gateway), attach(gateway), attach(gateway)]);
    const before = gateway.events.reads;
    gateway.events.cut();
    for (const text of ["a", "b"]) gateway.append("chat", text);
    gateway.events.reconnect();
    for (const client of clients) await read(client, 2);
    expect(clients.map(seqs)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
    // One read for this chat and one for each connection's default chat.
    expect(gateway.events.reads - before).toBe(4);
  });

  it("reads on when the log answers in portions", async () => {
    const gateway = await gatewayOver();
    gateway.events.portion = 3;
    const live = await attach(gateway);
    gateway.events.cut();
    for (const text of "abcdefghij") gateway.append("chat", text);
    gateway.events.reconnect();
    const late = await attach(gateway, { after: 1 });
    await Promise.all([read(live, 10), read(late, 10)]);
    expect([seqs(live), seqs(late)]).toEqual([upTo(1, 10), upTo(2, 10)]);
  });

  it("notices a gap in live numbers by itself", async () => {
    const gateway = await gatewayOver();
    const client = await attach(gateway);
    gateway.events.cut();
    for (const text of ["missed", "too"]) gateway.append("chat", text);
    gateway.events.restore();
    gateway.append("chat", "third");
    await read(client, 3);
    expect(seqs(client)).toEqual([1, 2, 3]);
  });

  it("keeps what comes while the log's answer is on its way, though nothing follows", async () => {
    const gateway = await gatewayOver();
    const client = await attach(gateway);
    gateway.events.cut();
    gateway.append("chat", "a");
    const onTheirWay: Array<() => void> = [];
    gateway.events.afterRead = () => new Promise((resolve) => onTheirWay.push(resolve));
    gateway.events.reconnect();
    // This chat's and the default chat's.
    await eventually(() => onTheirWay.length === 2, "the reads");
    gateway.append("chat", "b");
    gateway.events.afterRead = null;
    for (const arrive of onTheirWay) arrive();
    await read(client, 2);
    expect(seqs(client)).toEqual([1, 2]);
  });

  it("goes on when the log cannot be read for a while", async () => {
    const gateway = await gatewayOver();
    const client = await attach(gateway);
    gateway.events.cut();
    gateway.append("chat", "a");
    gateway.events.failure = new NanogateError("BUS_UNAVAILABLE", "away");
    const reads = gateway.events.reads;
    gateway.events.reconnect();
    await eventually(() => gateway.events.reads > reads + 2, "more than one try");
    gateway.events.failure = null;
    await read(client, 1);
    gateway.append("chat", "b");
    await read(client, 2);
    expect(seqs(client)).toEqual([1, 2]);
  });

  it("tells those who saw what was lost to resync, and goes on from what survived", async () => {
    const gateway = await gatewayOver();
    const client = await attach(gateway);
    for (const text of ["a", "b", "c"]) gateway.append("chat", text);
    await read(client, 3);
    gateway.events.cut();
    gateway.logs.loseTail("websocket", "chat", 2);
    gateway.append("chat", "anew");
    gateway.events.reconnect();
    expect(await client.frame("resync")).toMatchObject({ epoch: 2, seq: 2 });
    gateway.append("chat", "on");
    await client.frame("message", { text: "on" });
    expect(seqs(client)).toEqual([1, 2, 3, 3]);
  });
});

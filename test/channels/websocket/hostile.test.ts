/** Who is not let in, who sends too much, who does not read, who is gone; and how everybody is sent away. */
import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { MemoryChatLogs } from "../../fakes/memory-chat-events.js";
import { eventually } from "../../fakes/websocket-client.js";
import { type GatewayOptions, TestGateway } from "./harness.js";

const open: TestGateway[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((gateway) => gateway.close()));
});

async function start(options: GatewayOptions = {}): Promise<TestGateway> {
  const gateway = await TestGateway.start(options);
  open.push(gateway);
  return gateway;
}

describe("the door", () => {
  it("closes with 4401 after the upgrade, and hears nothing of what was sent", async () => {
    const gateway = await start({ token: "the-secret-token" });
    for (const query of ["?client_id=alice", "?token=wrong"]) {
      const client = gateway.connect(query);
      client.socket.on("open", () => client.send("let me in"));
      expect(await client.closed()).toBe(4401);
      expect(client.frames).toEqual([]);
    }
    expect(gateway.accepted).toEqual([]);
    const owner = gateway.connect("?token=the-secret-token");
    expect(await owner.frame("ready")).toMatchObject({ client_id: expect.stringMatching(/^anon-[0-9a-f]{12}$/) });
  });

  it("closes with 4403 for a page of another origin", async () => {
    const gateway = await start();
    expect(await gateway.connect("", { origin: "https://evil.example" }).closed()).toBe(4403);
    await gateway.connect("", { origin: `http://127.0.0.1:${gateway.port}` }).frame("ready");
  });
});

describe("too much", () => {
  it("closes a connection whose frame is too long with 1009", async () => {
    const gateway = await start({ limits: { maxFrameBytes: 1_000 } });
    const { client } = await gateway.open();
    client.send("x".repeat(1_001));
    expect(await client.closed()).toBe(1009);
    expect(gateway.accepted).toEqual([]);
  });

  it("does not read on while frames wait, and takes every one of them in order", async () => {
    const gateway = await start({ limits: { maxWaitingFrames: 4 } });
    const { client, chatId } = await gateway.open();
    let inFlight = 0;
    let most = 0;
    gateway.onAccept = async () => {
      most = Math.max(most, ++inFlight);
      await new Promise((resolve) => setImmediate(resolve));
      inFlight -= 1;
    };
    const ids = Array.from({ length: 60 }, (_, i) => `m${i}`);
    for (const id of ids) client.send({ type: "message", chat_id: chatId, content: id, id });
    await client.frame("message_accepted", { id: "m59" });
    expect(gateway.accepted.map(({ id }) => id)).toEqual(ids);
    expect(most).toBe(1);
  });

  it("leaves to the network what it cannot store yet", async () => {
    const gateway = await start({ limits: { maxWaitingFrames: 4 } });
    const { client } = await gateway.open();
    let isOpen = false;
    gateway.onAccept = async () => {
      while (!isOpen) await new Promise((resolve) => setImmediate(resolve));
    };
    for (let i = 0; i < 400; i += 1) client.send("x".repeat(60_000));
    // Far more than the buffers of the network hold: the client keeps the rest for as long as nothing is stored.
    for (let i = 0; i < 40; i += 1) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(client.socket.bufferedAmount).toBeGreaterThan(0);
    }
    isOpen = true;
    await client.until(
      () => client.frames.filter(({ event }) => event === "message_accepted").length === 400,
      "all of them",
    );
    expect(gateway.accepted).toHaveLength(400);
  });

  it("bounds the chats of a connection", async () => {
    const gateway = await start({ limits: { maxChats: 3 } });
    const { client } = await gateway.open();
    for (const chat of ["a", "b", "c"]) client.send({ type: "attach", chat_id: chat });
    expect(await client.frame("error")).toMatchObject({ code: "too_many_chats", chat_id: "c" });
    client.send({ type: "attach", chat_id: "b", after: 0 });
    await client.until(() => client.frames.filter(({ chat_id }) => chat_id === "b").length === 2, "a second attach");
  });
});

describe("a slow reader", () => {
  it("is closed while it lives, and others of its chat get everything", async () => {
    const gateway = await start({ limits: { maxBufferedBytes: 200_000, closeGraceMs: 100 } });
    const [slow, quick] = [await gateway.open(), await gateway.open()];
    for (const { client } of [slow, quick]) {
      client.send({ type: "attach", chat_id: "chat" });
      await client.frame("attached");
    }
    slow.client.socket.pause();
    const text = "x".repeat(50_000);
    for (let i = 1; i <= 400; i += 1) {
      gateway.append("chat", text);
      if (i % 10 === 0) await quick.client.frame("message", { seq: i });
    }
    await eventually(() => gateway.events.followed === 2, "the slow reader to be gone");
    expect(quick.client.numbered("chat")).toHaveLength(400);
    slow.client.socket.resume();
    await slow.client.closed();
    expect(slow.client.numbered("chat").length).toBeLessThan(400);
  });

  it("can still catch up on a long log: a replay waits for it", async () => {
    const gateway = await start({ limits: { maxBufferedBytes: 400_000 } });
    for (let i = 0; i < 200; i += 1) gateway.append("chat", "x".repeat(50_000));
    const { client } = await gateway.open();
    client.socket.pause();
    client.send({ type: "attach", chat_id: "chat", after: 0 });
    await eventually(() => gateway.events.reads > 0, "the replay to begin");
    client.socket.resume();
    await client.frame("message", { seq: 200 });
    expect(client.numbered("chat")).toHaveLength(200);
  });
});

describe("being gone", () => {
  it("ends a connection that answers no ping, and keeps one that does", async () => {
    const gateway = await start({ limits: { pingMs: 40 } });
    const quiet = gateway.connect("?client_id=a", { autoPong: false });
    const lively = gateway.connect("?client_id=a");
    expect(await quiet.closed()).toBe(1006);
    expect(lively.closeCode).toBeNull();
    lively.send("here");
    await lively.frame("message_accepted");
  });

  it("survives a socket that breaks in the middle of a frame", async () => {
    const gateway = await start();
    const raw = connect(gateway.port, "127.0.0.1");
    raw.write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n");
    raw.write("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    await new Promise((resolve) => raw.once("data", resolve));
    raw.write(Buffer.from([0x81, 0xfe]));
    raw.destroy();
    const { client } = await gateway.open();
    client.send("fine");
    await client.frame("message_accepted");
    await eventually(() => gateway.events.followed === 1, "the broken one to be gone");
  });
});

describe("stopping", () => {
  it("closes everybody with 1012 after the message at hand was answered, and follows nothing any more", async () => {
    const gateway = await start({ logs: new MemoryChatLogs() });
    const clients = [await gateway.open(), await gateway.open()];
    const [busy] = clients;
    if (busy === undefined) throw new Error("unreachable");
    const atHand: Array<() => void> = [];
    gateway.onAccept = () => new Promise((resolve) => atHand.push(resolve));
    busy.client.send({ type: "message", chat_id: busy.chatId, content: "at hand", id: "1" });
    busy.client.send({ type: "message", chat_id: busy.chatId, content: "behind it", id: "2" });
    await eventually(() => atHand.length === 1, "the accept");
    const stopped = gateway.stop();
    for (const store of atHand) store();
    await stopped;
    expect(await Promise.all(clients.map(({ client }) => client.closed()))).toEqual([1012, 1012]);
    const ids = busy.client.frames.filter(({ event }) => event === "message_accepted").map(({ id }) => id);
    expect([ids, gateway.accepted.map(({ id }) => id)]).toEqual([["1"], ["1"]]);
    expect(gateway.events.followed).toBe(0);
  });

  it("does not wait for ever for a message that is never stored, nor for a client that never says goodbye", async () => {
    const gateway = await start({ limits: { closeGraceMs: 50 } });
    const { client } = await gateway.open();
    gateway.onAccept = () => new Promise(() => {});
    client.send("stuck");
    client.socket.pause();
    await gateway.stop();
  });
});

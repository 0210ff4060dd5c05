/** The protocol over real sockets: accepting after storing, order, owners, attaching, stopping. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inboundKeyOf, turnIdOf } from "../../../src/bus/messages.js";
import { NanogateError } from "../../../src/errors.js";
import { eventually } from "../../fakes/websocket-client.js";
import { TestGateway } from "./harness.js";

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await TestGateway.start();
});
afterEach(() => gateway.close());

describe("saying something", () => {
  it("is greeted, speaks in its default chat, and hears the answer", async () => {
    const { client, chatId } = await gateway.open();
    expect(await client.frame("ready")).toEqual({ event: "ready", chat_id: chatId, client_id: "alice" });
    client.send("hello");
    const accepted = await client.frame("message_accepted");
    const [message] = gateway.accepted;
    if (message === undefined) throw new Error("nothing accepted");
    expect(message).toMatchObject({
      content: "hello",
      chatId,
      senderId: "client:alice",
      role: "user",
      kind: "message",
    });
    expect(message.route).toEqual({
      via: "events",
      account: "websocket",
      channel: "websocket",
      chatId,
      isStreaming: true,
    });
    expect(accepted).toMatchObject({ chat_id: chatId, id: message.id, turn_id: turnIdOf(inboundKeyOf(message)) });
    gateway.append(chatId, "hi", { type: "delta", streamId: "s", offset: 0 });
    gateway.append(chatId, "hi", { type: "final", streamId: "s" });
    await client.frame("stream_end");
    expect(client.numbered(chatId).map(({ event, seq, text }) => [event, seq, text])).toEqual([
      ["delta", 1, "hi"],
      ["stream_end", 2, "hi"],
    ]);
  });

  it("says nothing of a message before it is stored, and keeps the order", async () => {
    const { client, chatId } = await gateway.open();
    const atHand: Array<() => void> = [];
    gateway.onAccept = () => new Promise((resolve) => atHand.push(resolve));
    for (const id of ["1", "2"]) client.send({ type: "message", chat_id: chatId, content: id, id });
    await eventually(() => atHand.length === 1, "the first accept");
    // An event travels the same socket: had there been an acceptance, it would have come before.
    gateway.append(chatId, "meanwhile");
    await client.frame("message");
    expect(client.frames.some(({ event }) => event === "message_accepted")).toBe(false);
    gateway.onAccept = async () => {};
    for (const store of atHand) store();
    await client.frame("message_accepted", { id: "2" });
    const ids = client.frames.filter(({ event }) => event === "message_accepted").map(({ id }) => id);
    expect([ids, gateway.accepted.map(({ content }) => content)]).toEqual([
      ["1", "2"],
      ["1", "2"],
    ]);
  });

  it("accepts the same id twice with one turn", async () => {
    const { client, chatId } = await gateway.open();
    for (let i = 0; i < 2; i += 1) client.send({ type: "message", chat_id: chatId, content: "once", id: "same" });
    client.send({ type: "message", chat_id: chatId, content: "next", id: "next" });
    await client.frame("message_accepted", { id: "next" });
    const same = client.frames.filter(({ id }) => id === "same");
    expect(same).toHaveLength(2);
    expect(same[0]).toEqual(same[1]);
    expect(gateway.accepted.map(({ content }) => content)).toEqual(["once", "next"]);
  });

  it.each([
    ["BUS_OVERLOADED", "overloaded"],
    ["BUS_UNAVAILABLE", "unavailable"],
    [null, "internal"],
  ] as const)("tells %s as a soft error and stays", async (code, told) => {
    const { client, chatId } = await gateway.open();
    gateway.onAccept = async () => {
      throw code === null ? new Error("secret reason") : new NanogateError(code, "no");
    };
    client.send({ type: "message", chat_id: chatId, content: "a", id: "7" });
    const error = await client.frame("error");
    expect(error).toMatchObject({ code: told, chat_id: chatId, id: "7" });
    expect(JSON.stringify(error)).not.toContain("secret");
    gateway.onAccept = async () => {};
    client.send({ type: "message", chat_id: chatId, content: "a", id: "7" });
    await client.frame("message_accepted", { id: "7" });
  });

  it("passes a stop on as the command", async () => {
    const { client, chatId } = await gateway.open();
    client.send({ type: "stop", chat_id: chatId });
    await eventually(() => gateway.accepted.length === 1, "the stop");
    expect(gateway.accepted[0]).toMatchObject({ content: "/stop", chatId });
  });

  it("answers broken, unknown and binary frames softly", async () => {
    const { client, chatId } = await gateway.open();
    client.send(Buffer.from([0xff, 0xfe]));
    client.send(Buffer.from("text in a binary frame"));
    client.socket.send(Buffer.from([0x61, 0xff, 0xfe]), { binary: false });
    client.send({ type: "dance" });
    client.send({ type: "attach", chat_id: "no/such" });
    client.send({ type: "message", chat_id: chatId, content: "x", media: ["data:"] });
    client.send("   ");
    client.send("still here");
    await client.frame("message_accepted");
    const codes = client.frames.filter(({ event }) => event === "error").map(({ code }) => code);
    expect(codes).toEqual(["bad_frame", "bad_frame", "bad_frame", "unknown_type", "bad_chat_id", "media_unsupported"]);
    expect(gateway.accepted.map(({ content }) => content)).toEqual(["still here"]);
  });
});

describe("a ping", () => {
  it("is answered at once and without a number, though nothing can be stored", async () => {
    const { client } = await gateway.open();
    gateway.onAccept = () => new Promise(() => {});
    client.send("stuck");
    client.send({ type: "ping" });
    expect(await client.frame("pong")).toEqual({ event: "pong" });
    expect(client.frames.some(({ event }) => event === "message_accepted")).toBe(false);
  });
});

describe("chats and their owners", () => {
  it("opens a new chat and follows it", async () => {
    const { client, chatId } = await gateway.open();
    client.send({ type: "new_chat" });
    const attached = await client.frame("attached");
    expect(attached).toMatchObject({ seq: 0, epoch: 1 });
    expect(attached.chat_id).not.toBe(chatId);
    gateway.append(String(attached.chat_id), "welcome");
    expect(await client.frame("message")).toMatchObject({ chat_id: attached.chat_id, seq: 1 });
  });

  it("keeps strangers out of a chat, by attach, message and stop, and stores nothing of theirs", async () => {
    const alice = await gateway.open("?client_id=alice");
    alice.client.send({ type: "message", chat_id: "hers", content: "mine" });
    await alice.client.frame("message_accepted");
    const bob = await gateway.open("?client_id=bob");
    bob.client.send({ type: "attach", chat_id: "hers", after: 0 });
    bob.client.send({ type: "message", chat_id: "hers", content: "let me in", id: "b1" });
    bob.client.send({ type: "stop", chat_id: "hers" });
    await bob.client.until(
      () => bob.client.frames.filter(({ code }) => code === "access_denied").length === 3,
      "refusals",
    );
    gateway.append("hers", "private");
    await alice.client.frame("message", { text: "private" });
    bob.client.send("my own");
    await bob.client.frame("message_accepted");
    expect(JSON.stringify(bob.client.frames)).not.toContain("private");
    expect(gateway.accepted.map(({ content }) => content)).toEqual(["mine", "my own"]);
  });

  it("lets the same identity in from another connection", async () => {
    const first = await gateway.open("?client_id=alice");
    first.client.send({ type: "attach", chat_id: "hers" });
    await first.client.frame("attached");
    const second = await gateway.open("?client_id=alice");
    second.client.send({ type: "attach", chat_id: "hers" });
    await second.client.frame("attached", { chat_id: "hers" });
  });

  it("shows every chat to the owner", async () => {
    const alice = await gateway.open("?client_id=alice");
    alice.client.send({ type: "attach", chat_id: "hers" });
    await alice.client.frame("attached");
    const owner = gateway.connect("ws", { origin: `http://127.0.0.1:${gateway.port}` });
    await owner.frame("ready");
    owner.send({ type: "attach", chat_id: "hers" });
    await owner.frame("attached", { chat_id: "hers" });
    owner.send({ type: "message", chat_id: "hers", content: "/restart" });
    await owner.frame("message_accepted");
    expect(gateway.accepted.at(-1)).toMatchObject({ senderId: "owner", isOwner: true });
  });

  it("shares one feed between connections and gives it up when the last has left", async () => {
    const [a, b] = [await gateway.open("?client_id=alice"), await gateway.open("?client_id=alice")];
    for (const { client } of [a, b]) {
      client.send({ type: "attach", chat_id: "shared" });
      await client.frame("attached");
    }
    expect(gateway.events.followed).toBe(3);
    a.client.socket.terminate();
    await eventually(() => gateway.events.followed === 2, "the first to leave");
    gateway.append("shared", "still");
    await b.client.frame("message");
    b.client.socket.close();
    await eventually(() => gateway.events.followed === 0, "the last to leave");
  });

  it("tells that the store is away when attaching, and attaches later", async () => {
    const { client } = await gateway.open();
    gateway.events.failure = new NanogateError("BUS_UNAVAILABLE", "away");
    client.send({ type: "attach", chat_id: "c" });
    expect(await client.frame("error")).toMatchObject({ code: "unavailable", chat_id: "c" });
    gateway.events.failure = null;
    client.send({ type: "attach", chat_id: "c" });
    await client.frame("attached", { chat_id: "c" });
  });
});

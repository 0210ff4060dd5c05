/** One-time tokens at the door: whose connection it is, what is read before that is known, and how many may come. */
import { afterEach, describe, expect, it } from "vitest";
import { NanogateError } from "../../../src/errors.js";
import { MemoryTokens } from "../../fakes/memory-tokens.js";
import { eventually } from "../../fakes/websocket-client.js";
import { type GatewayOptions, TestGateway } from "./harness.js";

const open: TestGateway[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((gateway) => gateway.close()));
});

const SECRET = "the-gateway-token";

async function start(options: GatewayOptions = {}) {
  const tokens = new MemoryTokens();
  const gateway = await TestGateway.start({ token: SECRET, tokens, ...options });
  open.push(gateway);
  const issue = async (clientId: string): Promise<string> => {
    const issued = await tokens.issue(clientId);
    if (!issued.ok) throw new Error("unreachable");
    return issued.token;
  };
  return { gateway, tokens, issue };
}

/** Holds look-ups back; `asked` counts them. */
function holdLookups(tokens: MemoryTokens) {
  const held = { asked: 0, release: () => {} };
  const released = new Promise<void>((resolve) => {
    held.release = resolve;
  });
  tokens.beforeRedeem = () => {
    held.asked += 1;
    return released;
  };
  return held;
}

describe("a one-time token", () => {
  it("lets in once, as the client it was issued for and never as the owner", async () => {
    const { gateway, issue } = await start();
    const token = await issue("alice");
    const first = await gateway.open(`?token=${token}`);
    expect(await first.client.frame("ready")).toMatchObject({ client_id: "alice" });
    first.client.send("hello");
    await first.client.frame("message_accepted");
    expect(gateway.accepted[0]).toMatchObject({ senderId: "client:alice", isOwner: false });
    expect(await gateway.connect(`?token=${token}`).closed()).toBe(4401);

    const owner = await gateway.open(`?token=${SECRET}`);
    owner.client.send({ type: "message", chat_id: "owners", content: "mine" });
    await owner.client.frame("message_accepted");
    first.client.send({ type: "attach", chat_id: "owners" });
    await first.client.frame("error", { code: "access_denied" });
  });

  it("is refused under another client's name, in a wrong shape, and by a page of another origin", async () => {
    const { gateway, issue } = await start();
    expect(await gateway.connect(`?token=${await issue("alice")}&client_id=bob`).closed()).toBe(4401);
    expect(await gateway.connect("?token=no-such-token").closed()).toBe(4401);
    const token = await issue("alice");
    expect(await gateway.connect(`?token=${token}`, { origin: "https://evil.example" }).closed()).toBe(4403);
    // That origin has not used it up.
    await gateway.open(`?token=${token}&client_id=alice`);
  });

  it("finds every chat of its client again, from the next connection", async () => {
    const { gateway, issue } = await start();
    for (const content of ["one", "two"]) {
      const { client } = await gateway.open(`?token=${await issue("alice")}`);
      client.send({ type: "message", chat_id: "hers", content });
      await client.frame("message_accepted");
    }
    const { client: bob } = await gateway.open(`?token=${await issue("bob")}`);
    bob.send({ type: "message", chat_id: "hers", content: "three" });
    await bob.frame("error", { code: "access_denied", chat_id: "hers" });
    expect(gateway.accepted.map(({ content }) => content)).toEqual(["one", "two"]);
  });
});

describe("while a token is looked up", () => {
  it("nothing is read; what was sent meanwhile is taken in order afterwards", async () => {
    const { gateway, tokens, issue } = await start();
    const held = holdLookups(tokens);
    const client = gateway.connect(`?token=${await issue("alice")}`);
    client.socket.on("open", () => {
      for (const id of ["a", "b", "c"]) client.send({ type: "message", chat_id: "hers", content: id, id });
    });
    await eventually(() => held.asked === 1 && client.socket.bufferedAmount === 0, "the look-up");
    expect([client.frames, gateway.accepted]).toEqual([[], []]);
    held.release();
    await client.frame("message_accepted", { id: "c" });
    expect(gateway.accepted.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  });

  it("nothing of a stranger is ever read", async () => {
    const { gateway, tokens } = await start();
    const held = holdLookups(tokens);
    const client = gateway.connect("?token=guessed");
    client.socket.on("open", () => client.send("let me in"));
    await eventually(() => held.asked === 1 && client.socket.bufferedAmount === 0, "the look-up");
    held.release();
    expect(await client.closed()).toBe(4401);
    expect([client.frames, gateway.accepted]).toEqual([[], []]);
  });

  it("a client may leave, and the channel may stop: nobody is left behind", async () => {
    const { gateway, tokens, issue } = await start({ limits: { closeGraceMs: 200 } });
    const held = holdLookups(tokens);
    const left = gateway.connect(`?token=${await issue("alice")}`);
    const waiting = gateway.connect(`?token=${await issue("bob")}`);
    await eventually(() => held.asked === 2, "the look-ups");
    left.socket.terminate();
    await gateway.stop();
    expect(await waiting.closed()).toBe(1012);
    held.release();
    expect([left.frames, waiting.frames, gateway.events.followed]).toEqual([[], [], 0]);
  });

  it("tells to come again later when nobody can say whose it is", async () => {
    const { gateway, tokens, issue } = await start();
    tokens.beforeRedeem = () => Promise.reject(new NanogateError("BUS_UNAVAILABLE", "away"));
    expect(await gateway.connect(`?token=${await issue("alice")}`).closed()).toBe(1013);
  });
});

describe("too many connections", () => {
  it("of one client with tokens close the newest, until one leaves; others and the owner come in", async () => {
    const { gateway, issue } = await start({ limits: { maxPerClient: 2 } });
    const first = await gateway.open(`?token=${await issue("alice")}`);
    await gateway.open(`?token=${await issue("alice")}`);
    expect(await gateway.connect(`?token=${await issue("alice")}`).closed()).toBe(1013);
    await gateway.open(`?token=${await issue("bob")}`);
    for (let i = 0; i < 3; i += 1) await gateway.open(`?token=${SECRET}&client_id=alice`);
    first.client.socket.close();
    await first.client.closed();
    await gateway.open(`?token=${await issue("alice")}`);
    expect(await gateway.connect(`?token=${await issue("alice")}`).closed()).toBe(1013);
  });

  it("of a process close the newest, those whose token is looked up among them, and use up no token", async () => {
    const { gateway, tokens, issue } = await start({ limits: { maxConnections: 2 } });
    const owner = await gateway.open(`?token=${SECRET}`);
    const held = holdLookups(tokens);
    const waiting = gateway.connect(`?token=${await issue("alice")}`);
    await eventually(() => held.asked === 1, "the look-up");
    const token = await issue("bob");
    expect(await gateway.connect(`?token=${token}`).closed()).toBe(1013);
    held.release();
    await waiting.frame("ready");
    owner.client.socket.close();
    await owner.client.closed();
    await gateway.open(`?token=${token}`);
  });
});

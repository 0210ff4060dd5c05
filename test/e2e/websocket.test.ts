/**
 * The WebSocket channel on real gateways: one-time tokens over two processes, a client that changes the process in the
 * middle of an answer, clients of nanobot, and answers that are not streamed.
 */
import { afterEach, expect, it } from "vitest";
import { TestClient } from "../fakes/websocket-client.js";
import { Client } from "./support/client.js";
import { type GatewayProcess, Stage } from "./support/stage.js";
import { wireFaults } from "./support/wire.js";

const TOKEN = "gateway-token-of-this-stage";

let stage: Stage;
const clients: Array<Client | TestClient> = [];
afterEach(async () => {
  for (const client of clients.splice(0)) {
    if (client instanceof Client) client.disconnect();
    else client.socket.terminate();
  }
  await stage.close();
});

function kept<T extends Client | TestClient>(client: T): T {
  clients.push(client);
  return client;
}

async function ask(door: GatewayProcess, clientId: string, token = TOKEN): Promise<Response> {
  return fetch(`http://127.0.0.1:${await door.ready}/auth/token`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ client_id: clientId }),
  });
}

/** The address of a door for one connection of a client. */
async function ticket(issuer: GatewayProcess, clientId: string, door = issuer): Promise<string> {
  const answer = await ask(issuer, clientId);
  const { token, expires_in: seconds } = (await answer.json()) as { token: string; expires_in: number };
  expect([answer.status, seconds]).toEqual([200, 300]);
  return `ws://127.0.0.1:${await door.ready}/?token=${token}`;
}

async function twoDoors(): Promise<[GatewayProcess, GatewayProcess]> {
  stage = await Stage.open({ gateway: { token: TOKEN } });
  return [await stage.gateway(), await stage.gateway({ role: "channels" })];
}

it("lets a client in once for each token, at any process, as itself and never as the owner", async () => {
  const [one, other] = await twoDoors();
  expect((await ask(one, "alice", "guessed")).status).toBe(401);
  const alice = kept(new Client("hers", "alice"));
  const hers = await ticket(one, "alice", other);
  await alice.connect(hers);
  await alice.say("hello", "m1");
  expect((await alice.end("m1")).outcome).toBe("completed");
  expect(alice.answers).toEqual(["re: hello"]);
  expect(await kept(new TestClient(hers)).closed()).toBe(4401);

  // Both processes are asked at once, and one of them lets it in.
  const { search } = new URL(await ticket(other, "bob"));
  const bobs = await Promise.all(
    [one, other, one, other].map(async (door) => kept(new TestClient(`ws://127.0.0.1:${await door.ready}/${search}`))),
  );
  await Promise.all(
    bobs.map((each) => each.until(() => each.closeCode !== null || each.frames.length > 0, "an answer")),
  );
  expect(bobs.map(({ closeCode }) => closeCode).sort()).toEqual([4401, 4401, 4401, null].sort());
  const bob = bobs.find(({ closeCode }) => closeCode === null);
  bob?.send({ type: "attach", chat_id: "hers", after: 0 });
  await bob?.frame("error", { code: "access_denied", chat_id: "hers" });
  bob?.send({ type: "message", chat_id: "hers", content: "/restart", id: "b1" });
  await bob?.frame("error", { code: "access_denied", id: "b1" });

  const owner = kept(new TestClient(`ws://127.0.0.1:${await one.ready}/?token=${TOKEN}&client_id=bob`));
  await owner.frame("ready");
  owner.send({ type: "attach", chat_id: "hers", after: 0 });
  await owner.frame("turn_end", { chat_id: "hers" });
  expect([one.log, other.log].join("")).not.toMatch(/ngt_|gateway-token-of-this-stage/);
});

it("goes on with an answer at another process, under a new token, without a gap or a repeat", async () => {
  const [one, other] = await twoDoors();
  const alice = kept(new Client("hers", "alice"));
  await alice.connect(await ticket(one, "alice"));
  const said = `slowly ${"and so on ".repeat(12)}`.trim();
  await alice.say(said, "m1");
  await alice.until(() => alice.events.filter(({ event }) => event === "delta").length >= 2);
  alice.disconnect();
  const before = alice.lastSeq;
  await alice.connect(await ticket(one, "alice", other));
  await alice.end("m1");
  expect(alice.events.at(-1)?.seq).toBeGreaterThan(before);
  expect([alice.answers, alice.faults, wireFaults(alice.events)]).toEqual([[`re: ${said}`], [], []]);
});

it("speaks with clients of nanobot as they are", async () => {
  stage = await Stage.open();
  const door = await stage.gateway();
  const client = kept(new TestClient(await door.url("nano")));
  const { chat_id: chatId } = await client.frame("ready", { client_id: "nano" });
  const frames = [
    "plain text",
    { content: "content" },
    { text: "text" },
    { message: "message" },
    { type: "message", chat_id: chatId, content: "typed", turn_id: "u-1", webui: true, language: "en" },
  ];
  const answers: unknown[] = [];
  for (const frame of frames) {
    const from = client.frames.length;
    client.send(frame);
    const { id } = await client.frame("message_accepted", { chat_id: chatId }, from);
    const end = await client.frame("turn_end", { chat_id: chatId }, from);
    expect(end.message_ids).toEqual([id]);
    answers.push((await client.frame("stream_end", { chat_id: chatId }, from)).text);
  }
  expect(answers).toEqual(["plain text", "content", "text", "message", "typed"].map((text) => `re: ${text}`));
  expect(client.frames.findLast(({ event }) => event === "message_accepted")).toMatchObject({ id: "u-1" });
  client.send({ type: "ping" });
  expect(await client.frame("pong")).toEqual({ event: "pong" });
});

it("gives whole answers only where streaming is off, of turns with tool calls too, from a worker of its own", async () => {
  stage = await Stage.open({ channels: { websocket: { streaming: false } } });
  const [door] = [await stage.gateway({ role: "channels" }), await stage.gateway({ role: "worker" })];
  const client = kept(new Client("quiet"));
  await client.connect(await door.url("alice"));
  await client.say("slowly, but in one piece", "m1");
  await client.end("m1");
  await client.say('call list_dir {"path":"."}', "m2");
  await client.end("m2");
  const events = client.events.map(({ event }) => event);
  expect(events).toEqual(["message", "turn_end", "message", "turn_end"]);
  expect(client.answers[0]).toBe("re: slowly, but in one piece");
  expect(client.answers[1]).toMatch(/^used: /);
  expect([client.faults, wireFaults(client.events)]).toEqual([[], []]);
});

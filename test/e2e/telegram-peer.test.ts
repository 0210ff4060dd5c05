/** The bot answers on `telegram-test-api`, a Bot API that nobody here wrote. */
import { once } from "node:events";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, expect, it } from "vitest";
import { Stage } from "./support/stage.js";

/** The part of it that is used; its own types do not say how it is exported. */
interface Peer {
  config: { apiURL: string };
  storage: { botMessages: Array<{ message: { chat_id: string | number; text: string } }> };
  start(): Promise<void>;
  stop(): Promise<unknown>;
  /** Every poll comes here; it is answered at once, also with nothing. */
  getUpdates(token: string): unknown[];
  getClient(token: string, options: { chatId: number; userId: number }): PeerClient;
}
interface PeerClient {
  makeMessage(text: string): unknown;
  sendMessage(message: unknown): Promise<unknown>;
}
const TelegramServer = createRequire(import.meta.url)("telegram-test-api") as new (where: {
  port: number;
  host: string;
}) => Peer;

const TOKEN = `123456789:${"A".repeat(35)}`;

let peer: Peer;
let stage: Stage;
let polls = 0;
afterEach(async () => {
  await stage.close();
  await peer.stop();
});

/** It takes no port 0. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}

it("a private message is answered; polls that are answered at once are not repeated at once", async () => {
  peer = new TelegramServer({ port: await freePort(), host: "127.0.0.1" });
  const answer = peer.getUpdates.bind(peer);
  peer.getUpdates = (token) => {
    polls += 1;
    return answer(token);
  };
  await peer.start();
  const startedMs = performance.now();
  const telegram = { token: TOKEN, apiRoot: peer.config.apiURL, allowFrom: ["*"], reaction: null };
  stage = await Stage.open({ channels: { telegram } });
  const gateway = await stage.gateway();
  const client = peer.getClient(TOKEN, { chatId: 77, userId: 77 });
  await client.sendMessage(client.makeMessage("hello"));
  const texts = () => peer.storage.botMessages.map(({ message }) => `${message.chat_id}: ${message.text}`);
  const deadline = performance.now() + 30_000;
  while (!texts().includes("77: re: hello") && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 50));
  expect(texts(), gateway.log).toEqual(["77: re: hello"]);
  expect(polls).toBeLessThan(10 + (performance.now() - startedMs) / 100);
});

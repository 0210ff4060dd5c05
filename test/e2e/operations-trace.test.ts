/** One message is followed through the logs of two processes by its ids, and nothing of what was said stands in them. */
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { type GatewayProcess, Stage } from "./support/stage.js";

let stage: Stage;
let busy: Server;
beforeEach(async () => {
  // A provider that has no time, and wants to be asked again at once.
  busy = createServer((_request, response) => response.writeHead(503, { "retry-after": "0" }).end());
  await once(busy.listen(0, "127.0.0.1"), "listening");
  stage = await Stage.open();
});
afterEach(async () => {
  await stage.close();
  busy.closeAllConnections();
  busy.close();
});

type Line = Record<string, unknown>;
const linesOf = (log: GatewayProcess): Line[] =>
  log.log.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Line] : []));

/** The busy model first, then the stage's own. */
async function askBusyFirst(): Promise<void> {
  const config = JSON.parse(await readFile(stage.configFile, "utf8"));
  const { port } = busy.address() as AddressInfo;
  config.providers.busy = { ...config.providers.peer, baseUrl: `http://127.0.0.1:${port}/v1` };
  config.agent = { model: "busy/m", fallbackModels: ["peer/m"] };
  await writeFile(stage.configFile, JSON.stringify(config));
}

it("has the ids of the message in every line about it, in both processes", async () => {
  await askBusyFirst();
  await mkdir(stage.workspace, { recursive: true });
  await writeFile(path.join(stage.workspace, "a.txt"), "said in a file");
  const [door, worker] = await Promise.all([stage.gateway({ role: "channels" }), stage.gateway({ role: "worker" })]);
  const client = new Client("kitchen");
  await client.connect(await door.url("alice"));
  const turn = await client.say('a word of mine: call read_file {"path":"a.txt"}', "m1");
  await client.end("m1");
  await Promise.all([worker.logged('"msg":"turn ended"'), door.logged(`${turn}.end`)]);

  const taken = linesOf(door).find(({ messageId }) => messageId === "m1");
  expect(taken).toMatchObject({ turn, account: "websocket", chatId: "kitchen", session: "websocket:kitchen" });
  const ids = { session: "websocket:kitchen", turn, inbound: taken?.inbound, messageId: "m1", chatId: "kitchen" };
  const worked = linesOf(worker).filter((line) => line.turn === turn);
  // The first model has no time: that is told under the same ids, by rooms that know of no turn.
  for (const msg of [
    "model call is tried again",
    "a model failed, the next one is asked",
    "a fallback model answered",
    "turn ended",
  ])
    expect(worked.find((line) => line.msg === msg)).toMatchObject(ids);
  for (const line of worked) expect(line).toMatchObject(ids);
  const sent = linesOf(door).filter((line) => line.turn === turn && line.outbound !== undefined);
  expect(sent).toMatchObject([
    { chatId: "kitchen", account: "websocket" },
    { chatId: "kitchen", outbound: `${turn}.end` },
  ]);
  // No line about the model leaves its turn out.
  const loose = linesOf(worker).filter((line) => /model/.test(String(line.msg)) && line.turn === undefined);
  expect(loose).toEqual([]);

  for (const said of ["a word of mine", "said in a file", "used: "]) {
    expect(door.log).not.toContain(said);
    expect(worker.log).not.toContain(said);
  }
});

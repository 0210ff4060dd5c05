/** Many messages at once, over two doors and two workers: each answered once, and those of a session in order. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { historyFaults } from "./support/history.js";
import { type GatewayProcess, Stage } from "./support/stage.js";

/** Two doors and two workers on one stage. */
interface Company {
  stage: Stage;
  doors: [GatewayProcess, GatewayProcess];
}

async function company(agent: object): Promise<Company> {
  const stage = await Stage.open({ agent: { model: "peer/m", ...agent } });
  const roles = ["channels", "channels", "worker", "worker"] as const;
  const [one, two] = await Promise.all(roles.map((role) => stage.gateway({ role })));
  if (one === undefined || two === undefined) throw new Error("no doors");
  return { stage, doors: [one, two] };
}

async function clientAt(door: GatewayProcess, chat: string): Promise<Client> {
  const client = new Client(chat);
  await client.connect(await door.url("alice"));
  return client;
}

const numbered = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${String(index).padStart(3, "0")}`);

/** Ids of the messages that turns answered, in the order in which the turns ended. */
const answeredIds = (client: Client): string[] =>
  client.events.filter(({ event }) => event === "turn_end").flatMap(({ message_ids }) => message_ids ?? []);

describe("queue mode followup", () => {
  let here: Company;
  beforeAll(async () => {
    here = await company({ queueMode: "followup" });
  });
  afterAll(() => here.stage.close());

  it("answers 200 messages of one session, posted by two clients at two doors, in order and each once", async () => {
    const clients = [await clientAt(here.doors[0], "hot"), await clientAt(here.doors[1], "hot")] as const;
    const ids = [numbered("a", 100), numbered("b", 100)] as const;
    for (const [at, client] of clients.entries()) for (const id of ids[at] ?? []) client.post(id, id);
    await Promise.all(clients.flatMap((client) => ids.flat().map((id) => client.end(id))));
    const order = answeredIds(clients[0]);
    expect(order).toHaveLength(200);
    for (const [at, prefix] of ["a", "b"].entries())
      expect(order.filter((id) => id.startsWith(prefix))).toEqual(ids[at]);
    expect(clients[0].answers).toEqual(order.map((id) => `re: ${id}`));
    expect(clients[1].events).toEqual(clients[0].events);
    const rows = await here.stage.rows("websocket:hot");
    expect(rows.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual(order);
    expect(historyFaults(rows)).toEqual([]);
    expect(clients.flatMap(({ faults }) => faults)).toEqual([]);
  });

  it("answers 200 sessions at once", async () => {
    const chats = numbered("s", 200);
    const clients = await Promise.all(chats.map((chat, at) => clientAt(here.doors[at % 2 === 0 ? 0 : 1], chat)));
    for (const client of clients) for (const text of ["one", "two"]) client.post(`${client.chatId} ${text}`, text);
    await Promise.all(clients.flatMap((client) => [client.end("one"), client.end("two")]));
    for (const client of clients) {
      expect(client.answers).toEqual([`re: ${client.chatId} one`, `re: ${client.chatId} two`]);
      expect(client.faults).toEqual([]);
      client.disconnect();
    }
  });

  it("makes one turn of an id that is sent ten times over two doors, and none when it comes again later", async () => {
    const clients = await Promise.all(here.doors.map((door) => clientAt(door, "twice")));
    const open = here.stage.model.hold("only once");
    for (let round = 0; round < 5; round += 1) for (const client of clients) client.post("only once", "same");
    const accepted = (client: Client) => client.replies.filter(({ event }) => event === "message_accepted");
    await Promise.all(clients.map((client) => client.until(() => accepted(client).length === 5)));
    open();
    await Promise.all(clients.map((client) => client.end("same")));
    await clients[1]?.say("only once", "same");
    await clients[0]?.say("next", "other");
    await clients[0]?.end("other");
    const turns = clients.flatMap(accepted).filter(({ id }) => id === "same");
    expect(new Set(turns.map(({ turn_id }) => turn_id)).size).toBe(1);
    expect(clients[0]?.answers).toEqual(["re: only once", "re: next"]);
    expect(here.stage.model.asked("only once")).toBe(1);
  });
});

describe("queue mode steer", () => {
  let here: Company;
  beforeAll(async () => {
    here = await company({ queueMode: "steer" });
  });
  afterAll(() => here.stage.close());

  it("answers every one of 200 messages once and in order, though several share a turn", async () => {
    const client = await clientAt(here.doors[0], "hot");
    const ids = numbered("m", 200);
    for (const id of ids) client.post(id, id);
    await client.until(() => answeredIds(client).length >= 200);
    await client.say("last", "last");
    await client.end("last");
    expect(answeredIds(client)).toEqual([...ids, "last"]);
    const rows = await here.stage.rows("websocket:hot");
    const said = rows.filter(({ role }) => role === "user").flatMap(({ content }) => String(content).split("\n\n"));
    expect(said).toEqual([...ids, "last"]);
    expect(client.answers.flatMap((text) => text.replace("re: ", "").split("\n\n"))).toEqual([...ids, "last"]);
    const turns = client.events.filter(({ event }) => event === "turn_end");
    expect(Math.max(...turns.map(({ message_ids }) => message_ids?.length ?? 0))).toBeLessThanOrEqual(1 + 5 * 3);
    expect(turns.length).toBeLessThan(100);
    expect(historyFaults(rows)).toEqual([]);
    expect(client.faults).toEqual([]);
  });
});

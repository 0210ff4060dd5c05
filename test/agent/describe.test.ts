/** `/help` and `/status`: what they tell, and that it is of this session only. */
import { expect, test } from "vitest";
import { createDescribe } from "../../src/agent/commands/describe.js";
import { COMMANDS } from "../../src/commands.js";
import { keyOf } from "../support/agent-fixture.js";
import { eventsRoute, inbound } from "../support/bus-fixture.js";
import { scripted, text } from "./scripted-provider.js";
import { agentStage } from "./stage.js";

const stage = agentStage();
const one = inbound("one", { route: eventsRoute("c") });

async function describer(uptimeMs: number) {
  const agent = await stage.open(scripted(text("hello")));
  const { sessions } = agent;
  const { upkeep } = agent.fixture.stack;
  const describe = createDescribe({
    version: "1.2.3",
    modelLabel: () => "peer/m",
    sessions,
    upkeep,
    uptimeMs: () => uptimeMs,
  });
  return { agent, describe };
}

test("help lists every command with its arguments and what it does", async () => {
  const { describe } = await describer(0);
  const lines = (await describe("help", keyOf(one))).split("\n");
  expect(lines).toHaveLength(COMMANDS.length);
  expect(lines).toContain("/new — stop, and begin a new conversation");
  expect(lines.find((line) => line.startsWith("/stop [all] — "))).toBeDefined();
});

test("status names version, model, this session's rows and the workers, and changes nothing", async () => {
  const { agent, describe } = await describer(3 * 3_600_000 + 61_000);
  await agent.talk(one);
  const status = await describe("status", keyOf(one));
  expect(status.split("\n")).toEqual([
    "nanogate 1.2.3, up 3 h 1 min",
    "Model: peer/m",
    "Session web:c: 2 rows",
    "Workers: 1. Sessions running: 0, ready: 0, waiting for a slot: 0, parked: 0",
  ]);
  expect(await describe("status", keyOf(one))).toBe(status);
});

test("status of a session that is not there yet, and of what waits elsewhere", async () => {
  const { agent, describe } = await describer(59_999);
  await agent.accept(inbound("x", { route: eventsRoute("other") }));
  const status = await describe("status", keyOf(one));
  expect(status).toContain("up 0 min");
  expect(status).toContain("Session web:c: 0 rows");
  expect(status).toContain("ready: 1");
  expect(status).not.toContain("other");
});

/** `/pairing` over a real Redis: owners decide in a chat, others are refused, and a repeated message says what it said. */
import { describe, expect, it, test } from "vitest";
import { decisionText } from "../../src/agent/commands/pairing-texts.js";
import type { InboundMessage } from "../../src/bus/messages.js";
import type { PairingStore } from "../../src/channels/ports.js";
import type { AgentFixture } from "../support/agent-fixture.js";
import { eventsRoute, inbound, outboxRoute, outgoing } from "../support/bus-fixture.js";
import { scripted } from "./scripted-provider.js";
import { agentStage } from "./stage.js";

const stage = agentStage();
const say = (content: string, overrides: Partial<InboundMessage> = {}) =>
  inbound(content, { route: eventsRoute("c"), isOwner: true, ...overrides });

async function opened() {
  const agent = await stage.open(scripted());
  const pairings: PairingStore = agent.fixture.stack.pairings(false);
  const ask = async (senderId: string): Promise<string> => {
    const welcome = (code: string) => outgoing(outboxRoute("d"), code, "Welcome.", { type: "notice" });
    const answer = await pairings.request({ channel: "chat", senderId, welcome });
    if (answer.kind !== "code") throw new Error(answer.kind);
    return answer.request.code;
  };
  return { agent, pairings, ask };
}

async function answer(agent: AgentFixture, message: InboundMessage): Promise<string> {
  const taken = await agent.accept(message);
  if (taken.status !== "command") throw new Error(taken.status);
  return taken.text;
}

describe("an owner", () => {
  it("lists, approves, denies and revokes", async () => {
    const { agent, pairings, ask } = await opened();
    expect(await answer(agent, say("/pairing"))).toBe("Nobody waits to be paired.\nNobody is paired.");
    const [one, two, three] = [await ask("1"), await ask("2"), await ask("3")];
    expect(await answer(agent, say("/pairing list"))).toContain(`- \`${one}\`: 1 on chat, 10 minutes left`);
    expect(await answer(agent, say(`/pairing approve ${one}`))).toBe(
      "1 on chat is paired now, and an owner, being the first.",
    );
    expect(await answer(agent, say(`/PAIRING@gate_bot Approve ${two.replace("-", " ").toLowerCase()}`))).toBe(
      "2 on chat is paired now.",
    );
    expect(await answer(agent, say(`/pairing deny ${three}`))).toMatch(/^3 on chat was denied/);
    expect(await answer(agent, say("/pairing revoke CHAT 2"))).toBe("2 on chat is no longer paired.");
    expect(await answer(agent, say("/pairing revoke chat 2"))).toMatch(/^2 on chat is not paired\./);
    expect(await answer(agent, say("/pairing list"))).toBe("Nobody waits to be paired.\nPaired:\n- 1 on chat, owner");
    expect(await pairings.find("chat", "2")).toBeNull();
    const welcomed = await agent.fixture.stack.outbox.read("bot", "0", 1);
    expect(welcomed.map(({ outgoing: { message } }) => message.content)).toEqual(["Welcome.", "Welcome."]);
  });

  it.each(["/pairing approve", "/pairing revoke chat", "/pairing list all", "/pairing open a", "/pairing deny a b c"])(
    "%j is told how it is used",
    async (content) => {
      const { agent } = await opened();
      expect(await answer(agent, say(content))).toMatch(/^Use \/pairing list, /);
    },
  );

  it("gets the same answer when the message comes again, also when the first was never told", async () => {
    const { agent, ask } = await opened();
    const message = say(`/pairing approve ${await ask("1")}`);
    const first = await answer(agent, message);
    expect(await answer(agent, message)).toBe(first);
    expect(await answer(agent, { ...message, id: "another" })).toBe(
      "This code was decided about already; a code counts once.",
    );
  });

  it("who guesses is locked out, others are not", async () => {
    const { agent, ask } = await opened();
    const code = await ask("1");
    for (let i = 0; i < 5; i += 1)
      expect(await answer(agent, say("/pairing approve AAAA-AAAA"))).toMatch(/no such code/);
    expect(await answer(agent, say(`/pairing approve ${code}`))).toMatch(/^Too many wrong codes: none .* 10 minutes/);
    expect(await answer(agent, say(`/pairing approve ${code}`, { senderId: "bob" }))).toMatch(/is paired now/);
  });
});

it("nobody but an owner gets more than a refusal", async () => {
  const { agent, pairings, ask } = await opened();
  const code = await ask("1");
  for (const content of [
    "/pairing",
    "/pairing list",
    `/pairing approve ${code}`,
    `/pairing deny ${code}`,
    "/pairing x",
  ])
    expect(await answer(agent, say(content, { isOwner: false }))).toBe("Only an owner may decide about pairings.");
  expect(await pairings.pending()).toHaveLength(1);
  // Nor do their tries count against an owner.
  expect(await answer(agent, say(`/pairing approve ${code}`))).toMatch(/is paired now/);
});

it("a button decides nothing, also when an owner presses it", async () => {
  const { agent, pairings, ask } = await opened();
  const pressed = say(`/pairing approve ${await ask("1")}`, { kind: "callback" });
  expect(await answer(agent, pressed)).toMatch(/^Write this command yourself/);
  expect(await pairings.pending()).toHaveLength(1);
});

test("each outcome has words of its own", () => {
  const kinds = [
    { kind: "unknown" },
    { kind: "expired" },
    { kind: "used" },
    { kind: "locked", forMs: 60_000 },
  ] as const;
  const texts = kinds.map((decision) => decisionText("approve", decision));
  expect(new Set(texts).size).toBe(kinds.length);
  expect(texts[1]).toMatch(/expired.*ask for a new one/);
  expect(texts[3]).toContain("1 minute,");
});

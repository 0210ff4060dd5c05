/** `pairing`: codes are listed and decided about by commands, beside whoever runs the channels. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PairingStore } from "../../src/channels/ports.js";
import { openWorkspace } from "../../src/workspace/workspace.js";
import { type BusFixture, createBusFixture, outboxRoute, outgoing } from "../support/bus-fixture.js";
import { type Ended, Home, run } from "./support/command.js";
import { Stage } from "./support/stage.js";

describe("beside a running Redis", () => {
  let stage: Stage;
  let gateway: BusFixture;
  let pairings: PairingStore;
  beforeEach(async () => {
    stage = await Stage.open();
    const { id } = await openWorkspace(stage.workspace);
    gateway = await createBusFixture(stage.redis.address, { prefix: "nanogate", workspaceId: id });
    pairings = gateway.stack.pairings(false);
  });
  afterEach(async () => {
    await gateway.close();
    await stage.close();
  });

  const command = (...args: string[]): Promise<Ended> =>
    run(["pairing", ...args, "-c", stage.configFile, "-w", stage.workspace], { home: stage.home });

  async function ask(senderId: string): Promise<string> {
    const welcome = (code: string) => outgoing(outboxRoute(senderId), code, "Welcome.", { type: "notice" });
    const answer = await pairings.request({ channel: "chat", senderId, welcome });
    if (answer.kind !== "code") throw new Error(answer.kind);
    return answer.request.code;
  }

  it("lists who waits and who is paired, for people and for scripts", async () => {
    expect(await command("list")).toEqual({
      code: 0,
      out: "",
      err: "Nobody waits to be paired, and nobody is paired.\n",
    });
    const one = await ask("1");
    await command("approve", one);
    const two = await ask("2\u001b[31m");
    const { out } = await command("list", "--json");
    expect(JSON.parse(out)).toEqual({
      waiting: [
        {
          code: two,
          channel: "chat",
          senderId: "2\u001b[31m",
          expiresMs: expect.any(Number),
          leftMs: expect.any(Number),
        },
      ],
      paired: [{ channel: "chat", senderId: "1", isOwner: true, sinceMs: expect.any(Number) }],
    });
    expect((await command("list")).out.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^CHANNEL +USER +CODE +STATE$/),
      expect.stringMatching(new RegExp(`^chat +2\\[31m +${two} +waits, 9 min left$`)),
      expect.stringMatching(/^chat +1 +paired since \d{4}-\d\d-\d\d, owner$/),
    ]);
  });

  it("approves once; the welcome waits for whoever delivers for the account", async () => {
    const code = await ask("7");
    expect(await command("approve", code.toLowerCase())).toEqual({
      code: 0,
      out: "7 on chat is paired now, and an owner, being the first.\n",
      err: "",
    });
    expect(await pairings.find("chat", "7")).toEqual({ isOwner: true });
    const delivered = await gateway.stack.outbox.read("bot", "0", 1);
    expect(delivered.map(({ outgoing: { message } }) => [message.chatId, message.content])).toEqual([
      ["7", "Welcome."],
    ]);
    const again = await command("approve", code);
    expect([again.code, again.out]).toEqual([1, ""]);
    expect(again.err).toMatch(/decided about already.*\n.*pairing list/);
  });

  it("denies, revokes, and says what there is not", async () => {
    await command("approve", await ask("1"));
    const denied = await command("deny", await ask("2"), "--json");
    expect(JSON.parse(denied.out)).toEqual({ channel: "chat", senderId: "2", isOwner: false, verdict: "deny" });
    expect(JSON.parse((await command("revoke", "chat", "1", "--json")).out)).toEqual({
      channel: "chat",
      senderId: "1",
      revoked: true,
    });
    expect(await pairings.find("chat", "1")).toBeNull();
    const twice = await command("revoke", "chat", "1");
    expect([twice.code, twice.err]).toEqual([1, expect.stringContaining("1 on chat is not paired")]);
    const unknown = await command("approve", "AAAA-AAAA");
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining("There is no such code")]);
    expect((await command("approve")).code).toBe(2);
  });

  it("takes no code from who tries too many", async () => {
    const code = await ask("7");
    for (let i = 0; i < 5; i += 1) await command("deny", "AAAA-AAAA");
    const locked = await command("approve", code);
    expect([locked.code, locked.err]).toEqual([1, expect.stringMatching(/Too many wrong codes.*10 minutes/)]);
    expect(await pairings.find("chat", "7")).toBeNull();
  });
});

it("starts nothing where nobody has used the workspace yet", async () => {
  const home = await Home.make();
  try {
    expect(JSON.parse((await home.run(["pairing", "list", "--json"])).out)).toEqual({ waiting: [], paired: [] });
    expect((await home.run(["pairing", "approve", "AAAA-AAAA"])).code).toBe(1);
    expect(await home.hasRedis()).toBe(false);
  } finally {
    await home.remove();
  }
});

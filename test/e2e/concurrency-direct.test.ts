/** Many `nanogate agent -m` at once: without a gateway they carry their session together, beside one they leave it to it. */
import { afterEach, describe, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { historyFaults } from "./support/history.js";
import { LoneHome } from "./support/lone-home.js";
import { Stage } from "./support/stage.js";

const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `q${index + 1}.`);

describe("without a gateway", () => {
  let home: LoneHome;
  afterEach(() => home.close());

  it("gives each of twenty callers of one session its own answer, and leaves no server behind", async () => {
    home = await LoneHome.open();
    const texts = numbered(20);
    const ends = await Promise.all(texts.map((text) => home.call(text).ended));
    expect(ends.map(({ code, out }) => ({ code, out }))).toEqual(
      texts.map((text) => ({ code: 0, out: `re: ${text}\n` })),
    );
    // Twenty processes at once may be late with a renewal and warn; none may fail.
    expect(ends.filter(({ err }) => err.includes('"level":50'))).toEqual([]);
    const rows = await home.rows("cli:direct");
    expect(rows).toHaveLength(40);
    expect(historyFaults(rows)).toEqual([]);
    expect(home.model.requests).toHaveLength(20);
    expect(await home.servers()).toEqual([]);
    // What was said is there for the next one, also over a server that was stopped and started again.
    expect((await home.call("again").ended).out).toBe("re: again\n");
    expect(home.model.requests.at(-1)?.messages.filter(({ role }) => role === "user")).toHaveLength(21);
  });

  it("goes on when the one that holds the session is killed: the others are answered, and so is its message", async () => {
    home = await LoneHome.open();
    const open = home.model.hold("victim");
    const begun = home.model.arrival("victim");
    const victim = home.call("victim");
    await begun;
    const texts = numbered(4);
    const others = texts.map((text) => home.call(text));
    victim.kill();
    expect((await victim.ended).signal).toBe("SIGKILL");
    open();
    const ends = await Promise.all(others.map(({ ended }) => ended));
    expect(ends.map(({ code, out }) => ({ code, out }))).toEqual(
      texts.map((text) => ({ code: 0, out: `re: ${text}\n` })),
    );
    const rows = await home.rows("cli:direct");
    expect(historyFaults(rows)).toEqual([]);
    expect(rows.map(({ content }) => content).slice(0, 2)).toEqual(["victim", "re: victim"]);
    expect(await home.servers()).toEqual([]);
  });
});

describe("beside a gateway", () => {
  let stage: Stage;
  afterEach(() => stage.close());

  it("waits for its worker's answer, in the order of what else is said there", async () => {
    stage = await Stage.open();
    const gateway = await stage.gateway();
    const ends = await Promise.all(numbered(3).map((text) => stage.agent(text, "websocket:c1")));
    expect(ends.map(({ code, out }) => ({ code, out }))).toEqual(
      numbered(3).map((text) => ({ code: 0, out: `re: ${text}\n` })),
    );
    const client = new Client("c1");
    await client.connect(await gateway.url("alice"));
    await client.say("and I", "m1");
    await client.end("m1");
    const rows = await stage.rows("websocket:c1");
    expect(rows).toHaveLength(8);
    expect(historyFaults(rows)).toEqual([]);
    expect(gateway.log.split('"msg":"turn ended"')).toHaveLength(5);
    expect(client.answers).toEqual(["re: and I"]);
  });

  it("keeps two workspaces on one Redis apart, though the session's key is the same", async () => {
    stage = await Stage.open();
    const other = `${stage.home}/other`;
    await Promise.all([stage.gateway(), stage.gateway({ workspace: other })]);
    const [here, there] = await Promise.all([stage.agent("here"), stage.agent("there", "cli:direct", other)]);
    expect([here.out, there.out]).toEqual(["re: here\n", "re: there\n"]);
    const rows = await Promise.all([stage.rows("cli:direct"), stage.rows("cli:direct", other)]);
    expect(rows.map((each) => each.map(({ content }) => content))).toEqual([
      ["here", "re: here"],
      ["there", "re: there"],
    ]);
  });
});

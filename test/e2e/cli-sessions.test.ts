/** `sessions`: reading, moving and mending conversations, without a gateway and beside one. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { Home, run } from "./support/command.js";
import { historyFaults } from "./support/history.js";
import { GatewayProcess, MAIN, Stage } from "./support/stage.js";

const NANOBOT = [
  {
    _type: "metadata",
    key: "telegram:42",
    created_at: "2025-01-02T03:04:05.678901",
    updated_at: "2025-01-03T00:00:00",
    metadata: { title: "Trip" },
    last_consolidated: 2,
  },
  { _type: "provider_state", provider: "x", state: { id: "secret-state" } },
  { role: "user", content: "Where is Lisbon? 🇵🇹", timestamp: "2025-01-02T03:04:06" },
  { role: "assistant", content: "In Portugal.", timestamp: "2025-01-02T03:04:07", latency_ms: 5 },
  { role: "user", content: "List my files", timestamp: "2025-01-02T03:05:00", media: ["a.png"] },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", type: "function", function: { name: "list_dir", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: "c1", name: "list_dir", content: "a.png" },
  { role: "assistant", content: "a.png" },
];
const jsonl = (rows: readonly object[]): string => `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`;
const linesOf = (text: string): Array<Record<string, unknown>> =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("without a gateway", () => {
  let home: Home;
  beforeEach(async () => {
    home = await Home.make();
  });
  afterEach(async () => {
    expect(await home.hasRedis()).toBe(false);
    await home.remove();
  });

  const folder = () => path.join(home.folder, "workspace", "sessions");
  const rowsIn = async (name: string) =>
    linesOf((await readFile(path.join(folder(), name), "utf8")).replace(/\n+/g, "\n"));

  it("imports nanobot's file and shows, lists and exports it", async () => {
    const file = await home.write("telegram_42.jsonl", jsonl(NANOBOT));
    expect(await home.run(["sessions", "import", file])).toEqual({
      code: 0,
      out: `${file}: telegram:42, 6 rows\n`,
      err: "",
    });
    const rows = await rowsIn("telegram_42.jsonl");
    expect(historyFaults(rows)).toEqual([]);
    expect(JSON.stringify(rows)).not.toContain("secret-state");
    const list = JSON.parse((await home.run(["sessions", "list", "--json"])).out);
    expect(list).toMatchObject([
      { key: "telegram:42", title: "Trip", createdAt: NANOBOT[0]?.created_at, updatedAt: "2025-01-03T00:00:00" },
    ]);
    const { out } = await home.run(["sessions", "show", "telegram:42"]);
    expect(out).toContain("Where is Lisbon? 🇵🇹");
    expect(out).toContain("→ list_dir {}");
    expect(out).toContain("Note: 2 rows summarised");
    const exported = linesOf((await home.run(["sessions", "export", "telegram:42"])).out);
    expect(exported[0]).toMatchObject({ key: "telegram:42", last_consolidated: 2, metadata: { title: "Trip" } });
    expect(exported.slice(1)).toMatchObject(NANOBOT.slice(2));
    expect(exported.some((line) => "fence" in line)).toBe(false);
  });

  it("imports what it exported, without its fences, and goes on from there", async () => {
    expect((await home.run(["agent", "-m", "hello", "-s", "cli:a"])).code).toBe(0);
    const exported = (await home.run(["sessions", "export", "cli:a"])).out;
    const other = await Home.make();
    const file = await other.write("moved.jsonl", `${JSON.stringify({ _type: "fence", fence: 2 ** 51 })}\n${exported}`);
    expect((await other.run(["sessions", "import", file, "--json"])).code).toBe(0);
    expect((await other.run(["sessions", "export", "cli:a"])).out).toBe(exported);
    expect((await other.run(["agent", "-m", "again", "-s", "cli:a"])).code).toBe(0);
    const after = linesOf((await other.run(["sessions", "export", "cli:a"])).out);
    expect(after.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual(["hello", "again"]);
    expect(await other.hasRedis()).toBe(false);
    await other.remove();
  });

  it("imports several files, overwrites none unasked, and says what became of each", async () => {
    const good = await home.write("good.jsonl", jsonl(NANOBOT));
    const torn = await home.write("cli_torn.jsonl", `${jsonl(NANOBOT.slice(2))}{"role":"us\nnot json\n`);
    const none = await home.write("none.jsonl", "not a session\n");
    const missing = path.join(home.folder, "missing.jsonl");
    const first = await home.run(["sessions", "import", good, torn, none, missing]);
    expect(first.code).toBe(1);
    expect(first.out.trimEnd().split("\n")).toEqual([
      `${good}: telegram:42, 6 rows`,
      `${torn}: cli:torn, 6 rows, 2 lines left out`,
    ]);
    expect(first.err).toContain(`${none}: not imported: `);
    expect(first.err).toContain(`${missing}: not imported: ENOENT`);

    const changed = await home.write(
      "changed.jsonl",
      jsonl([...NANOBOT.slice(0, 3), { role: "assistant", content: "Changed." }]),
    );
    const refused = await home.run(["sessions", "import", changed]);
    expect([refused.code, refused.out]).toEqual([1, ""]);
    expect(refused.err).toContain("--force");
    expect((await home.run(["sessions", "show", "telegram:42"])).out).not.toContain("Changed.");
    const forced = await home.run(["sessions", "import", "--force", changed, "--json"]);
    expect(JSON.parse(forced.out)).toMatchObject([{ key: "telegram:42", imported: true, rows: 2 }]);
    const { out } = await home.run(["sessions", "show", "telegram:42"]);
    expect(out).toContain("Changed.");
    expect(out).not.toContain("In Portugal.");
  });

  it("repairs a file, keeps what was not usable aside, and finds nothing the second time", async () => {
    const file = await home.write("a.jsonl", jsonl(NANOBOT));
    await home.run(["sessions", "import", file]);
    const target = path.join(folder(), "telegram_42.jsonl");
    const text = await readFile(target, "utf8");
    await writeFile(target, text.replace("\n", "\n%% damage %%\n"));
    expect((await home.run(["sessions", "show", "telegram:42"])).out).toContain("1 line not usable");
    const repaired = await home.run(["sessions", "repair", "telegram:42"]);
    expect(repaired).toEqual({ code: 0, out: "telegram:42: 1 unusable line kept aside, 6 rows kept.\n", err: "" });
    const [aside = ""] = (await readdir(folder())).filter((name) => name.includes(".bad-"));
    expect(await readFile(path.join(folder(), aside), "utf8")).toBe("%% damage %%\n");
    const again = await home.run(["sessions", "repair", "telegram:42", "--json"]);
    expect(JSON.parse(again.out)).toEqual({ key: "telegram:42", badLines: 0, ignoredRows: 0, rows: 6 });
  });

  it("takes rows of fenced-out writers out", async () => {
    await home.run(["sessions", "import", await home.write("a.jsonl", jsonl(NANOBOT))]);
    const target = path.join(folder(), "telegram_42.jsonl");
    await writeFile(target, `${await readFile(target, "utf8")}{"role":"user","content":"zombie","fence":1}\n`);
    expect((await home.run(["sessions", "repair", "telegram:42"])).out).toContain("1 ignored row taken out");
    expect(await readFile(target, "utf8")).not.toContain("zombie");
  });

  it("deletes a session with all its files", async () => {
    await home.run(["sessions", "import", await home.write("a.jsonl", jsonl(NANOBOT))]);
    expect((await home.run(["sessions", "delete", "telegram:42"])).out).toBe("Deleted telegram:42.\n");
    expect(await readdir(folder())).toEqual([]);
    for (const what of ["delete", "show", "export", "repair"]) {
      const { code, out, err } = await home.run(["sessions", what, "telegram:42"]);
      expect([code, out]).toEqual([1, ""]);
      expect(err).toContain("no session telegram:42");
    }
  });

  it("leaves no Redis behind when it is interrupted", async () => {
    await home.run(["sessions", "import", await home.write("a.jsonl", jsonl(NANOBOT))]);
    const { PATH } = process.env;
    const env = { PATH, HOME: home.folder, NANOGATE_HOME: home.folder, NANOGATE_FAULT: "stop:lease.opened" };
    const command = new GatewayProcess([MAIN, "sessions", "delete", "telegram:42"], env);
    await command.frozen();
    process.kill(command.pid, "SIGINT");
    command.thaw();
    expect(await command.ended).toEqual({ code: 130, signal: null });
  });

  it("prints nothing that could move a terminal's cursor", async () => {
    const rows = [
      { _type: "metadata", key: "cli:e", metadata: { title: "a\u001b[2Jb" } },
      { role: "user", content: "x\u001b]0;evil\u0007y\nz" },
    ];
    await home.run(["sessions", "import", await home.write("e.jsonl", jsonl(rows))]);
    const { out: shown } = await home.run(["sessions", "show", "cli:e"]);
    const { out: listed } = await home.run(["sessions", "list"]);
    expect(shown).toContain("x]0;evily\nz");
    expect(shown + listed).not.toContain("\u001b");
  });
});

describe("beside a gateway", () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = await Stage.open();
  });
  afterEach(() => stage.close());

  const command = (...args: string[]) =>
    run([...args, "-c", stage.configFile, "-w", stage.workspace], { home: stage.home });

  it("leaves a busy session alone; a deleted one begins anew", async () => {
    const gateway = await stage.gateway();
    const client = new Client("c1");
    await client.connect(await gateway.url("alice"));
    await client.say("before", "m1");
    await client.end("m1");
    const release = stage.model.hold("busy");
    const asked = stage.model.arrival("busy");
    await client.say("busy", "m2");
    await asked;
    const file = path.join(stage.home, "c1.jsonl");
    await writeFile(
      file,
      jsonl([
        { _type: "metadata", key: "websocket:c1" },
        { role: "user", content: "imported" },
      ]),
    );
    for (const args of [
      ["delete", "websocket:c1"],
      ["repair", "websocket:c1"],
      ["import", "--force", file],
    ]) {
      const { code, out, err } = await command("sessions", ...args);
      expect([code, out]).toEqual([1, ""]);
      expect(err).toContain("busy");
    }
    release();
    await client.end("m2");
    expect(client.answers).toEqual(["re: before", "re: busy"]);

    expect((await command("sessions", "delete", "websocket:c1")).code).toBe(0);
    expect(await stage.rows("websocket:c1")).toEqual([]);
    await client.say("after", "m3");
    await client.end("m3");
    const rows = await stage.rows("websocket:c1");
    expect(rows.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual(["after"]);
    expect(historyFaults(rows)).toEqual([]);
    expect(await readdir(path.join(stage.workspace, "sessions"))).toEqual(["websocket_c1.jsonl"]);
    expect(client.faults).toEqual([]);
    client.disconnect();
  });

  it("an import is what the next turn goes on from, also where the gateway had the session in memory", async () => {
    const gateway = await stage.gateway();
    const client = new Client("c1");
    await client.connect(await gateway.url("alice"));
    await client.say("known", "m1");
    await client.end("m1");
    const file = path.join(stage.home, "c1.jsonl");
    const rows = [
      { _type: "metadata", key: "websocket:c1" },
      { role: "user", content: "imported" },
      { role: "assistant", content: "yes" },
    ];
    await writeFile(file, jsonl(rows));
    expect((await command("sessions", "import", "--force", file)).code).toBe(0);
    await client.say("next", "m2");
    await client.end("m2");
    const asked = stage.model.requests.at(-1)?.messages.filter(({ role }) => role === "user");
    expect(asked?.map(({ content }) => content)).toEqual(["imported", "next"]);
    client.disconnect();
  });

  it("a holder that is killed gives the session back by its lease's end", async () => {
    const gateway = await stage.gateway();
    const client = new Client("c1");
    await client.connect(await gateway.url("alice"));
    await client.say("one", "m1");
    await client.end("m1");
    const killed = await run(["sessions", "delete", "websocket:c1", "-c", stage.configFile, "-w", stage.workspace], {
      home: stage.home,
      env: { NANOGATE_FAULT: "kill:lease.opened" },
    });
    expect(killed.code).toBeNull();
    await client.say("two", "m2");
    await client.end("m2");
    expect(client.answers).toEqual(["re: one", "re: two"]);
    expect(historyFaults(await stage.rows("websocket:c1"))).toEqual([]);
    client.disconnect();
  });

  it("says at once that Redis is away", async () => {
    const gateway = await stage.gateway();
    await stage.agent("hello", "cli:a");
    await gateway.stop();
    await stage.redis.kill();
    const { code, err } = await command("sessions", "delete", "cli:a");
    expect(code).toBe(1);
    expect(err).toContain("[REDIS_UNREACHABLE]");
    expect((await command("sessions", "show", "cli:a")).out).toContain("re: hello");
  });
});

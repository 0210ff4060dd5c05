/** `nanogate agent` as a person and a script use it, and how wrong usage ends. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { MAIN, Stage } from "./support/stage.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

/** A `nanogate` whose terminal is a pipe. */
class Piped {
  readonly #child: ChildProcess;
  out = "";
  err = "";

  constructor(args: readonly string[]) {
    const { PATH } = process.env;
    const env = { PATH, HOME: stage.home, NANOGATE_HOME: stage.home };
    this.#child = spawn(process.execPath, [MAIN, ...args], { env, stdio: "pipe" });
    this.#child.stdout?.on("data", (text) => {
      this.out += String(text);
    });
    this.#child.stderr?.on("data", (text) => {
      this.err += String(text);
    });
  }

  type(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Waits until the output holds a text. */
  async shows(text: string): Promise<void> {
    while (!this.out.includes(text)) await once(this.#child.stdout ?? this.#child, "data");
  }

  /** Ends the input; the exit code. */
  async leave(): Promise<number | null> {
    this.#child.stdin?.end();
    const [code] = (await once(this.#child, "close")) as [number | null];
    return code;
  }
}

const place = () => ["-c", stage.configFile, "-w", stage.workspace];

it("answers one message on standard output and nothing else", async () => {
  const piped = new Piped(["agent", "-m", "hello", ...place()]);
  const code = await piped.leave();
  expect({ code, out: piped.out }).toEqual({ code: 0, out: "re: hello\n" });
  // The log's news would be in the way; what goes wrong is still told.
  expect(piped.err).not.toContain('"level":30');
});

it("gives the result as JSON", async () => {
  const piped = new Piped(["agent", "-m", "as json", "--json", ...place()]);
  expect(await piped.leave()).toBe(0);
  expect(JSON.parse(piped.out)).toMatchObject({ outcome: "completed", text: "re: as json" });
});

it("talks line by line, carries commands out, and leaves at the end of the input", async () => {
  const piped = new Piped(["agent", "-s", "cli:talk", ...place()]);
  piped.type("one");
  await piped.shows("re: one");
  piped.type("/help");
  await piped.shows("/status");
  piped.type("two");
  await piped.shows("re: two");
  expect(await piped.leave()).toBe(0);
  const said = (await stage.rows("cli:talk")).map((row) => row.content);
  expect(said).toEqual(["one", "re: one", "two", "re: two"]);
});

it("fails with 1 when the model fails, saying so in one sentence", async () => {
  const refusing = createServer((_, response) => response.writeHead(401).end("{}"));
  await once(refusing.listen(0, "127.0.0.1"), "listening");
  const address = refusing.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const file = path.join(stage.home, "refused.json");
  const providers = { peer: { kind: "openai", apiKey: "sk-stage-key-000000", baseUrl: `http://127.0.0.1:${port}/v1` } };
  await writeFile(
    file,
    JSON.stringify({ agent: { model: "peer/m" }, providers, redis: { url: stage.redis.socketPath } }),
  );
  const piped = new Piped(["agent", "-m", "x", "-c", file, "-w", stage.workspace, "-s", "cli:refused"]);
  expect(await piped.leave()).toBe(1);
  expect(piped.out).toContain("refused the gateway's API key");
  expect(piped.out + piped.err).not.toContain("sk-stage");
  refusing.close();
});

it("ends with 2 for wrong usage and 78 for a wrong configuration, without a stack", async () => {
  const file = path.join(stage.home, "wrong.json");
  await writeFile(file, JSON.stringify({ gateway: { port: "many" } }));
  for (const [args, code, text] of [
    [["agent", "-m", "x", "-s", ""], 2, "session key"],
    [["agent", "--nonsense"], 2, "--nonsense"],
    [["gateway", "--port", "70000"], 2, "65535"],
    [["agent", "-m", "x", "-c", file], 78, "gateway.port"],
    [["gateway", "--host", "0.0.0.0", ...place()], 78, "token"],
  ] as const) {
    const piped = new Piped(args);
    expect([await piped.leave(), args]).toEqual([code, args]);
    expect(piped.err).toContain(text);
    expect(piped.err).not.toMatch(/\n\s+at /);
  }
});

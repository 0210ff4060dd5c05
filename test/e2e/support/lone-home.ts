/**
 * A home in which no gateway runs: real `nanogate agent -m` processes on the embedded Redis of that home, with a model of
 * their own. Everything ends with `close`, whatever a test left behind.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { asSessionKey } from "../../../src/bus/messages.js";
import { sessionFileName } from "../../../src/session/keys.js";
import { ModelPeer } from "./model-peer.js";
import { LEASE_MS, MAIN } from "./stage.js";

export interface CallEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

export interface Call {
  kill(): void;
  ended: Promise<CallEnd>;
}

export class LoneHome {
  readonly #children = new Set<ChildProcess>();

  private constructor(
    readonly home: string,
    readonly model: ModelPeer,
  ) {}

  static async open(): Promise<LoneHome> {
    const home = await realpath(await mkdtemp(path.join(tmpdir(), "ng-lone-")));
    const model = new ModelPeer();
    await model.start();
    const provider = { kind: "openai", apiKey: "sk-lone-key-000000", baseUrl: model.baseUrl };
    const config = { agent: { model: "peer/m" }, providers: { peer: provider }, gateway: { leaseMs: LEASE_MS } };
    await writeFile(path.join(home, "config.json"), JSON.stringify(config));
    return new LoneHome(home, model);
  }

  /** Starts `nanogate agent -m`. */
  call(message: string, session = "cli:direct"): Call {
    const { PATH } = process.env;
    const env = { PATH, HOME: this.home, NANOGATE_HOME: this.home, LOG_LEVEL: "warn" };
    const args = [MAIN, "agent", "-m", message, "-s", session];
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#children.add(child);
    const texts = { out: "", err: "" };
    for (const name of ["out", "err"] as const)
      child[`std${name}`].on("data", (chunk) => {
        texts[name] += String(chunk);
      });
    const ended = once(child, "close").then(([code, signal]) => {
      this.#children.delete(child);
      return { code, signal, ...texts };
    });
    return { kill: () => void child.kill("SIGKILL"), ended };
  }

  /** The rows of a session, without fence and metadata lines. */
  async rows(session: string): Promise<Array<Record<string, unknown>>> {
    const file = path.join(this.home, "workspace", "sessions", sessionFileName(asSessionKey(session)));
    const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line.trim() !== "");
    return lines.map((line) => JSON.parse(line)).filter((row) => row._type === undefined);
  }

  /** Redis servers that work in this home. */
  async servers(): Promise<number[]> {
    const found: number[] = [];
    for (const name of await readdir("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const [command, cwd] = await Promise.all([
        readFile(`/proc/${name}/cmdline`, "utf8").catch(() => ""),
        realpath(`/proc/${name}/cwd`).catch(() => ""),
      ]);
      const isServer = /(redis|valkey)-server/.test(command);
      if (isServer && (command.includes(this.home) || cwd.startsWith(this.home))) found.push(Number(name));
    }
    return found;
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill("SIGKILL");
    for (const pid of await this.servers()) process.kill(pid, "SIGKILL");
    await this.model.stop();
    await rm(this.home, { recursive: true, force: true });
  }
}

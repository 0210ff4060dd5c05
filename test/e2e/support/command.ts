/**
 * Runs `nanogate` commands to their end as a shell would, each with an environment of its own, and keeps a home folder for
 * them. Nothing of the environment of the tests but PATH reaches a command.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { findEmbeddedRedis, leaveEmbeddedRedis } from "../../../src/redis/embedded.js";
import { silent } from "../../support/bus-fixture.js";
import { MAIN } from "./stage.js";

export interface Ended {
  code: number | null;
  out: string;
  err: string;
}

export interface RunOptions {
  home: string;
  env?: Record<string, string>;
}

/** Runs one command. */
export async function run(args: readonly string[], { home, env = {} }: RunOptions): Promise<Ended> {
  const { PATH } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: home,
    // An Ollama on the tester's machine must not answer for the demo model.
    env: { PATH, HOME: home, NANOGATE_HOME: home, OLLAMA_HOST: "127.0.0.1:1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (text) => {
    out += String(text);
  });
  child.stderr.on("data", (text) => {
    err += String(text);
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}

/** A home without a gateway; its Redis, if any, is the embedded one. */
export class Home {
  private constructor(readonly folder: string) {}

  static async make(config?: unknown): Promise<Home> {
    const home = new Home(await mkdtemp(path.join(tmpdir(), "ng-home-")));
    if (config !== undefined) await home.write("config.json", config);
    return home;
  }

  async write(name: string, content: unknown): Promise<string> {
    const file = path.join(this.folder, name);
    await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
    return file;
  }

  run(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
    return run(args, { home: this.folder, env });
  }

  get redisFolder(): string {
    return path.join(this.folder, "redis");
  }

  /** Whether its embedded Redis runs now. */
  async hasRedis(): Promise<boolean> {
    return (await findEmbeddedRedis(this.redisFolder)) !== null;
  }

  async remove(): Promise<void> {
    if (await this.hasRedis())
      await leaveEmbeddedRedis({ folder: this.redisFolder, logger: silent, signal: AbortSignal.timeout(10_000) });
    await rm(this.folder, { recursive: true, force: true });
  }
}

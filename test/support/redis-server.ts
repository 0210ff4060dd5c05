/**
 * A real Redis for one test file: a child on a unix socket in a folder of its own. It can be killed, frozen and started
 * again on the same data. Ended by `stop`, which also removes the folder.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";

export class TestRedis {
  #child: ChildProcess | null = null;
  readonly socketPath: string;

  private constructor(
    readonly folder: string,
    readonly args: readonly string[],
  ) {
    this.socketPath = path.join(folder, "s");
  }

  static async start(args: readonly string[] = []): Promise<TestRedis> {
    const folder = await mkdtemp(path.join(tmpdir(), "ng-redis-"));
    const server = new TestRedis(folder, args);
    await server.up();
    return server;
  }

  get address(): { socketPath: string } {
    return { socketPath: this.socketPath };
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  client(): Redis {
    return new Redis({ path: this.socketPath, maxRetriesPerRequest: null, retryStrategy: () => 20 });
  }

  /** Starts the server (again) and waits until it answers. */
  async up(): Promise<void> {
    const base = ["--port", "0", "--unixsocket", this.socketPath, "--dir", this.folder, "--save", ""];
    const durable = ["--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"];
    const child = spawn("redis-server", [...base, ...durable, ...this.args], { stdio: "ignore" });
    this.#child = child;
    const failed = once(child, "error").then(([error]) => {
      throw error;
    });
    const probe = this.client();
    probe.on("error", () => "not yet");
    await Promise.race([probe.ping(), failed]);
    probe.disconnect();
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  freeze(): void {
    process.kill(this.pid, "SIGSTOP");
  }

  thaw(): void {
    process.kill(this.pid, "SIGCONT");
  }

  async stop(): Promise<void> {
    await this.#end("SIGKILL");
    await rm(this.folder, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }
}

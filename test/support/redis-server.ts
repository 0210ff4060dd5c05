/**
 * A real Redis for one test file: a child on a unix socket in a folder of its own. It can be killed, frozen and started
 * again on the same data. Ended by `stop`, which also removes the folder.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readdir, rm, stat, truncate } from "node:fs/promises";
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
    const server = await TestRedis.prepare(args);
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

  /** A server that does not run yet; `up` starts it. */
  static async prepare(args: readonly string[] = []): Promise<TestRedis> {
    return new TestRedis(await mkdtemp(path.join(tmpdir(), "ng-redis-")), args);
  }

  /** Starts the server (again) and waits until it answers. `more`: settings for this life only. */
  async up(more: readonly string[] = []): Promise<void> {
    const base = ["--port", "0", "--unixsocket", this.socketPath, "--dir", this.folder, "--save", ""];
    const durable = ["--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"];
    const child = spawn("redis-server", [...base, ...durable, ...this.args, ...more], { stdio: "ignore" });
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

  /** Keeps a copy of the data as it is now. */
  async keep(): Promise<void> {
    await rm(this.#kept, { recursive: true, force: true });
    await cp(this.#data, this.#kept, { recursive: true });
  }

  /** Kills the server and puts the kept copy in the place of its data; `up` starts it on that. */
  async rollBack(): Promise<void> {
    await this.kill();
    await rm(this.#data, { recursive: true });
    await cp(this.#kept, this.#data, { recursive: true });
  }

  /** Kills the server and removes its data. */
  async wipe(): Promise<void> {
    await this.kill();
    await rm(this.#data, { recursive: true, force: true });
  }

  /** Bytes of the file that grows with each write. */
  async logBytes(): Promise<number> {
    return (await stat(await this.#log())).size;
  }

  /** Kills the server and cuts what it wrote behind this many bytes. */
  async cutLog(bytes: number): Promise<void> {
    await this.kill();
    await truncate(await this.#log(), bytes);
  }

  get #data(): string {
    return path.join(this.folder, "appendonlydir");
  }

  get #kept(): string {
    return path.join(this.folder, "kept");
  }

  async #log(): Promise<string> {
    const name = (await readdir(this.#data)).find((each) => each.endsWith(".incr.aof"));
    if (name === undefined) throw new Error("the server has written no log yet");
    return path.join(this.#data, name);
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

/**
 * What the tests of the embedded Redis share: a folder, the functions under test with a recording log, and other
 * processes that run the compiled code. It ends only the servers of its own folder.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createLogger } from "../../src/logger.js";
import { ensureEmbeddedRedis, leaveEmbeddedRedis } from "../../src/redis/embedded.js";
import { withConnection } from "../../src/redis/embedded-probe.js";
import { serverPid } from "../../src/redis/embedded-server.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Polls until `holds` gives something; fails after 15 s. */
export async function until<T>(what: string, holds: () => Promise<T | false | null>): Promise<T> {
  const deadline = Date.now() + 15_000;
  while (Date.now() < deadline) {
    const found = await holds();
    if (found !== false && found !== null) return found;
    await wait(10);
  }
  throw new Error(`waited in vain for: ${what}`);
}

export class Embedded {
  readonly lines: string[] = [];
  readonly logger = createLogger({
    level: "info",
    secrets: [],
    destination: { write: (line) => this.lines.push(line) },
  });
  private constructor(
    readonly base: string,
    readonly folder: string,
  ) {}

  static async create(name = "redis"): Promise<Embedded> {
    const base = await mkdtemp(path.join(tmpdir(), "nanogate-er-"));
    return new Embedded(base, path.join(base, name));
  }

  async ensure(options: { fsync?: "always" | "everysec"; signal?: AbortSignal } = {}): Promise<string> {
    const signal = options.signal ?? new AbortController().signal;
    const fsync = options.fsync ?? "everysec";
    return (await ensureEmbeddedRedis({ folder: this.folder, logger: this.logger, fsync, signal })).socketPath;
  }

  async leave(): Promise<boolean> {
    const signal = new AbortController().signal;
    return (await leaveEmbeddedRedis({ folder: this.folder, logger: this.logger, signal })).stopped;
  }

  async call(socketPath: string, command: string, ...args: string[]): Promise<unknown> {
    return withConnection(socketPath, (client) => client.call(command, ...args));
  }

  /** How many servers were ever started on the folder: each writes this line once. */
  async starts(): Promise<number> {
    const log = await readFile(path.join(this.folder, "redis.log"), "utf8");
    return log.match(/Redis is starting/g)?.length ?? 0;
  }

  /** The process id of the living server. */
  async pid(): Promise<number> {
    const pid = await serverPid(this.folder);
    if (pid === null) throw new Error("no server runs");
    return pid;
  }

  async kill(): Promise<void> {
    process.kill(await this.pid(), "SIGKILL");
    await until("the killed server to be gone", async () => (await serverPid(this.folder)) === null);
  }

  async dispose(): Promise<void> {
    if ((await serverPid(this.folder)) !== null) await this.kill();
    await rm(this.base, { recursive: true, force: true });
  }
}

/** Another process that uses the embedded server: it says one JSON line after each step. */
export class OtherProcess {
  private readonly lines: AsyncIterator<string>;
  constructor(private readonly child: ChildProcess) {
    if (child.stdout === null) throw new Error("no output");
    this.lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  async says(): Promise<unknown> {
    const { value, done } = await this.lines.next();
    if (done) throw new Error("the other process ended early");
    return JSON.parse(value);
  }

  /** Lets it leave; gives what `leaveEmbeddedRedis` said there. */
  async leaves(): Promise<unknown> {
    this.child.stdin?.end();
    const said = await this.says();
    if (this.child.exitCode === null) await once(this.child, "exit");
    return said;
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }
}

const PROGRAM = `
import { Redis } from "ioredis";
import { ensureEmbeddedRedis, leaveEmbeddedRedis } from "./redis/embedded.js";
import { clientName } from "./redis/embedded-probe.js";
const logger = { info() {}, warn: console.error, error: console.error };
const deps = { folder: process.argv[2], fsync: "everysec", logger, signal: new AbortController().signal };
const { socketPath } = await ensureEmbeddedRedis(deps);
const client = new Redis({ path: socketPath, connectionName: clientName() });
await client.incr("processes");
console.log(JSON.stringify(/run_id:(\\w+)/.exec(await client.info("server"))[1]));
for await (const _ of process.stdin);
client.disconnect();
console.log(JSON.stringify((await leaveEmbeddedRedis(deps)).stopped));
`;

/** The code under test, compiled for other processes. */
export class Program {
  private constructor(private readonly folder: string) {}

  static async compile(): Promise<Program> {
    const folder = await mkdtemp(path.join(tmpdir(), "nanogate-program-"));
    await symlink(path.join(root, "node_modules"), path.join(folder, "node_modules"));
    await writeFile(path.join(folder, "package.json"), '{ "type": "module" }');
    await writeFile(path.join(folder, "program.js"), PROGRAM);
    const options = "--ignoreConfig --module nodenext --target es2023 --skipLibCheck --types node --rootDir src";
    const args = [...options.split(" "), "--outDir", folder, "src/redis/embedded.ts"];
    await promisify(execFile)(path.join(root, "node_modules/.bin/tsc"), args, { cwd: root });
    return new Program(folder);
  }

  start(redisFolder: string): OtherProcess {
    const args = [path.join(this.folder, "program.js"), redisFolder];
    return new OtherProcess(spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] }));
  }

  async dispose(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

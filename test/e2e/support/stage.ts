/**
 * A stage for end-to-end tests: a real Redis, a model, a home and a workspace of its own, and real `nanogate` processes on
 * them, run from `dist` (build first). Everything on it ends with `close`, whatever a test left behind.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { TestRedis } from "../../support/redis-server.js";
import { ModelPeer } from "./model-peer.js";

/** `TEST_DIST` names another build, so that two people may test side by side. */
const DIST = process.env.TEST_DIST ?? "dist";
export const MAIN = fileURLToPath(new URL(`../../../${DIST}/main.js`, import.meta.url));

/** Times scaled down: a dead process is noticed in a fraction of a second. */
export const LEASE_MS = 1200;

export interface ProcessOptions {
  role?: "all" | "channels" | "worker";
  /** `kill:<point>`, `kill:<point>#2`, `stop:<point>`: what NANOGATE_FAULT names. */
  fault?: string;
  workspace?: string;
  /** Any free one when left out; the one of a process that has ended, to take its place. */
  port?: number;
  /** Variables that a person would set. */
  env?: Readonly<Record<string, string>>;
}

export class Stage {
  readonly #processes: GatewayProcess[] = [];

  private constructor(
    readonly home: string,
    readonly redis: TestRedis,
    readonly model: ModelPeer,
    readonly configFile: string,
  ) {}

  /** `config` is merged over the stage's own, by top-level key. */
  static async open(config: Record<string, unknown> = {}, redisArgs: readonly string[] = []): Promise<Stage> {
    const home = await mkdtemp(path.join(tmpdir(), "ng-stage-"));
    const redis = await TestRedis.start(redisArgs);
    const model = new ModelPeer();
    await model.start();
    const configFile = path.join(home, "config.json");
    const gateway = { port: 0, leaseMs: LEASE_MS, drainMs: 3000, ...(config.gateway as object | undefined) };
    const written = {
      agent: { model: "peer/m" },
      providers: { peer: { kind: "openai", apiKey: "sk-stage-key-000000", baseUrl: model.baseUrl } },
      redis: { url: redis.socketPath },
      ...config,
      gateway,
    };
    await writeFile(configFile, JSON.stringify(written));
    return new Stage(home, redis, model, configFile);
  }

  get workspace(): string {
    return path.join(this.home, "workspace");
  }

  /** Starts a process; `ready` resolves with its port, `ended` with how it ended. */
  spawn(options: ProcessOptions = {}): GatewayProcess {
    const role = options.role ?? "all";
    const place = options.port === undefined ? [] : ["--port", String(options.port)];
    const common = ["-c", this.configFile, "-w", options.workspace ?? this.workspace];
    const args = [MAIN, "gateway", "--role", role, ...common, ...place];
    const started = new GatewayProcess(args, { ...this.#env(options.fault), ...options.env });
    this.#processes.push(started);
    return started;
  }

  /** A process that is ready. */
  async gateway(options: ProcessOptions = {}): Promise<GatewayProcess> {
    const started = this.spawn(options);
    await started.ready;
    return started;
  }

  /** Runs `nanogate agent -m` to its end. */
  async agent(
    message: string,
    session = "cli:direct",
    workspace = this.workspace,
  ): Promise<{ code: number | null; out: string; err: string }> {
    const args = [MAIN, "agent", "-m", message, "-s", session, "-c", this.configFile, "-w", workspace];
    const child = spawn(process.execPath, args, { env: this.#env(), stdio: ["ignore", "pipe", "pipe"] });
    const [out, err] = [collect(child.stdout), collect(child.stderr)];
    const [code] = (await once(child, "close")) as [number | null];
    return { code, out: out(), err: err() };
  }

  /** Every line of a session file, in order; empty when there is no such file. */
  async lines(session: string, workspace = this.workspace): Promise<Array<Record<string, unknown>>> {
    const folder = path.join(workspace, "sessions");
    const name = `${session.replaceAll("_", "%5F").replaceAll(":", "_")}.jsonl`;
    if (!(await readdir(folder)).includes(name)) return [];
    const text = await readFile(path.join(folder, name), "utf8");
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Every row of a session file, fence and metadata lines left out. */
  async rows(session: string, workspace = this.workspace): Promise<Array<Record<string, unknown>>> {
    return (await this.lines(session, workspace)).filter((row) => row._type === undefined);
  }

  #env(fault?: string): NodeJS.ProcessEnv {
    const { PATH } = process.env;
    return {
      PATH,
      HOME: this.home,
      NANOGATE_HOME: this.home,
      LOG_LEVEL: "debug",
      // An Ollama on the tester's machine must not answer for the demo model.
      OLLAMA_HOST: "127.0.0.1:1",
      ...(fault === undefined ? {} : { NANOGATE_FAULT: fault }),
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map((each) => each.kill()));
    await this.model.stop();
    await this.redis.stop();
    await rm(this.home, { recursive: true, force: true });
  }
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  let text = "";
  stream?.on("data", (chunk) => {
    text += String(chunk);
  });
  return () => text;
}

/** A `nanogate gateway` of a stage. */
export class GatewayProcess {
  readonly #child: ChildProcess;
  readonly #log: () => string;
  /** The port, once it is ready. */
  readonly ready: Promise<number>;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;

  constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
    this.#child = child;
    this.#log = collect(child.stderr);
    this.ended = once(child, "exit").then(([code, signal]) => ({ code, signal }));
    this.ready = this.#whenReady();
    this.ready.catch(() => "whoever waits for it is told");
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get log(): string {
    return this.#log();
  }

  async url(clientId: string): Promise<string> {
    return `ws://127.0.0.1:${await this.ready}/?client_id=${clientId}`;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await this.ended;
  }

  /** SIGTERM, and how it ended. */
  async stop(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    this.#child.kill("SIGTERM");
    return this.ended;
  }

  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  /** Resolves when the process has been stopped by SIGSTOP (by a fault point or from outside). */
  async frozen(): Promise<void> {
    for (;;) {
      const stat = await readFile(`/proc/${this.pid}/stat`, "utf8");
      if (stat.slice(stat.lastIndexOf(")") + 2).startsWith("T")) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Resolves when its log holds this text; fails after 20 s or when the process has ended without it. */
  async logged(text: string): Promise<void> {
    const deadline = performance.now() + 20_000;
    while (!this.log.includes(text)) {
      const isOver = this.#child.exitCode !== null || this.#child.signalCode !== null;
      if (isOver || performance.now() > deadline) throw new Error(`it never logged "${text}":\n${this.log}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async #whenReady(): Promise<number> {
    const isOver = { now: false };
    void this.ended.then(() => {
      isOver.now = true;
    });
    for (;;) {
      const line = this.log.split("\n").find((each) => each.includes('"msg":"ready"'));
      if (line !== undefined) return (JSON.parse(line) as { port: number }).port;
      if (isOver.now) throw new Error(`the gateway ended before it was ready:\n${this.log}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

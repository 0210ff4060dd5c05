/**
 * Image, compose file and systemd unit without Docker: what they name exists, their commands run on the very files that
 * the image would hold, as another user, on a read-only tree with an empty data folder, and everybody gets the time they
 * need to stop.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { STOP_EXTRA_MS } from "../../src/cli/gateway.js";
import { loadConfig } from "../../src/config/load.js";
import { until } from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";
import { readYaml, type Yaml } from "../support/small-yaml.js";
import { Client } from "./support/client.js";
import { MAIN } from "./support/stage.js";
import { openTcpRoad } from "./support/tcp-road.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const DIST = path.dirname(MAIN);
const read = (file: string) => readFile(path.join(root, file), "utf8");

/** Follows keys into what was read; throws where there is nothing. */
function at(tree: Yaml, ...keys: string[]): Yaml {
  let found: Yaml | undefined = tree;
  for (const key of keys)
    found = typeof found === "object" && found !== null && !Array.isArray(found) ? found[key] : undefined;
  if (found === undefined) throw new Error(`there is no ${keys.join(".")}`);
  return found;
}

const strings = (value: Yaml): string[] => (Array.isArray(value) ? value.map(String) : []);
const msOf = (time: Yaml) => Number(/^(\d+)s$/.exec(String(time))?.[1]) * 1000;
const bytesOf = (size: string) => {
  const [, number, unit = ""] = /^(\d+)([kmg])b?$/.exec(size) ?? [];
  return Number(number) * 1024 ** (" kmg".indexOf(unit) || Number.NaN);
};

let compose: Yaml;
let dockerfile: string;
beforeAll(async () => {
  compose = readYaml(await read("docker-compose.yml"));
  dockerfile = (await read("Dockerfile")).replace(/\\\n/g, " ");
});

const OURS = ["gateway", "worker"];
const ALL = [...OURS, "redis"];

describe("docker-compose.yml", () => {
  it.each(ALL)("%s cannot change its root file system, has no capabilities, a health check, and comes back", (name) => {
    const service = (...keys: string[]) => at(compose, "services", name, ...keys);
    expect(service("read_only")).toBe("true");
    expect(service("tmpfs")).toEqual(["/tmp"]);
    expect(service("cap_drop")).toEqual(["ALL"]);
    expect(service("security_opt")).toEqual(["no-new-privileges:true"]);
    expect(service("restart")).toBe("unless-stopped");
    expect(strings(service("healthcheck", "test")).join(" ")).toMatch(/node -e |redis-cli ping/);
  });

  it("can run as many workers as one likes, and opens one port, on this machine only", () => {
    const services = at(compose, "services");
    const published = ALL.flatMap((name) => strings((at(services, name) as { ports?: Yaml }).ports ?? null));
    expect(published).toEqual(["127.0.0.1:8765:8765"]);
    expect(Object.keys(at(services, "worker") as object)).not.toContain("ports");
    for (const name of ALL) expect(Object.keys(at(services, name) as object)).not.toContain("container_name");
  });

  it("waits for a Redis that answers, and needs no variable", async () => {
    for (const name of OURS)
      expect(at(compose, "services", name, "depends_on", "redis", "condition")).toBe("service_healthy");
    const variables = (await read("docker-compose.yml")).match(/\$\{[^}]*\}/g) ?? [];
    expect(variables.length).toBeGreaterThan(4);
    for (const variable of variables) expect(variable).toMatch(/^\$\{[A-Z_]+:-\w*\}$/);
  });

  it("bounds Redis below its container, and lets it throw nothing away", () => {
    const command = strings(at(compose, "services", "redis", "command"));
    const optionOf = (option: string) => command[command.indexOf(option) + 1] ?? "";
    expect(optionOf("--appendonly")).toBe("yes");
    expect(optionOf("--maxmemory-policy")).toBe("noeviction");
    const limit = bytesOf(String(at(compose, "services", "redis", "mem_limit")));
    expect(bytesOf(optionOf("--maxmemory"))).toBeLessThanOrEqual(limit / 2);
  });

  it("names volumes and files that exist", async () => {
    const declared = Object.keys(at(compose, "volumes") as object);
    for (const name of ALL)
      for (const volume of strings(at(compose, "services", name, "volumes"))) {
        const [source = ""] = volume.split(":");
        if (source.startsWith("./")) expect((await stat(path.join(root, source))).isFile()).toBe(true);
        else expect(declared).toContain(source);
      }
  });
});

describe("the time to stop", () => {
  it("is longer in compose and systemd than a gateway may need", async () => {
    const file = path.join(root, "config/compose.json");
    const { config } = await loadConfig({ file, env: {}, cwd: root });
    const needsMs = config.gateway.drainMs + STOP_EXTRA_MS;
    for (const name of OURS) expect(msOf(at(compose, "services", name, "stop_grace_period"))).toBeGreaterThan(needsMs);
    const defaults = await loadConfig({ env: { NANOGATE_HOME: "/nowhere" }, cwd: tmpdir() });
    const unit = await read("examples/nanogate.service");
    const unitMs = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) * 1000;
    expect(unitMs).toBeGreaterThan(defaults.config.gateway.drainMs + STOP_EXTRA_MS);
    expect(unit).toMatch(/^KillMode=mixed$/m);
    expect(unit).toMatch(/^ExecStart=\/usr\/bin\/env node dist\/main\.js gateway$/m);
  });
});

/** `COPY` lines of the Dockerfile without those from another stage. */
const copied = () =>
  [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap(([, words = ""]) => words.split(/\s+/).slice(0, -1));
const json = (text: string | undefined): string[] => JSON.parse(text ?? "null") as string[];
const healthOf = () => json(/^HEALTHCHECK .*CMD (\[.*\])$/m.exec(dockerfile)?.[1]);

describe("Dockerfile", () => {
  it("copies what exists and what .dockerignore lets through", async () => {
    const ignore = (await read(".dockerignore")).split("\n").filter((line) => line !== "");
    expect(ignore[0]).toBe("*");
    expect(copied().length).toBeGreaterThan(6);
    for (const file of copied()) {
      await stat(path.join(root, file));
      expect(ignore).toContain(`!${file}`);
    }
  });

  it("ends as an ordinary user, without Redis, and asks for health as compose does", () => {
    const runtime = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
    expect(runtime).toMatch(/^USER node$/m);
    expect(dockerfile.replace(/^#.*$/gm, "")).not.toMatch(/redis|curl|wget|apt-get/i);
    for (const name of OURS)
      expect(strings(at(compose, "services", name, "healthcheck", "test"))).toEqual(["CMD", ...healthOf()]);
  });
});

/** The runtime stage's files in a folder, and processes of another user on them. */
class Image {
  readonly #children: ChildProcess[] = [];
  readonly #ends: Array<() => unknown> = [];

  private constructor(readonly folder: string) {}

  static async unpack(): Promise<Image> {
    const image = new Image(await mkdtemp(path.join(tmpdir(), "ng-image-")));
    await mkdir(image.app);
    await cp(DIST, path.join(image.app, "dist"), { recursive: true });
    for (const file of ["package.json", "config"])
      await cp(path.join(root, file), path.join(image.app, file), { recursive: true });
    // What `npm prune --omit=dev` leaves.
    const lock = JSON.parse(await read("package-lock.json")) as {
      packages: Record<string, { dev?: boolean; devOptional?: boolean }>;
    };
    const kept = Object.entries(lock.packages).filter(
      ([name, { dev, devOptional }]) => /^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(name) && !dev && !devOptional,
    );
    for (const [name] of kept)
      await cp(path.join(root, name), path.join(image.app, name), { recursive: true }).catch(absentOptional);
    for (const folder of ["home", "workspace"]) await mkdir(path.join(image.data, folder), { recursive: true });
    await image.#giveAway();
    return image;
  }

  get app(): string {
    return path.join(this.folder, "app");
  }

  get data(): string {
    return path.join(this.folder, "data");
  }

  /** The tree belongs to root and nobody may write; the data folder belongs to the other user, if we may give it away. */
  async #giveAway(): Promise<void> {
    await chmod(this.folder, 0o755);
    for (const entry of await readdir(this.app, { recursive: true, withFileTypes: true }))
      if (!entry.isSymbolicLink())
        await chmod(path.join(entry.parentPath, entry.name), entry.isDirectory() ? 0o555 : 0o444);
    await chmod(this.app, 0o555);
    for (const folder of ["", "home", "workspace"]) {
      if (process.getuid?.() === 0) await chown(path.join(this.data, folder), NOBODY, NOBODY);
      await chmod(path.join(this.data, folder), 0o700);
    }
  }

  /** The config that compose mounts, with a Redis and a data folder that are here, on any port. */
  async config(redisPort: number): Promise<string> {
    const config = JSON.parse(await read("config/compose.json"));
    expect(config.redis.url).toBe("redis://redis:6379/0");
    expect(config.workspace).toBe("/data/workspace");
    config.redis.url = `redis://127.0.0.1:${redisPort}/0`;
    config.workspace = path.join(this.data, "workspace");
    config.gateway.port = 0;
    const file = path.join(this.folder, "config.json");
    await writeFile(file, JSON.stringify(config), { mode: 0o644 });
    return file;
  }

  run(args: readonly string[], env: Record<string, string>): Process {
    const asOther = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
    const [command = "node", ...rest] = args;
    const program = command === "node" ? process.execPath : command;
    const all = { PATH: process.env.PATH ?? "", NODE_ENV: "production", OLLAMA_HOST: "127.0.0.1:1", ...env };
    const child = spawn(program, rest, { cwd: this.app, env: all, stdio: ["ignore", "pipe", "pipe"], ...asOther });
    this.#children.push(child);
    return new Process(child);
  }

  onEnd(end: () => unknown): void {
    this.#ends.push(end);
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill("SIGKILL");
    for (const end of this.#ends) await end();
    for (const entry of await readdir(this.app, { recursive: true, withFileTypes: true }))
      if (entry.isDirectory()) await chmod(path.join(entry.parentPath, entry.name), 0o755);
    await chmod(this.app, 0o755);
    await rm(this.folder, { recursive: true, force: true });
  }
}

const NOBODY = 65_534;

/** A package for another system or processor is in the lock file and not on the disk. */
function absentOptional(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}

class Process {
  text = "";
  readonly ended: Promise<number | null>;

  constructor(readonly child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk) => {
        this.text += String(chunk);
      });
    this.ended = once(child, "close").then(([code]) => code as number | null);
  }

  ready(): Promise<number> {
    return until(() => {
      if (this.child.exitCode !== null) throw new Error(`it ended:\n${this.text}`);
      const line = this.text.split("\n").find((each) => each.includes('"msg":"ready"'));
      return line === undefined ? null : (JSON.parse(line) as { port: number }).port;
    });
  }
}

describe("the image's files", () => {
  let image: Image | null = null;
  afterEach(() => image?.close());

  it("run both roles from an empty data folder as another user, are healthy, answer, and stop in order", async () => {
    image = await Image.unpack();
    const redis = await TestRedis.start();
    const road = await openTcpRoad(redis.socketPath);
    image.onEnd(() => road.close());
    image.onEnd(() => redis.stop());
    const env = {
      NANOGATE_CONFIG: await image.config(road.port),
      NANOGATE_HOME: path.join(image.data, "home"),
      LOG_LEVEL: "info",
    };
    // As compose passes on what is not set.
    const unset = { NANOGATE_TOKEN: "", ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", OPENROUTER_API_KEY: "" };
    const entry = json(/^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)?.[1]);
    const start = (name: string) =>
      (image as Image).run([...entry, ...strings(at(compose, "services", name, "command"))], { ...env, ...unset });
    const [gateway, worker] = [start("gateway"), start("worker")];
    const ports = await Promise.all([gateway.ready(), worker.ready()]);

    const health = async (port: number) =>
      (image as Image).run(
        healthOf().map((word) => word.replace(":8765/", `:${port}/`)),
        env,
      ).ended;
    expect(await Promise.all(ports.map(health))).toEqual([0, 0]);
    for (const port of ports) expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);

    const printed = image.run([...entry, "token"], env);
    expect(await printed.ended).toBe(0);
    const token = printed.text.trim();
    expect(token.length).toBeGreaterThan(30);
    expect((await stat(path.join(image.data, "home", "token"))).mode & 0o777).toBe(0o600);
    // Both say it, whoever of them made the token.
    for (const { text } of [gateway, worker]) expect(text).toContain("`nanogate token` prints it");
    expect(gateway.text + worker.text).not.toContain(token);

    const client = new Client("c1");
    await client.connect(`ws://127.0.0.1:${ports[0]}/?token=${token}`);
    await client.say("hello", "m1");
    await client.end("m1");
    expect(client.answers.join()).toContain("hello");

    for (const { child } of [gateway, worker]) child.kill("SIGTERM");
    expect(await Promise.all([gateway.ended, worker.ended])).toEqual([0, 0]);
    expect(await Promise.all(ports.map(health))).toEqual([1, 1]);
    const admin = redis.client();
    const left = (await admin.keys("*")).filter((key) => /:(?:lease|turns|sched)$/.test(key));
    admin.disconnect();
    expect(left).toEqual([]);
  });
});

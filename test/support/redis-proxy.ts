/**
 * A road to a Redis that can be broken: it forwards bytes between a unix socket of its own and the server, and on request
 * loses a reply, loses a command, or carries nothing at all. It knows no Redis protocol beyond where a reply begins.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

interface Trap {
  text: string;
  what: "reply" | "command";
  sprung: () => void;
}

export class RedisProxy {
  readonly #target: string;
  readonly #folder: string;
  readonly #server: Server;
  readonly #pairs = new Set<{ client: Socket; server: Socket }>();
  #traps: Trap[] = [];
  #isStalled = false;
  /** Connections that were cut by a trap. */
  cuts = 0;
  /** Connections that were made. */
  connections = 0;

  private constructor(target: string, folder: string) {
    this.#target = target;
    this.#folder = folder;
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#carry(client));
  }

  static async start(target: string): Promise<RedisProxy> {
    const folder = await mkdtemp(path.join(tmpdir(), "ng-proxy-"));
    const proxy = new RedisProxy(target, folder);
    proxy.#server.listen(proxy.address.socketPath);
    await once(proxy.#server, "listening");
    return proxy;
  }

  get address(): { socketPath: string } {
    return { socketPath: path.join(this.#folder, "s") };
  }

  /** Carries the next command that contains `text` out, loses its reply and closes; resolves when that has happened. */
  loseReplyOf(text: string): Promise<void> {
    return new Promise((sprung) => this.#traps.push({ text, what: "reply", sprung }));
  }

  /** Loses the next command that contains `text` and closes. */
  loseCommand(text: string): Promise<void> {
    return new Promise((sprung) => this.#traps.push({ text, what: "command", sprung }));
  }

  /** From now on nothing is carried over the connections there are, and nobody is told. New ones work. */
  stall(): void {
    for (const { client, server } of this.#pairs) {
      client.pause();
      server.pause();
      client.removeAllListeners("data");
      server.removeAllListeners("data");
    }
  }

  /** No connection is carried, those to come included, until `resume`. */
  stallAll(): void {
    this.#isStalled = true;
    this.stall();
  }

  resume(): void {
    this.#isStalled = false;
  }

  async stop(): Promise<void> {
    for (const { client, server } of this.#pairs) {
      client.destroy();
      server.destroy();
    }
    this.#server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #carry(client: Socket): void {
    this.connections += 1;
    const pair = { client, server: connect(this.#target) };
    const { server } = pair;
    const end = (): void => {
      client.destroy();
      server.destroy();
      this.#pairs.delete(pair);
    };
    this.#pairs.add(pair);
    for (const socket of [client, server]) {
      socket.on("error", end);
      socket.on("close", end);
    }
    if (this.#isStalled) return void client.pause();
    let losing: Trap | null = null;
    client.on("data", (bytes: Buffer) => {
      const trap = this.#traps.find(({ text }) => bytes.includes(text));
      if (trap?.what === "command") return this.#spring(trap, end);
      losing = trap ?? losing;
      server.write(bytes);
    });
    server.on("data", (bytes: Buffer) => {
      // A server that does not know a script yet has not carried anything out.
      if (losing !== null && !bytes.includes("NOSCRIPT")) return this.#spring(losing, end);
      client.write(bytes);
    });
  }

  #spring(trap: Trap, end: () => void): void {
    this.#traps = this.#traps.filter((each) => each !== trap);
    this.cuts += 1;
    end();
    trap.sprung();
  }
}

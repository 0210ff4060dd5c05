/** Speaks just enough of a Redis to be asked what it is: every command is answered with OK, INFO with the given text. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

export interface FakeRedis {
  address: { socketPath: string };
  stop(): Promise<void>;
}

/** Names of the commands in a piece of protocol: the first text of each list. */
function commandsIn(bytes: string): string[] {
  return [...bytes.matchAll(/\*\d+\r\n\$\d+\r\n([a-z]+)\r\n/gi)].map(([, name]) => (name ?? "").toLowerCase());
}

function answer(command: string, info: string): string {
  if (command === "hello") return "-ERR unknown command 'HELLO'\r\n";
  return command === "info" ? `$${Buffer.byteLength(info)}\r\n${info}\r\n` : "+OK\r\n";
}

export async function startFakeRedis(info: string): Promise<FakeRedis> {
  const folder = await mkdtemp(path.join(tmpdir(), "ng-fake-redis-"));
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("data", (bytes) => {
      for (const command of commandsIn(String(bytes))) socket.write(answer(command, info));
    });
  });
  const socketPath = path.join(folder, "s");
  server.listen(socketPath);
  await once(server, "listening");
  return {
    address: { socketPath },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

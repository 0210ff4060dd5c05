/** A port in front of a server that listens on a unix socket: for what only knows ports, or may not reach the socket. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

/** Carries bytes until `close`, which ends open connections too. */
export async function openTcpRoad(socketPath: string): Promise<{ port: number; close(): void }> {
  const ends = new Set<() => void>();
  const road = createServer((client) => {
    const server = connect(socketPath);
    const end = () => {
      client.destroy();
      server.destroy();
      ends.delete(end);
    };
    ends.add(end);
    for (const side of [client, server]) side.on("error", end).on("close", end);
    client.pipe(server).pipe(client);
  });
  await once(road.listen(0, "127.0.0.1"), "listening");
  const close = () => {
    for (const end of ends) end();
    road.close();
  };
  return { port: (road.address() as AddressInfo).port, close };
}

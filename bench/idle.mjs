/** From start to ready with the embedded Redis, memory at rest, and 5,000 idle clients: memory each, pings answered. */
import { once } from "node:events";
import { WebSocket } from "ws";
import { memoryOf, openGateway, openHome } from "./support.mjs";

const CLIENTS = 5000;
/** Longer than the 20 s between two pings. */
const PING_WAIT_MS = 25_000;

async function connect(port, name, onPing) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/?client_id=${name}`);
  socket.on("ping", onPing);
  await once(socket, "open");
  return socket;
}

export async function idle() {
  const { home, close } = await openHome();
  const gateway = await openGateway(home, { workspace: `${home}/w`, gateway: { port: 0 }, agent: { model: "demo" } });
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const atRest = await memoryOf(gateway.pid);
  let pings = 0;
  const sockets = [];
  for (let i = 0; i < CLIENTS; i += 100) {
    const batch = Array.from({ length: 100 }, (_, j) => connect(gateway.port, `bench-${i + j}`, () => (pings += 1)));
    sockets.push(...(await Promise.all(batch)));
  }
  await new Promise((resolve) => setTimeout(resolve, PING_WAIT_MS));
  const withClients = await memoryOf(gateway.pid);
  const open = sockets.filter((socket) => socket.readyState === WebSocket.OPEN).length;
  for (const socket of sockets) socket.terminate();
  await gateway.close();
  await close();
  return [
    ["start to ready, embedded Redis", `${(gateway.readyMs / 1000).toFixed(2)} s`],
    ["memory at rest", `${atRest.toFixed(0)} MiB`],
    [`memory per idle client (of ${CLIENTS})`, `${(((withClients - atRest) * 1024) / CLIENTS).toFixed(1)} KiB`],
    ["clients still connected, pings answered", `${open}, ${pings}`],
  ];
}

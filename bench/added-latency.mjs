/**
 * What the gateway adds to a turn at 50 busy sessions: from the client's frame to the model's request, and from the model's
 * last byte to the client's frame. Client, model and clock are this process; the gateway is another.
 */
import { once } from "node:events";
import { WebSocket } from "ws";
import { openGateway, openHome, openModel, openRedis, percentile } from "./support.mjs";

const SESSIONS = 50;
const TURNS = 8;
/** A model that answers for 1.5 s. */
const CHUNKS = 20;
const GAP_MS = 75;

async function converse(port, index, turns, onTurn) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/?client_id=bench-${index}`);
  await once(socket, "open");
  // People do not speak in chorus: sessions begin one after the other, over the length of a turn.
  await new Promise((resolve) => setTimeout(resolve, (index / SESSIONS) * CHUNKS * GAP_MS));
  const waiting = new Map();
  socket.on("message", (data) => {
    const frame = JSON.parse(String(data));
    if (frame.event === "stream_end") waiting.get("answer")?.(performance.now());
    if (frame.event === "turn_end") waiting.get("end")?.();
  });
  for (let turn = 0; turn < turns; turn += 1) {
    const text = `${index}.${turn}`;
    const answered = new Promise((resolve) => waiting.set("answer", resolve));
    const ended = new Promise((resolve) => waiting.set("end", resolve));
    const sentMs = performance.now();
    socket.send(JSON.stringify({ type: "message", chat_id: `bench-${index}`, content: text, id: text }));
    const outMs = await answered;
    await ended;
    onTurn({ text, sentMs, outMs });
  }
  socket.close();
}

export async function addedLatency() {
  const { home, close } = await openHome();
  const redis = await openRedis(home);
  const model = await openModel({ chunks: CHUNKS, gapMs: GAP_MS });
  const gateway = await openGateway(home, {
    workspace: `${home}/w`,
    redis: { url: redis.socket },
    gateway: { port: 0, concurrency: 64 },
    agent: { model: "bench/m" },
    providers: { bench: { kind: "openai", apiKey: "none", baseUrl: model.baseUrl } },
  });
  const turns = [];
  await Promise.all(
    Array.from({ length: SESSIONS }, (_, index) => converse(gateway.port, index, TURNS, (turn) => turns.push(turn))),
  );
  const parts = turns
    // The first turn of a session makes files and connections.
    .filter(({ text }) => !text.endsWith(".0"))
    .map(({ text, sentMs, outMs }) => {
      const { arrivedMs, lastByteMs } = model.seen.get(text);
      return { inMs: arrivedMs - sentMs, outMs: outMs - lastByteMs, sumMs: arrivedMs - sentMs + outMs - lastByteMs };
    });
  await gateway.close();
  await model.close();
  await redis.close();
  await close();
  const row = (name, field) => [
    name,
    percentile(
      parts.map((part) => part[field]),
      0.5,
    ).toFixed(1),
    percentile(
      parts.map((part) => part[field]),
      0.99,
    ).toFixed(1),
  ];
  return [row("frame in → model request", "inMs"), row("last model byte → frame out", "outMs"), row("both", "sumMs")];
}

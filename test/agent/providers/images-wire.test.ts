/** What the real clients of both wires put on the line for a row with images, seen by a peer that only listens. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createAnthropicProvider } from "../../../src/agent/providers/anthropic.js";
import { estimateUsage } from "../../../src/agent/providers/estimate.js";
import { normaliseMessages } from "../../../src/agent/providers/normalise.js";
import { createOpenAiProvider } from "../../../src/agent/providers/openai.js";
import type { ChatMessage, ModelImage, ModelRequest, Provider } from "../../../src/agent/providers/provider.js";

interface Body {
  messages: Array<{ role: string; content: unknown }>;
}

const bodies: Body[] = [];
let server: Server;
let url = "";
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    bodies.push(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    response.writeHead(400, { "content-type": "application/json" }).end('{"error":{"message":"seen"}}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => {
  bodies.length = 0;
});

const cat: ModelImage = { mime: "image/png", base64: "Y2F0" };
const dog: ModelImage = { mime: "image/jpeg", base64: "ZG9n" };
const rows: ChatMessage[] = [
  { role: "system", content: "s" },
  { role: "user", content: "before" },
  { role: "assistant", content: "yes", toolCalls: [] },
  { role: "user", content: "which?", images: [cat, dog] },
];

const deps = () => ({ name: "peer", apiKey: "k", requestTimeoutMs: 5000, streamIdleTimeoutMs: 5000 });
const openAi = () => createOpenAiProvider({ ...deps(), baseUrl: `${url}/v1` });
const anthropic = () => createAnthropicProvider({ ...deps(), baseUrl: url });

/** What is said after the system prompt, as it went over the line. */
async function sent(provider: Provider, messages: ChatMessage[]) {
  const request: ModelRequest = { model: "m", messages, tools: [], toolChoice: "auto", maxOutputTokens: 9 };
  const events = provider.stream(request, new AbortController().signal)[Symbol.asyncIterator]();
  await expect(events.next()).rejects.toMatchObject({ code: "PROVIDER_INVALID" });
  return (bodies.at(-1)?.messages ?? []).filter(({ role }) => role !== "system");
}

test("OpenAI's wire: data URLs before the text; rows without images stay plain text", async () => {
  expect(await sent(openAi(), rows)).toEqual([
    { role: "user", content: "before" },
    { role: "assistant", content: "yes" },
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: "data:image/png;base64,Y2F0" } },
        { type: "image_url", image_url: { url: "data:image/jpeg;base64,ZG9n" } },
        { type: "text", text: "which?" },
      ],
    },
  ]);
});

test("Anthropic's wire: image blocks before the text, the cache marker behind them", async () => {
  expect((await sent(anthropic(), rows)).at(-1)).toEqual({
    role: "user",
    content: [
      { type: "image", source: { type: "base64", media_type: "image/png", data: "Y2F0" } },
      { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "ZG9n" } },
      { type: "text", text: "which?", cache_control: { type: "ephemeral" } },
    ],
  });
});

test("Anthropic's wire: results come before the images of a row that follows them", async () => {
  const call = { id: "1", name: "f", arguments: "{}" };
  const steered: ChatMessage[] = [
    { role: "user", content: "a" },
    { role: "assistant", content: "", toolCalls: [call] },
    { role: "tool", toolCallId: "1", name: "f", content: "r" },
    { role: "user", content: "and this?", images: [cat] },
  ];
  const content = (await sent(anthropic(), steered)).at(-1)?.content as Array<{ type: string }>;
  expect(content.map(({ type }) => type)).toEqual(["tool_result", "image", "text"]);
});

test("rows that are merged keep all their images, in order; normalising changes nothing else", async () => {
  const two: ChatMessage[] = [
    { role: "user", content: "this", images: [cat] },
    { role: "user", content: "or this", images: [dog] },
  ];
  expect(normaliseMessages(two)).toEqual([{ role: "user", content: "this\n\nor this", images: [cat, dog] }]);
  expect(normaliseMessages(rows)).toBe(rows);
  for (const provider of [openAi(), anthropic()])
    expect(JSON.stringify(await sent(provider, two))).toMatch(/Y2F0.*ZG9n/);
});

test("the same rows give the same bytes, and images count in an estimate", async () => {
  for (const provider of [openAi(), anthropic()]) {
    await sent(provider, rows);
    await sent(provider, structuredClone(rows));
    expect(JSON.stringify(bodies.at(-1))).toBe(JSON.stringify(bodies.at(-2)));
  }
  const without = rows.map((row): ChatMessage => (row.role === "user" ? { role: "user", content: row.content } : row));
  const tokens = (messages: ChatMessage[]) => estimateUsage({ messages, tools: [] }, "").inputTokens;
  expect(tokens(rows) - tokens(without)).toBeGreaterThan(2000);
});

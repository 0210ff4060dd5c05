/** docs/protocol.md shows every frame, error and close code that there is, in a shape that is taken or sent. */

import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { WEBSOCKET_LIMITS } from "../../src/channels/websocket/channel.js";
import { MAX_CONTENT_BYTES, parseFrame } from "../../src/channels/websocket/parse.js";
import { CLOSE } from "../../src/channels/websocket/wire.js";
import { MAX_TOKEN_REQUESTS_PER_MINUTE } from "../../src/http/auth.js";
import { TOKEN_LIMITS } from "../../src/redis/tokens.js";
import { root } from "./source.js";

const read = (file: string) => readFileSync(path.join(root, file), "utf8");
const page = read("docs/protocol.md");
const wire = read("src/channels/websocket/wire.ts");

const examples = [...page.matchAll(/^```json\n([\s\S]*?)^```/gm)].flatMap(([, body = ""]) => body.trim().split("\n"));
const frames = examples
  .filter((line) => line.startsWith("{"))
  .map((line) => JSON.parse(line) as Record<string, unknown>);
const received = frames.filter((frame) => frame.event !== undefined);

/** The part of `wire.ts` that a type takes. */
function typeText(name: string): string {
  const [, after = ""] = wire.split(`export type ${name} =`);
  return after.split(/;\n\n/)[0] ?? "";
}
const namesIn = (text: string, pattern: RegExp) => new Set([...text.matchAll(pattern)].map(([, name = ""]) => name));
const eventsOf = (type: string) => {
  const unions = [...typeText(type).matchAll(/event: ((?:"\w+"(?: \| )?)+)/g)].map(([, union = ""]) => union);
  return namesIn(unions.join(), /"(\w+)"/g);
};
/** First cells of the table under a heading. */
const cellsUnder = (heading: string) =>
  namesIn(page.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "", /^\| `?(\w+)`? \|/gm);

describe("docs/protocol.md", () => {
  it("shows client frames that the gateway takes, of every type", () => {
    const sent = examples.filter((line) => !line.includes('"event"'));
    for (const line of sent) expect(parseFrame(line), line).toMatchObject({ ok: true });
    const types = new Set(frames.flatMap(({ type }) => (typeof type === "string" ? [type] : [])));
    expect(types).toEqual(new Set(["message", "attach", "stop", "new_chat", "ping"]));
  });

  it("shows every event, numbered exactly where the gateway numbers it", () => {
    const isNumbered = (frame: Record<string, unknown>) => "seq" in frame && !("epoch" in frame);
    const shown = (numbered: boolean) =>
      new Set(received.filter((frame) => isNumbered(frame) === numbered).map(({ event }) => event));
    expect(shown(true)).toEqual(eventsOf("EventBody"));
    expect(shown(false)).toEqual(eventsOf("AnswerFrame"));
  });

  it("lists every error and every close code, and says how long a message may be", () => {
    const codes = namesIn(typeText("SoftErrorCode"), /"(\w+)"/g);
    expect(codes.size).toBeGreaterThan(5);
    expect(cellsUnder("Errors")).toEqual(new Set(["code", ...codes]));
    const listed = [...cellsUnder("Connecting")].filter((cell) => /^\d{4}$/.test(cell)).map(Number);
    expect(new Set(listed)).toEqual(new Set(Object.values(CLOSE)));
    expect(page).toContain(`${MAX_CONTENT_BYTES.toLocaleString("en")} bytes`);
  });

  it("names the limits there are", () => {
    const { maxConnections, maxPerClient, burstFrames, framesPerSecond, maxRefusedFrames, maxChats } = WEBSOCKET_LIMITS;
    const said = (count: number, words: string) => expect(page).toContain(`${count.toLocaleString("en")} ${words}`);
    said(maxConnections, "of a process");
    said(maxPerClient, "of a client");
    said(burstFrames, "frames at once");
    said(framesPerSecond, "a second");
    said(maxRefusedFrames, "such frames");
    said(maxChats, "chats");
    said(WEBSOCKET_LIMITS.maxBufferedBytes / 2 ** 20, "MiB were waiting");
    said(WEBSOCKET_LIMITS.maxFrameBytes / 2 ** 20, "MiB");
    said(WEBSOCKET_LIMITS.pingMs / 1000, "s and ends");
    said(TOKEN_LIMITS.ttlMs / 1000, "s, once");
    said(TOKEN_LIMITS.maxAlive, "tokens wait");
    said(MAX_TOKEN_REQUESTS_PER_MINUTE, "requests in a minute");
  });
});

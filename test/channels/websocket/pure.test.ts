/** Frames in, frames out, and who is who: tables over the pure parts. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { OutboundEvent } from "../../../src/bus/messages.js";
import { admit, byToken, type Knock } from "../../../src/channels/websocket/identity.js";
import { MAX_CONTENT_BYTES, parseFrame } from "../../../src/channels/websocket/parse.js";
import { renderEvent } from "../../../src/channels/websocket/render.js";
import { outbound } from "../../fakes/outbound.js";

const said = (content: string, chatId: string | null = null, id: string | null = null) => ({
  ok: true,
  intent: { type: "message", chatId, id, content },
});
const refused = (code: string, more: object = {}) => ({ ok: false, error: expect.objectContaining({ code, ...more }) });

describe("parse", () => {
  it.each<[string, unknown]>([
    ["hello", said("hello")],
    ["42", said("42")],
    ['["a"]', said('["a"]')],
    ['{"content": broken', said('{"content": broken')],
    ['{"content":"a"}', said("a")],
    ['{"text":"b","id":"i1"}', said("b", null, "i1")],
    ['{"message":"c"}', said("c")],
    ["  \n", { ok: true, intent: { type: "nothing" } }],
    ['{"content":"  "}', { ok: true, intent: { type: "nothing" } }],
    ['{"other":1}', refused("bad_frame")],
    ['{"type":"new_chat"}', { ok: true, intent: { type: "new_chat" } }],
    [
      '{"type":"attach","chat_id":"c"}',
      { ok: true, intent: { type: "attach", chatId: "c", after: null, epoch: null } },
    ],
    [
      '{"type":"attach","chat_id":"c","after":3,"epoch":2}',
      { ok: true, intent: { type: "attach", chatId: "c", after: 3, epoch: 2 } },
    ],
    ['{"type":"attach","chat_id":"c","after":-1}', refused("bad_frame", { chat_id: "c" })],
    ['{"type":"attach","chat_id":"c","after":1.5}', refused("bad_frame")],
    ['{"type":"attach","chat_id":"a/b"}', refused("bad_chat_id")],
    ['{"type":"attach"}', refused("bad_chat_id")],
    [`{"type":"attach","chat_id":"${"x".repeat(65)}"}`, refused("bad_chat_id")],
    ['{"type":"message","chat_id":"A-z_0:9","content":"hi","id":"7"}', said("hi", "A-z_0:9", "7")],
    ['{"type":"message","chat_id":"c","content":" "}', refused("missing_content", { chat_id: "c" })],
    ['{"type":"message","chat_id":"c","id":"7"}', refused("missing_content", { chat_id: "c", id: "7" })],
    ['{"type":"message","chat_id":"c","content":5}', refused("bad_frame")],
    ['{"type":"message","chat_id":"c","content":"a","id":""}', refused("bad_frame")],
    ['{"type":"message","chat_id":"c","content":"a","media":[]}', said("a", "c")],
    ['{"type":"message","chat_id":"c","content":"a","media":["data:x"]}', refused("media_unsupported")],
    ['{"type":"ping","at":12}', { ok: true, intent: { type: "ping" } }],
    // What clients of nanobot send: fields of its own, and the message's id as `turn_id`.
    ['{"type":"message","chat_id":"c","content":"a","turn_id":"u1","webui":true,"media":null}', said("a", "c", "u1")],
    ['{"type":"message","chat_id":"c","content":"a","id":"7","turn_id":"u1"}', said("a", "c", "7")],
    ['{"type":"message","chat_id":"c","content":"a","turn_id":{"x":1}}', said("a", "c")],
    [`{"type":"message","chat_id":"c","content":"a","turn_id":"${"u".repeat(201)}"}`, said("a", "c")],
    ['{"content":"a","turn_id":"u1"}', said("a", null, "u1")],
    ['{"type":"fork_chat","chat_id":"c"}', refused("unknown_type", { chat_id: "c" })],
    ['{"type":"stop","chat_id":"c"}', { ok: true, intent: { type: "stop", chatId: "c" } }],
    ['{"type":"stop"}', refused("bad_chat_id")],
    ['{"type":"dance","chat_id":"c"}', refused("unknown_type", { chat_id: "c" })],
    ['{"type":5,"content":"a"}', said("a")],
    ["é".repeat(MAX_CONTENT_BYTES / 2), said("é".repeat(MAX_CONTENT_BYTES / 2))],
    ["é".repeat(MAX_CONTENT_BYTES / 2 + 1), refused("too_long")],
  ])("%.60s", (frame, expected) => {
    expect(parseFrame(frame)).toEqual(expected);
  });

  it("answers whatever it is given", () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => typeof parseFrame(text).ok === "boolean"));
  });
});

describe("render", () => {
  const usage = { inputTokens: 3, outputTokens: 5, estimated: true };
  const cases: Array<[OutboundEvent, object | null]> = [
    [
      { type: "final", streamId: null },
      { event: "message", text: "x", turn_id: "turn" },
    ],
    [
      { type: "final", streamId: "s" },
      { event: "stream_end", stream_id: "s", text: "x", turn_id: "turn" },
    ],
    [{ type: "notice" }, { event: "message", text: "x", turn_id: "turn" }],
    [
      { type: "delta", streamId: "s", offset: 0 },
      { event: "delta", stream_id: "s", text: "x" },
    ],
    [
      { type: "stream_end", streamId: "s" },
      { event: "stream_end", stream_id: "s", text: "x", turn_id: "turn" },
    ],
    [
      { type: "stream_reset", streamId: "s" },
      { event: "stream_reset", stream_id: "s" },
    ],
    [
      { type: "reasoning_delta", streamId: "s" },
      { event: "reasoning_delta", stream_id: "s", text: "x" },
    ],
    [
      { type: "reasoning_end", streamId: "s" },
      { event: "reasoning_end", stream_id: "s" },
    ],
    [
      { type: "tool", callId: "k", name: "read_file", phase: "end" },
      { event: "tool", turn_id: "turn", call_id: "k", name: "read_file", phase: "end" },
    ],
    [{ type: "typing" }, null],
    [
      { type: "turn_end", messageIds: ["a"], outcome: "completed", usage },
      {
        event: "turn_end",
        turn_id: "turn",
        message_ids: ["a"],
        outcome: "completed",
        latency_ms: 12,
        usage: { input_tokens: 3, output_tokens: 5, estimated: true },
      },
    ],
  ];
  it.each(cases)("$type", (event, expected) => {
    const message = { ...outbound("x", event), ...(event.type === "turn_end" ? { latencyMs: 12 } : {}) };
    const frame = renderEvent("c", { seq: 9, message });
    expect(frame).toEqual(expected && { ...expected, chat_id: "c", seq: 9 });
  });

  it("shows files without their place, buttons, and what was answered", () => {
    const message = {
      ...outbound("x", { type: "final", streamId: null }),
      media: [{ path: "secret/place.png", mime: "image/png", name: "place.png", bytes: 4 }],
      buttons: [[{ label: "Yes", value: "yes" }]],
      replyTo: "m1",
    };
    expect(renderEvent("c", { seq: 1, message })).toEqual({
      event: "message",
      text: "x",
      turn_id: "turn",
      chat_id: "c",
      seq: 1,
      media: [{ mime: "image/png", name: "place.png", bytes: 4 }],
      buttons: [[{ label: "Yes", value: "yes" }]],
      reply_to: "m1",
    });
  });
});

describe("identity", () => {
  const local: Knock = { url: "/", headers: { host: "127.0.0.1:8765" }, remoteAddress: "127.0.0.1" };
  const knock = (url: string, headers: Knock["headers"] = {}, remoteAddress = "127.0.0.1"): Knock => ({
    url,
    headers: { ...local.headers, ...headers },
    remoteAddress,
  });
  const page = { origin: "http://127.0.0.1:8765" };
  const owner = { identity: "owner", isOwner: true };

  it.each<[string, Knock, string | null, object]>([
    [
      "a named client",
      knock("/?client_id=alice"),
      null,
      { identity: "client:alice", isOwner: false, clientId: "alice" },
    ],
    ["a client named like the owner", knock("/?client_id=owner"), null, { identity: "client:owner", isOwner: false }],
    ["a nameless client", knock("/"), null, { identity: expect.stringMatching(/^anon:anon-[0-9a-f]{12}$/) }],
    ["our page without a token", knock("/ws", page), null, owner],
    ["our page under a client's name", knock("/?client_id=al", page), null, { identity: "client:al", isOwner: false }],
    ["the token", knock("/?token=secret&client_id=al", {}, "10.0.0.9"), "secret", { ...owner, clientId: "al" }],
    ["the token in a header", knock("/", { authorization: "Bearer secret" }), "secret", owner],
    [
      "the page behind a proxy that passes on the host, with the token",
      knock("/?token=secret", {
        origin: "https://chat.example.com",
        host: "chat.example.com",
        "x-forwarded-for": "1.2.3.4",
      }),
      "secret",
      owner,
    ],
    ["IPv6 loopback", knock("/?client_id=a", {}, "::1"), null, { identity: "client:a" }],
    ["mapped loopback", knock("/?client_id=a", {}, "::ffff:127.0.0.1"), null, { identity: "client:a" }],
  ])("lets in: %s", (_what, who, token, visitor) => {
    expect(admit(who, token)).toEqual({ ok: true, visitor: expect.objectContaining(visitor) });
  });

  it.each<[string, Knock, string | null, number]>([
    ["no token", knock("/?client_id=alice"), "secret", 4401],
    ["an empty token", knock("/?token="), "secret", 4401],
    ["a token where none is configured", knock("/?token=guess"), null, 4401],
    ["another machine without a token", knock("/", {}, "10.0.0.9"), null, 4401],
    ["a request passed on by a proxy", knock("/", { "x-forwarded-for": "127.0.0.1" }), null, 4401],
    ["a page of another origin", knock("/", { origin: "https://evil.example" }), null, 4403],
    [
      "a page of another origin with the token",
      knock("/?token=secret", { origin: "http://evil.example" }),
      "secret",
      4403,
    ],
    [
      "the page behind a proxy that names itself as the host",
      knock("/?token=secret", { origin: "https://chat.example.com", "x-forwarded-host": "chat.example.com" }),
      "secret",
      4403,
    ],
    ["a page of another port", knock("/", { origin: "http://127.0.0.1:9999" }), null, 4403],
    ["a page without an origin of its own", knock("/", { origin: "null" }), null, 4403],
    [
      "a foreign name that resolves to this machine",
      knock("/", { origin: "http://evil.example:8765", host: "evil.example:8765" }),
      null,
      4403,
    ],
  ])("turns away: %s", (_what, who, token, code) => {
    expect(admit(who, token)).toMatchObject({ ok: false, code });
  });

  it.each<[string, Knock, object]>([
    ["in the query", knock("/?token=x&client_id=al"), { ok: "redeem", token: "x", named: "al" }],
    ["in a header", knock("/", { authorization: "Bearer x" }), { ok: "redeem", token: "x", named: null }],
    ["under a name too long to be one", knock(`/?token=x&client_id=${"n".repeat(129)}`), { named: "n".repeat(129) }],
  ])("asks about a token that is not the gateway's: %s", (_what, who, judged) => {
    expect(admit(who, "secret")).toMatchObject(judged);
  });

  it("takes a one-time token for the client it was issued for, and for nobody else", () => {
    const alice = { ok: true, visitor: { identity: "client:alice", isOwner: false, clientId: "alice" } };
    expect([byToken("alice", null), byToken("alice", "alice")]).toEqual([alice, alice]);
    expect(byToken("owner", null)).toMatchObject({ visitor: { identity: "client:owner", isOwner: false } });
    const turnedAway = [byToken("alice", "bob"), byToken(null, "alice"), byToken(null, null)];
    for (const each of turnedAway) expect(each).toMatchObject({ ok: false, code: 4401 });
  });
});

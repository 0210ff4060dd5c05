/** Spoken messages over a real upload: what is sent, what comes of every kind of answer, and that no failure is an error. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTranscriber, type TranscriptionSettings } from "../../src/agent/transcription.js";
import type { MediaRef } from "../../src/bus/messages.js";
import { NanogateError } from "../../src/errors.js";
import { KeptMetrics } from "../fakes/kept-metrics.js";
import { quietLogger } from "./run-helpers.js";

const KEY = "sk-test-key-of-the-peer";
type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const seen: Array<{ url: string; authorization: string; form: string }> = [];
const peer: { server: Server | null; url: string; answer: Answer } = { server: null, url: "", answer: () => {} };
let folder: string;
let metrics: KeptMetrics;
let log: string[];

beforeAll(async () => {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { authorization = "" } = request.headers;
    seen.push({ url: request.url ?? "", authorization, form: Buffer.concat(chunks).toString("latin1") });
    peer.answer(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  peer.server = server;
  peer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});
afterAll(() => {
  peer.server?.closeAllConnections();
  peer.server?.close();
});
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "ng-voice-"));
  await writeFile(path.join(folder, "said"), "OggS-recording");
  seen.length = 0;
  metrics = new KeptMetrics();
  log = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const voice: MediaRef = { path: "said", mime: "audio/ogg", name: "my secret name.ogg", bytes: 14, isVoice: true };
const json =
  (value: unknown, status = 200): Answer =>
  (response) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));

function transcriber(settings: Partial<TranscriptionSettings> = {}, baseUrl = peer.url) {
  return createTranscriber({
    settings: { model: "peer/whisper/large", language: null, maxBytes: 100, timeoutMs: 5000, ...settings },
    providers: {
      peer: { kind: "openai", apiKey: KEY, baseUrl },
      other: { kind: "anthropic", apiKey: KEY, baseUrl: null },
    },
    files: {
      pathOf: async (ref) => {
        if (ref.path !== "said") throw new NanogateError("MEDIA_REFUSED", "gone");
        return path.join(folder, ref.path);
      },
    },
    metrics,
  });
}

async function hear(answer: Answer, settings: Partial<TranscriptionSettings> = {}, ref = voice) {
  peer.answer = answer;
  return transcriber(settings).transcribe(ref, { signal: new AbortController().signal, logger: quietLogger(log) });
}

const nothing = (why: string | RegExp) => ({
  kind: "nothing",
  why: typeof why === "string" ? why : expect.stringMatching(why),
});
const outcomes = () => metrics.labelsOf("transcription_seconds").map(({ outcome }) => outcome);

describe("a recording", () => {
  test("is uploaded with model and language, under a name of ours, and its words come back", async () => {
    const heard = await hear(json({ text: " Hello,\nGrüße \u0007 there. " }), { language: "de" });
    expect(heard).toEqual({ kind: "words", text: "Hello,\nGrüße   there." });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ url: "/v1/audio/transcriptions", authorization: `Bearer ${KEY}` });
    const { form = "" } = seen[0] ?? {};
    for (const part of ['name="model"\r\n\r\nwhisper/large', 'name="language"\r\n\r\nde', "OggS-recording"]) {
      expect(form).toContain(part);
    }
    expect(form).toContain('filename="voice.ogg"');
    expect(form).not.toContain("secret name");
    expect(outcomes()).toEqual(["ok"]);
  });

  test("is sent without a language where none is set; a server that answers with plain text is understood", async () => {
    const plain: Answer = (response) => void response.writeHead(200, { "content-type": "text/plain" }).end("hi\n");
    expect(await hear(plain, {}, { ...voice, mime: "audio/mpeg" })).toEqual({ kind: "words", text: "hi" });
    expect(seen[0]?.form).not.toContain('name="language"');
    expect(seen[0]?.form).toContain('filename="voice.mp3"');
  });

  test("is tried once more when the service stumbles", async () => {
    const answers = [json({}, 503), json({ text: "second" })];
    const answer: Answer = (response, request) => answers.shift()?.(response.setHeader("retry-after-ms", "1"), request);
    expect(await hear(answer)).toEqual({ kind: "words", text: "second" });
    expect(seen).toHaveLength(2);
  });
});

describe("no words", () => {
  test("and nobody asked: none configured, a provider that cannot, a recording that is too long, one that is gone", async () => {
    expect(await hear(json({}), { model: null })).toEqual(nothing("no transcription is configured"));
    expect(await hear(json({}), { model: "other/x" })).toEqual(nothing("no transcription is configured"));
    expect(await hear(json({}), { model: "unknown/x" })).toEqual(nothing("no transcription is configured"));
    expect(await hear(json({}), { maxBytes: 13 })).toEqual(nothing("the recording is too long to be transcribed"));
    expect(await hear(json({}), {}, { ...voice, path: "gone" })).toEqual(nothing("the recording is not kept any more"));
    expect(seen).toEqual([]);
  });

  test.each<[string, Answer, RegExp]>([
    ["a wrong key", json({ error: { message: `bad key ${KEY}` } }, 401), /refused the gateway's key/],
    ["no quota", json({ error: { message: "insufficient_quota" } }, 429), /takes no more/],
    ["an unknown model", json({ error: { message: "model not found" } }, 404), /refused the recording/],
    ["a format it does not take", json({ error: { message: "bad format" } }, 400), /refused the recording/],
    ["silence in it", json({ text: " \n" }), /no words were heard/],
    ["an answer that is none", json({ words: 1 }), /service failed/],
  ])("after %s: the reason in words, without the service's own", async (_, answer, why) => {
    const heard = await hear((response, request) => answer(response.setHeader("x-should-retry", "false"), request));
    expect(heard).toEqual(nothing(why));
    expect(JSON.stringify(heard)).not.toMatch(/sk-|insufficient|bad format/);
    expect(log.join("")).not.toContain(KEY);
  });

  test("from a service that hangs: the time is kept, and the connection ends", async () => {
    let isClosed = false;
    const hanging: Answer = (response) => void response.on("close", () => (isClosed = true));
    expect(await hear(hanging, { timeoutMs: 100 })).toEqual(nothing("the transcription took too long"));
    await expect.poll(() => isClosed).toBe(true);
    expect(outcomes()).toEqual(["timeout"]);
    expect(log.join("")).toContain('"file":"said"');
  });

  test("from one that cannot be reached", async () => {
    const call = { signal: new AbortController().signal, logger: quietLogger(log) };
    const heard = await transcriber({}, "http://127.0.0.1:9/v1").transcribe(voice, call);
    expect(heard).toEqual(nothing("the transcription service cannot be reached"));
    expect(outcomes()).toEqual(["PROVIDER_UNREACHABLE"]);
  });
});

test("the end of the turn ends it at once and is thrown", async () => {
  const end = new AbortController();
  const reason = new Error("the turn is over");
  peer.answer = () => end.abort(reason);
  const call = { signal: end.signal, logger: quietLogger(log) };
  await expect(transcriber().transcribe(voice, call)).rejects.toBe(reason);
  expect(outcomes()).toEqual(["aborted"]);
});

/**
 * Speech to text at any OpenAI-compatible endpoint: one upload, one answer. It knows no message and no file of ours. Invariants:
 * the sender's name of a recording is not sent; what the endpoint said in refusing goes into the error's detail, never into
 * its message.
 */
import { assertUsable, type EndpointDeps } from "./endpoint.js";
import { createOpenAiClient } from "./openai-client.js";
import { type Endpoint, providerFailure, translateError } from "./provider-errors.js";

export type SpeechEndpoint = Pick<EndpointDeps, "name" | "apiKey" | "baseUrl">;

export interface Recording {
  bytes: Uint8Array;
  mime: string;
}

export interface SpeechRequest {
  model: string;
  /** Such as `en`; null: found out. */
  language: string | null;
  recording: Recording;
}

export interface SpeechToText {
  /** The words, trimmed; empty where none were heard. Throws `ProviderError`; on abort the signal's reason. */
  transcribe(request: SpeechRequest, signal: AbortSignal): Promise<string>;
}

/** Endpoints tell formats by the ending of the name. */
const ENDINGS: ReadonlyMap<string, string> = new Map([
  ["audio/aac", "aac"],
  ["audio/flac", "flac"],
  ["audio/mp4", "m4a"],
  ["audio/mpeg", "mp3"],
  ["audio/wav", "wav"],
  ["audio/webm", "webm"],
  ["audio/x-flac", "flac"],
  ["audio/x-m4a", "m4a"],
  ["video/mp4", "mp4"],
  ["video/webm", "webm"],
]);

function fileOf({ bytes, mime }: Recording): File {
  return new File([new Uint8Array(bytes)], `voice.${ENDINGS.get(mime) ?? "ogg"}`, { type: mime });
}

/** Null: the answer holds none, not even empty ones. */
function wordsIn(answer: unknown): string | null {
  if (typeof answer === "string") return answer.trim();
  const isAnswer = typeof answer === "object" && answer !== null && "text" in answer && typeof answer.text === "string";
  return isAnswer ? String(answer.text).trim() : null;
}

/** Speech to text at one endpoint. Nothing is loaded or connected before the first recording. */
export function createSpeechToText(deps: SpeechEndpoint): SpeechToText {
  let client: ReturnType<typeof createOpenAiClient> | undefined;
  return {
    async transcribe({ model, language, recording }, signal) {
      signal.throwIfAborted();
      const endpoint: Endpoint = { ...deps, model };
      assertUsable(endpoint, "https://api.openai.com/v1");
      client ??= createOpenAiClient(deps);
      const { audio } = await client;
      const body = { file: fileOf(recording), model, response_format: "json" as const };
      const spoken = language === null ? {} : { language };
      let words: string | null;
      try {
        words = wordsIn(await audio.transcriptions.create({ ...body, ...spoken }, { signal, maxRetries: 1 }));
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw translateError(error, endpoint, false);
      }
      if (words === null) throw providerFailure("PROVIDER_SERVER", endpoint, { detail: "the answer holds no text" });
      return words;
    },
  };
}

/**
 * What a spoken message says: its words, or why there are none. It stores nothing and decides nothing about the message.
 * Invariants: a recording never makes a turn fail, only an abort of the turn is thrown; it costs no more bytes and time than
 * the settings say; what an endpoint said goes into the log, not into the reason.
 */
import { readFile } from "node:fs/promises";
import type { MediaRef } from "../bus/messages.js";
import { hasCode } from "../errors.js";
import type { Logger } from "../logger.js";
import { type Metrics, timed } from "../metrics.js";
import type { MediaFiles } from "./media-ports.js";
import { linkAbort, raceAbort } from "./providers/abort.js";
import { createSpeechToText, type SpeechToText } from "./providers/openai-audio.js";
import { ProviderError } from "./providers/provider.js";

/** `why` may stand in a prompt, and be told to the sender. */
export type Heard = { kind: "words"; text: string } | { kind: "nothing"; why: string };

export interface Transcriber {
  /** Throws only the signal's reason. */
  transcribe(ref: MediaRef, call: { signal: AbortSignal; logger: Logger }): Promise<Heard>;
}

export interface TranscriptionSettings {
  /** `provider/model`; null: none is configured. */
  model: string | null;
  language: string | null;
  maxBytes: number;
  timeoutMs: number;
}

export interface TranscriberDeps {
  settings: TranscriptionSettings;
  providers: Readonly<Record<string, { kind: string; apiKey: string | null; baseUrl: string | null }>>;
  files: MediaFiles;
  metrics: Metrics;
}

/** More than anybody says in one message; what an endpoint makes up is cut there. */
const MAX_WORDS_CHARS = 50_000;
const NOT_CONFIGURED = "no transcription is configured";

/** The time that a transcription may take is over. */
class TooSlow extends Error {
  override readonly name = "TooSlow";
}

const nothing = (why: string): Heard => ({ kind: "nothing", why });

function heard(words: string): Heard {
  const clean = words.replace(/(?!\n)\p{Cc}/gu, " ").trim();
  if (clean === "") return nothing("no words were heard in it");
  return { kind: "words", text: clean.slice(0, MAX_WORDS_CHARS).toWellFormed() };
}

function reasonOf(error: unknown): string {
  if (error instanceof TooSlow) return "the transcription took too long";
  if (hasCode(error, "MEDIA_REFUSED")) return "the recording is not kept any more";
  if (!(error instanceof ProviderError)) return "the transcription failed";
  switch (error.code) {
    case "PROVIDER_AUTH":
    case "PROVIDER_NO_KEY":
      return "the transcription service refused the gateway's key";
    case "PROVIDER_QUOTA":
    case "PROVIDER_RATE_LIMITED":
      return "the transcription service takes no more for the moment";
    case "PROVIDER_INCOMPLETE":
    case "PROVIDER_UNREACHABLE":
      return "the transcription service cannot be reached";
    case "PROVIDER_TIMEOUT":
      return "the transcription took too long";
    case "PROVIDER_INVALID":
    case "PROVIDER_MODEL_UNKNOWN":
      return "the transcription service refused the recording";
    case "PROVIDER_SERVER":
      return "the transcription service failed";
    default:
      return error.code satisfies never;
  }
}

function outcomeOf(error: unknown): string {
  if (error instanceof TooSlow) return "timeout";
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "error";
}

interface Speech {
  speech: SpeechToText;
  model: string;
}

function speechOf({ settings, providers }: TranscriberDeps): Speech | null {
  const [, name = "", model = ""] = /^([^/]+)\/(.+)$/.exec(settings.model ?? "") ?? [];
  const provider = Object.hasOwn(providers, name) ? providers[name] : undefined;
  if (provider?.kind !== "openai" || provider.baseUrl === null) return null;
  return { speech: createSpeechToText({ name, apiKey: provider.apiKey, baseUrl: provider.baseUrl }), model };
}

/** The transcriber of one configuration. Nothing is loaded or connected before the first spoken message. */
export function createTranscriber(deps: TranscriberDeps): Transcriber {
  const { settings, files, metrics } = deps;
  const { language, maxBytes, timeoutMs } = settings;
  const found = speechOf(deps);

  /** The words, within the time. */
  async function ask({ speech, model }: Speech, ref: MediaRef, signal: AbortSignal): Promise<string> {
    const link = linkAbort(signal);
    const timer = setTimeout(() => link.controller.abort(new TooSlow("no transcription in time")), timeoutMs);
    try {
      const bytes = await readFile(await files.pathOf(ref));
      const request = { model, language, recording: { bytes, mime: ref.mime } };
      // Raced, since an upload that hangs may be slow to hear of an abort.
      return await raceAbort(speech.transcribe(request, link.controller.signal), link.controller.signal);
    } finally {
      clearTimeout(timer);
      link.close();
    }
  }

  return {
    async transcribe(ref, { signal, logger }) {
      if (found === null) return nothing(NOT_CONFIGURED);
      if (ref.bytes > maxBytes) return nothing("the recording is too long to be transcribed");
      try {
        const words = await timed(() => ask(found, ref, signal), {
          onEnd: (outcome, ms) => metrics.observe("transcription_seconds", { outcome }, ms),
          outcomeOf: (end) => (end.ok ? "ok" : signal.aborted ? "aborted" : outcomeOf(end.error)),
        });
        return heard(words);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        const detail = error instanceof ProviderError ? error.options.detail : undefined;
        logger.warn({ err: error, detail, file: ref.path }, "a spoken message was not transcribed");
        return nothing(reasonOf(error));
      }
    },
  };
}

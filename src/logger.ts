/**
 * The log: pino, one JSON line an event, with secrets taken out wherever they hide (fields, URLs, nested causes).
 * It does not decide what is worth logging. Invariant: no token, key or password handed to `createLogger` and no
 * credential inside a URL ever reaches the output.
 */
import pino, { type DestinationStream, type Logger as PinoLogger } from "pino";

export type Logger = PinoLogger;

// These run over a line of JSON: none may reach past a quote or a backslash, or the line would fall apart.
const URL_CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s/@"\\]+@/gi;
const SECRET_PARAMETERS = /([?&](?:token|key|api_key|access_token|secret)=)[^&\s"'\\]+/gi;
const BOT_TOKEN = /\bbot\d+:[A-Za-z0-9_-]{20,}/g;
const BEARER = /\b(Bearer\s+)[A-Za-z0-9._~+/-]+=*/gi;
const API_KEY = /\bsk-[A-Za-z0-9_-]{8,}/g;

/** Takes credentials out of a text: those given, and whatever looks like one. */
export function redactText(text: string, secrets: readonly string[] = []): string {
  let clean = text
    .replace(URL_CREDENTIALS, "$1[redacted]@")
    .replace(SECRET_PARAMETERS, "$1[redacted]")
    .replace(BOT_TOKEN, "bot[redacted]")
    .replace(BEARER, "$1[redacted]")
    .replace(API_KEY, "[redacted]");
  for (const secret of secrets) if (secret.length >= 4) clean = clean.replaceAll(secret, "[redacted]");
  return clean;
}

interface PlainError {
  name: string;
  message: string;
  code?: string;
  stack?: string;
  cause?: PlainError;
}

function plainError(error: unknown, depth = 0): PlainError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const code = "code" in error && typeof error.code === "string" ? { code: error.code } : {};
  const cause = error.cause !== undefined && depth < 4 ? { cause: plainError(error.cause, depth + 1) } : {};
  return {
    name: error.name,
    message: error.message,
    ...code,
    ...(error.stack ? { stack: error.stack } : {}),
    ...cause,
  };
}

/** What a log line may look like and what must never be in it. */
export interface LoggerOptions {
  level: string;
  /** Values that must never be printed: tokens, keys, passwords. */
  secrets: readonly string[];
  /** Where lines go; standard error when left out, so that standard output stays a command's answer. */
  destination?: DestinationStream;
}

/** The process' logger. Every line is redacted as a whole after serialisation, so no field can be forgotten. */
export function createLogger(options: LoggerOptions): Logger {
  const sink = options.destination ?? pino.destination({ dest: 2, sync: true });
  // As they stand inside a line of JSON.
  const secrets = options.secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
  const redacting: DestinationStream = { write: (line) => sink.write(redactText(line, secrets)) };
  return pino(
    {
      level: options.level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: (error: unknown) => plainError(error) },
    },
    redacting,
  );
}

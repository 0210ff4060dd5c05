/**
 * The one catalogue of errors. Every failure a person may see has a stable code, a sentence saying what
 * happened and a sentence saying what to do; `docs/errors.md` lists exactly these codes (a test compares them).
 *
 * It imports nothing of ours, so that every room may import it. Invariant: no message built here may hold a secret;
 * what a platform or a provider said goes into `cause`, which only the redacting logger prints.
 */

/** What to do about each code; shown behind the message wherever a person reads it. */
export const ERROR_ADVICE = {
  BIND_NEEDS_TOKEN: "Set NANOGATE_TOKEN or gateway.token, or bind to 127.0.0.1.",
  BUS_OVERLOADED: "Nothing was stored; send it again in a moment. If it stays, start more workers or raise maxmemory.",
  BUS_UNAVAILABLE: "Nothing was stored; send it again. Check that Redis runs and is reachable.",
  CONFIG_INVALID: "Correct the named fields; `config/default.json` shows every setting with its default.",
  CONFIG_UNREADABLE: "Check that the file exists, is readable and is JSON5.",
  DISCORD_IDENTIFY_LIMIT:
    "Nothing needs to be done; it connects again by itself. If it stays, look for a second program that uses the token.",
  DISCORD_INTENTS:
    "Open the Developer Portal (discord.com/developers/applications), choose the bot, page Bot, switch Message Content Intent on, save, and restart nanogate.",
  DISCORD_PROTOCOL: "Update nanogate; a bot of this size or a gateway of this version is not known to it.",
  DISCORD_SILENT: "It is connected anew by itself. If it stays, check the network and discordstatus.com.",
  DISCORD_TOKEN_INVALID:
    "Open the Developer Portal (discord.com/developers/applications), choose the bot, page Bot, Reset Token, put the new one into DISCORD_BOT_TOKEN, and restart nanogate.",
  DISCORD_UNREACHABLE: "Check the network and channels.discord.apiRoot; it is tried again by itself.",
  LEASE_LOST: "Another worker took the session over and finishes its work; nothing needs to be done.",
  MEDIA_REFUSED:
    "Send a smaller file (media.maxBytes), or send it again; if the disk is full, free space where the home folder lies.",
  PORT_TAKEN: "Stop the other program, or choose another port with --port or gateway.port.",
  PROVIDER_AUTH: "Check the provider's API key.",
  PROVIDER_INCOMPLETE:
    "The answer ended without a finish reason; it is tried again. If it stays, check the proxy between.",
  PROVIDER_INVALID: "The provider refused the request; the log has its reason.",
  PROVIDER_MODEL_UNKNOWN: "Check agent.model; it is named provider/model.",
  PROVIDER_NO_KEY: "Set the provider's API key in the environment or in the config.",
  PROVIDER_QUOTA: "The account has no quota left; check its billing.",
  PROVIDER_RATE_LIMITED: "The provider is busy; it is tried again by itself.",
  PROVIDER_SERVER: "The provider failed; it is tried again by itself.",
  PROVIDER_TIMEOUT: "The provider stayed silent; raise agent.streamIdleTimeoutMs if it is only slow.",
  PROVIDER_UNREACHABLE: "Check the network and the provider's baseUrl.",
  REDIS_MISSING: "Install redis-server or valkey-server (7.0 or newer), or set REDIS_URL.",
  REDIS_TOO_OLD: "nanogate needs Redis or Valkey 7.0 or newer.",
  REDIS_UNREACHABLE: "Check REDIS_URL and that the server runs; nanogate waits for it and goes on by itself.",
  SESSION_UNREADABLE: "Check the permissions and the disk of the workspace's sessions folder.",
  SESSION_UNWRITABLE: "Check free space and permissions of the workspace; the message is kept and tried again.",
  TELEGRAM_CONFLICT:
    "Stop the other program that uses this bot's token, or give this gateway a bot of its own; it is tried again by itself.",
  TELEGRAM_TOKEN_INVALID:
    "Set TELEGRAM_BOT_TOKEN or channels.telegram.token to the token that BotFather shows, check channels.telegram.apiRoot, and restart.",
  TELEGRAM_UNREACHABLE: "Check the network and channels.telegram.apiRoot; it is tried again by itself.",
  TELEGRAM_WEBHOOK_FAILING:
    "Check that channels.telegram.webhook.url reaches this gateway from outside, over https; it is tried again by itself.",
  TURN_FAILED: "The message was given up after three tries; the log has the reason under its turn id.",
  USAGE: "See `nanogate --help`.",
  WORKSPACE_UNUSABLE:
    "Check that the workspace folder exists, is writable, and lies on a file system workers may share.",
} as const;

/** Stable, documented name of a failure. Never reused for something else. */
export type ErrorCode = keyof typeof ERROR_ADVICE;

/** An error of ours: `code` for programs, `message` for people, `cause` for the log. */
export class NanogateError extends Error {
  override readonly name = "NanogateError";
  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }

  /** What to do about it, in one sentence. */
  get advice(): string {
    return ERROR_ADVICE[this.code];
  }
}

/** True when `error` is ours and has this code. */
export function hasCode(error: unknown, code: ErrorCode): error is NanogateError {
  return error instanceof NanogateError && error.code === code;
}

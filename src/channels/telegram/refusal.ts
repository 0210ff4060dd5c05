/**
 * A failed call to Telegram → what it means for the delivery. It makes no call. Invariant: no token gets through, neither
 * in words nor in causes, and "not delivered" is said only where Telegram said so or nothing had been written to it.
 */
import { GrammyError, HttpError } from "grammy";
import { DeliveryError } from "../channel.js";
import { retryAfterMs, safeError } from "./api-error.js";
import {
  type Change,
  inChat,
  otherFile,
  shorter,
  unsent,
  visible,
  withoutButtons,
  withoutEntities,
  withoutReply,
  withoutThread,
} from "./changes.js";
import type { TelegramPart } from "./part.js";

/** What Telegram objects to, and the change that takes it away. */
const OBJECTIONS: ReadonlyArray<readonly [RegExp, Change]> = [
  [/(?<!request )entit(?:y|ies)|unsupported url protocol|invalid url/i, withoutEntities],
  [/message thread not found|TOPIC_DELETED|TOPIC_ID_INVALID|MESSAGE_THREAD_INVALID|TOPIC_NOT_FOUND/i, withoutThread],
  [/repl(?:y|ied)[ \w]* not found|message to be replied|REPLY_MESSAGE_ID_INVALID|can't be replied/i, withoutReply],
  [/too long|MESSAGE_TOO_LONG|CAPTION_TOO_LONG/i, shorter],
  [/text (?:must be non-empty|is empty)|MESSAGE_EMPTY/i, visible],
  [/BUTTON|reply[ _]markup|keyboard/i, withoutButtons],
];

/** Refusals that nothing can be done about from here, in words for people. */
const FOR_GOOD: ReadonlyArray<readonly [RegExp, string]> = [
  [/blocked by the user|USER_IS_BLOCKED/i, "the person has blocked the bot"],
  [/user is deactivated|INPUT_USER_DEACTIVATED|USER_DEACTIVATED/i, "the person's account no longer exists"],
  [/can't initiate conversation/i, "the person has not yet written to the bot, and must do so first"],
  [/can't send messages to bots/i, "the bot cannot write to another bot there"],
  [/kicked|not a member/i, "the bot is no longer a member of the chat"],
  [
    /chat not found|PEER_ID_INVALID|CHAT_ID_INVALID|user not found/i,
    "the chat does not exist, or the bot never met it",
  ],
  [/chat was deactivated|CHAT_DEACTIVATED/i, "the group was closed"],
  [/TOPIC_CLOSED/i, "the topic is closed"],
  [
    /rights to send (?:a |text )?messages?\b|CHAT_WRITE_FORBIDDEN|CHAT_SEND_PLAIN_FORBIDDEN|CHAT_RESTRICTED/i,
    "the bot may not write in that chat; an administrator must allow it",
  ],
  [/upgraded to a supergroup/i, "the group became a supergroup, its old messages are out of reach"],
  [/message to edit not found|MESSAGE_ID_INVALID|can't be edited|to edit/i, "the message can no longer be changed"],
];

/** How long before Telegram is tried again when it was not reached: nothing was refused, so it is no failure of the part. */
const UNREACHED_MS = 5_000;
/** Failures of a connection before anything was written to it. */
const UNREACHED = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EAI_FAIL",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);
const UNREACHED_WORDS = /\b(?:connect|getaddrinfo) E[A-Z_]+|before secure TLS connection was established/;
/** Failures of the disk a file was read from. */
const UNREADABLE = new Set(["ENOENT", "EACCES", "EPERM", "EISDIR", "EIO", "ENOTDIR"]);

export type Attempt = "send" | "edit";

/** What a failed call means for its part. An edit replaces no files: only words change. */
export function refusalOf(error: unknown, part: TelegramPart, attempt: Attempt): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (error instanceof GrammyError) return answered(error, part, attempt);
  const cause = safeError(error);
  const inner = error instanceof HttpError ? error.error : error;
  const code = codeOf(inner);
  const into = UNREADABLE.has(code) ? unsent(part) : null;
  if (into !== null) return new DeliveryError({ kind: "change", into }, "a file could not be read", { cause });
  if (UNREACHED.has(code) || (inner instanceof Error && UNREACHED_WORDS.test(inner.message))) {
    const failure = { kind: "transient", retryAfterMs: UNREACHED_MS } as const;
    return new DeliveryError(failure, "Telegram could not be reached", { cause });
  }
  return new DeliveryError({ kind: "unknown" }, "the connection ended before Telegram answered", { cause });
}

/** Telegram itself said no. */
function answered(error: GrammyError, part: TelegramPart, attempt: Attempt): DeliveryError {
  const { error_code: code, description, parameters } = error;
  const cause = safeError(error);
  const transient = (message: string) =>
    new DeliveryError({ kind: "transient", retryAfterMs: retryAfterMs(error) }, message, { cause });
  if (code === 429) return transient("Telegram asks to wait");
  if (code === 504) return new DeliveryError({ kind: "unknown" }, "Telegram did not answer in time", { cause });
  if (code >= 500) return transient("Telegram has trouble of its own");
  if (code === 401 || code === 404) return transient("Telegram does not know the bot's token");
  const moved = parameters.migrate_to_chat_id;
  const isMoved = moved !== undefined && attempt === "send";
  const into = isMoved ? inChat(moved)(part) : changed(description, part);
  if (into !== null) return new DeliveryError({ kind: "change", into }, cause.message, { cause });
  const why = FOR_GOOD.find(([pattern]) => pattern.test(description))?.[1];
  const other = why === undefined && attempt === "send" && code !== 403 ? otherFile(part) : null;
  if (other !== null) return new DeliveryError({ kind: "change", into: other }, cause.message, { cause });
  return new DeliveryError({ kind: "permanent" }, why ?? `Telegram refused it (${cause.message})`, { cause });
}

function changed(description: string, part: TelegramPart): TelegramPart[] | null {
  for (const [pattern, change] of OBJECTIONS) {
    const into = pattern.test(description) ? change(part) : null;
    if (into !== null) return into;
  }
  return null;
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

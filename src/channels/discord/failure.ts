/**
 * What Discord's refusals mean for a delivery, in words. Pure. Invariant: what may have been delivered is only called
 * transient while Discord still knows the nonce, and what is refused for its content is never repeated unchanged.
 */
import type { OutboundMessage } from "../../bus/messages.js";
import { DeliveryError } from "../channel.js";
import { type DiscordPart, plainer, withoutFiles } from "./parts.js";
import { RestError } from "./rest.js";

/** For how long after a first try a repeated message is surely taken for the same one, ms. Discord says "a few minutes". */
export const NONCE_MS = 60_000;

/** What was tried. */
export interface Attempt {
  message: OutboundMessage;
  part: DiscordPart;
  /** True when repeating it can show nothing twice. */
  isRepeatable: boolean;
}

/** Codes that no other form of the message can help, with what a person has to know. */
const FINAL: ReadonlyMap<number, string> = new Map([
  [10003, "the channel is gone, or the bot cannot see it any more"],
  [10008, "the message is gone"],
  [50001, "the bot may not see this channel: give it the permission View Channel"],
  [50007, "this person takes no direct messages from the bot: their privacy settings, or they blocked it"],
  [50008, "nothing can be written in this kind of channel"],
  [50013, "the bot lacks a permission here: Send Messages, Send Messages in Threads or Attach Files"],
  [50083, "the thread is archived and locked: a moderator has to open it"],
  [160005, "the thread is locked: a moderator has to open it"],
]);

const UNKNOWN_CHANNEL = 10003;
const TOO_LARGE = 40005;
const FILES_REFUSED = [TOO_LARGE, 413];
const BAD_FORM = [50006, 50035];

/** The manager's view of an error of a call. Always a `DeliveryError`. */
export function deliveryErrorOf(error: unknown, attempt: Attempt): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (!(error instanceof RestError)) return new DeliveryError({ kind: "unknown" }, "the send failed in an unknown way");
  const { failure, message } = error;
  switch (failure.kind) {
    case "limited":
      return new DeliveryError({ kind: "transient", retryAfterMs: failure.waitMs }, message);
    case "unreachable":
      return new DeliveryError({ kind: "transient", retryAfterMs: null }, message);
    case "unclear":
      return attempt.isRepeatable
        ? new DeliveryError({ kind: "transient", retryAfterMs: null }, message)
        : new DeliveryError({ kind: "unknown" }, message);
    case "refused":
      return refused(failure, message, attempt);
    default:
      return failure satisfies never;
  }
}

function refused(
  { status, code }: { status: number; code: number },
  words: string,
  { message, part }: Attempt,
): DeliveryError {
  // The token was reset: the channel says so itself, and what waits is sent when there is a new one.
  if (status === 401 && code === 0) return new DeliveryError({ kind: "transient", retryAfterMs: null }, words);
  const change = (into: readonly DiscordPart[]) => new DeliveryError({ kind: "change", into }, words);
  if (code === UNKNOWN_CHANNEL && message.threadId !== undefined && part.place === "here")
    return change([{ ...part, place: "parent", isReply: false }]);
  const isAboutFiles = FILES_REFUSED.includes(code) || FILES_REFUSED.includes(status);
  if (isAboutFiles && part.files.length > 0) return change(withoutFiles(part, "too large for Discord"));
  if (BAD_FORM.includes(code) && !part.isPlain) return change(plainer(part));
  const meaning = FINAL.get(code);
  return new DeliveryError({ kind: "permanent" }, meaning === undefined ? words : `${meaning} (${code})`);
}

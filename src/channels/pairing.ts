/**
 * What a stranger in a direct chat is told: the pairing code and what to do with it, or to come back later. It lets nobody
 * in. Invariant: whatever is repeated is told once, since a message's id follows from whom it tells and since when.
 */
import { createHash } from "node:crypto";
import type { Outgoing, Route } from "../bus/messages.js";
import type { Knock } from "./channel.js";
import type { PairingAnswer, PairingStore } from "./ports.js";

export interface PairingDeps {
  pairings: PairingStore;
  /** Sends each id once; durable when it returns. */
  reply: (outgoing: readonly Outgoing[]) => Promise<void>;
}

/** Asks for the pairing of a stranger and tells them how it goes on. Throws `BUS_UNAVAILABLE` or `BUS_OVERLOADED`. */
export async function askForPairing({ pairings, reply }: PairingDeps, knock: Knock): Promise<PairingAnswer> {
  const { route, senderId } = knock;
  const { channel } = route;
  const answer = await pairings.request({ channel, senderId, welcome: (code) => welcome(route, code) });
  const telling = tellingOf(answer);
  if (telling !== null) await reply([noticeOf(route, idOf([channel, senderId, ...telling.of]), telling.text)]);
  return answer;
}

/** The text, and what sets this telling apart from others; null when nothing is to be said. */
function tellingOf(answer: PairingAnswer): { text: string; of: readonly string[] } | null {
  switch (answer.kind) {
    case "code":
      return {
        text: codeText(answer.request.code, answer.request.leftMs),
        of: [answer.request.code, String(answer.tellingMs)],
      };
    case "full":
      return { text: FULL_TEXT, of: ["full", String(answer.tellingMs)] };
    case "denied":
    case "paired":
      return null;
    default:
      return answer satisfies never;
  }
}

const FULL_TEXT = "I do not know you yet, and too many people are waiting to be let in. Please try again later.";

function codeText(code: string, leftMs: number): string {
  return [
    `I do not know you yet. Your pairing code is \`${code}\`, ${leftText(leftMs)}.`,
    `Ask an owner of this bot to approve it: \`nanogate pairing approve ${code}\` where it runs, or \`/pairing approve ${code}\` in a chat with me.`,
  ].join("\n");
}

/** As it is now: the same code is told again. */
function leftText(leftMs: number): string {
  const minutes = Math.round(leftMs / 60_000);
  if (minutes === 0) return "valid for less than a minute";
  return `valid for ${minutes} more ${minutes === 1 ? "minute" : "minutes"}`;
}

/** Sent by the approval, perhaps long after the message that asked: it answers none. */
function welcome(route: Route, code: string): Outgoing {
  const { messageId: _, ...place } = route;
  const text = "You are paired now: write to me whenever you like. /help lists the commands.";
  return noticeOf(place, idOf([route.channel, code, "welcome"]), text);
}

function noticeOf(route: Route, id: string, content: string): Outgoing {
  const { channel, chatId, threadId, messageId } = route;
  const place = {
    ...(threadId === undefined ? {} : { threadId }),
    ...(messageId === undefined ? {} : { replyTo: messageId }),
  };
  const rest = { media: [], buttons: [], metadata: {}, turnId: id, seq: 0, event: { type: "notice" as const } };
  return { route, message: { id, channel, chatId, ...place, content, ...rest } };
}

/** Holds no code: ids are logged. */
function idOf(parts: readonly string[]): string {
  return `pairing.${createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 22)}`;
}

/**
 * A delivery that was not delivered, or nobody knows, as a person reads it. Pure. Invariant: it says what is wrong by part,
 * and holds no secret that hides in a platform's words.
 */
import type { DeadLetter, Receipt } from "../bus/delivery-ports.js";
import type { OutboundMessage } from "../bus/messages.js";
import { redactText } from "../logger.js";

/** A part that is given up. */
export interface Refused {
  reason: string;
  attempts: number;
}

/** Null for a message that was delivered whole. */
export function deadLetterOf(
  message: OutboundMessage,
  parts: number,
  { receipts, refused }: { receipts: ReadonlyMap<string, Receipt>; refused: Refused | null },
): DeadLetter | null {
  const reasons = refused === null ? [] : [refused.reason];
  for (const [name, receipt] of receipts) {
    if (receipt.state !== "unknown") continue;
    reasons.push(`part ${countedFromOne(name)} of ${parts}: outcome unknown (${receipt.reason})`);
  }
  if (reasons.length === 0) return null;
  return {
    id: message.id,
    channel: message.channel,
    chatId: message.chatId,
    text: message.content,
    error: redactText(reasons.join("; ")),
    attempts: refused?.attempts ?? 1,
  };
}

/** `2.0` → `3.1` */
function countedFromOne(name: string): string {
  return name
    .split(".")
    .map((at) => Number(at) + 1)
    .join(".");
}

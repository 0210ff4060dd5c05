/**
 * What the tests of the outgoing half share: messages, files, a token of the right shape made up at run time.
 */
import { randomBytes } from "node:crypto";
import type { MediaRef, OutboundMessage } from "../../../src/bus/messages.js";
import type { TelegramOutletConfig, TelegramPart } from "../../../src/channels/telegram/part.js";

export const CONFIG: TelegramOutletConfig = {
  replyQuotes: false,
  streaming: true,
  drafts: false,
  reaction: "👀",
  editIntervalMs: 1000,
};

export function madeUpToken(): string {
  return `${1_000_000 + randomBytes(3).readUIntBE(0, 3)}:${randomBytes(26).toString("hex").slice(0, 35)}`;
}

export function outbound(content: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
  return {
    id: "t1.1",
    channel: "telegram",
    chatId: "7",
    content,
    media: [],
    buttons: [],
    event: { type: "final", streamId: null },
    turnId: "t1",
    seq: 1,
    metadata: {},
    ...more,
  };
}

export function fileRef(name: string, mime: string, bytes = 100): MediaRef {
  return { path: `2026/${name}`, mime, name, bytes };
}

/** A part in few words. */
export function wordsIn(part: TelegramPart): string {
  switch (part.kind) {
    case "text":
      return part.text.text;
    case "file":
      return `<${part.as} ${part.file.name}>${part.caption?.text ?? ""}`;
    case "album":
      return `<album ${part.files.map(({ as, file }) => `${as} ${file.name}`).join(", ")}>${part.caption?.text ?? ""}`;
    default:
      return part satisfies never;
  }
}

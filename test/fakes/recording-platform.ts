/** A platform in memory with people, places and files: what the channel contract needs around the recording channel. */
import type { InboundMessage, MediaRef, Route } from "../../src/bus/messages.js";
import { DeliveryError } from "../../src/channels/channel.js";
import type { ChannelHarness, Place, ShownMessage } from "../contract/channel.js";
import { noShelf } from "./channel-context.js";
import { type RecordedRequest, RecordingChannel } from "./recording-channel.js";

const CHATS: Readonly<Record<Place, { chatId: string; threadId?: string }>> = {
  direct: { chatId: "d1" },
  group: { chatId: "g1" },
  thread: { chatId: "g1", threadId: "7" },
};
const MAX_TEXT = 200;

/** Messages as they stand, on top of the recording channel's own list. */
class RecordingPlatform extends RecordingChannel {
  readonly messages = new Map<string, ShownMessage & { chat: string }>();
  readonly refusals = new Map<string, DeliveryError[]>();

  override parts({ content }: { content: string }) {
    const pieces: Array<{ content: string }> = [];
    for (const word of content.split(" ")) {
      const last = pieces.at(-1);
      if (last === undefined || last.content.length + 1 + word.length > MAX_TEXT) pieces.push({ content: word });
      else last.content += ` ${word}`;
    }
    return pieces;
  }

  override async send(request: RecordedRequest): Promise<{ platformId: string }> {
    const { message, part } = request;
    const chat = nameOf(message);
    const refusal = this.refusals.get(chat)?.shift();
    if (refusal !== undefined) throw refusal;
    const sent = await super.send(request);
    const files = message.media.map(({ name, bytes }) => ({ name, bytes }));
    const buttons = message.buttons.map((row) => row.map(({ label }) => label));
    this.messages.set(sent.platformId, { id: sent.platformId, text: part.content, files, buttons, chat });
    return sent;
  }
}

function nameOf({ chatId, threadId }: { chatId: string; threadId?: string }): string {
  return `${chatId}/${threadId ?? ""}`;
}

/** Opens a harness of the contract. */
export async function openRecordingHarness(): Promise<ChannelHarness> {
  const channel = new RecordingPlatform();
  channel.showing("edits", 20);
  channel.onEdit = async (platformId, { part }) => {
    const before = channel.messages.get(platformId);
    if (before !== undefined) channel.messages.set(platformId, { ...before, text: part.content });
  };
  let next = 1;
  const hear = async (place: Place, given: Pick<InboundMessage, "content" | "kind" | "media">) => {
    const messageId = String(next++);
    const where = { account: channel.account, channel: channel.name, ...CHATS[place] };
    const route: Route = { via: "outbox", ...where, messageId, isStreaming: true };
    const timestamp = new Date(0).toISOString();
    const who = { senderId: "ann", role: "user", isOwner: false, metadata: {} } as const;
    await channel.context?.accept({ id: messageId, ...who, timestamp, ...where, route, ...given });
  };
  const shown = (place: Place) => [...channel.messages.values()].filter(({ chat }) => chat === nameOf(CHATS[place]));
  return {
    channel,
    media: noShelf(),
    places: ["direct", "group", "thread"],
    maxText: MAX_TEXT,
    say: (place, content, file) =>
      hear(place, { content, kind: "message", media: file ? [refOf(file.name, file.bytes)] : [] }),
    shown,
    typings: (place) => {
      const { chatId, threadId } = CHATS[place];
      const name = threadId === undefined ? chatId : `${chatId}/${threadId}`;
      return channel.signs.filter((sign) => sign === `begin ${name}` || sign === `again ${name}`).length;
    },
    press: (place, label) => {
      const value = label === "No" ? "deny" : "approve";
      return hear(place, { content: value, kind: "callback", media: [] });
    },
    refuseNext: (place, how) => {
      const failure = how.kind === "permanent" ? how : ({ kind: "transient", retryAfterMs: how.waitMs } as const);
      channel.refusals.set(nameOf(CHATS[place]), [new DeliveryError(failure, "the platform says no")]);
    },
    file: async (name, bytes) => refOf(name, bytes),
    violations: () => [],
    close: async () => {},
  };
}

function refOf(name: string, bytes: Uint8Array): MediaRef {
  return { path: `2020-01/${name}`, mime: "image/png", name, bytes: bytes.length };
}

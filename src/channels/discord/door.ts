/**
 * One message on its way in: read it, find its place, ask whether its sender may speak, fetch its files, hand it in, and only
 * then note that it was read. Order and repeating are the intake's. Invariant: nothing is fetched, shown or noted for somebody
 * who was not admitted, but that the message was looked at.
 */
import type { InboundMessage } from "../../bus/messages.js";
import type { ChannelContext } from "../channel.js";
import type { Clock } from "../clock.js";
import { keepFiles } from "./files.js";
import { type Heard, hear, type Self } from "./hear.js";
import type { Work } from "./intake.js";
import type { Marks } from "./marks.js";
import type { Places } from "./places.js";
import type { SpooledEvent } from "./spool.js";
import { messageShape, type WireMessage } from "./wire.js";

export interface DoorDeps {
  context: ChannelContext;
  places: Places;
  marks: Marks;
  self: () => Self;
  clock: Clock;
  signal: AbortSignal;
  /** Ids of messages that were handed in or judged: what is told twice is not looked at twice. */
  recent: Recent;
  /** Called when a message came without the content that it must have. */
  onBlank: () => void;
}

/** A few thousand ids, the oldest forgotten first. */
export class Recent {
  readonly #ids = new Set<string>();

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  add(id: string): void {
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (this.#ids.size > 5000 && oldest !== undefined) this.#ids.delete(oldest);
  }
}

/** What is to be done with a message, as far as it is known already: a second try need not fetch files again. */
interface Progress {
  inbound: InboundMessage | null;
}

/** The work of a MESSAGE_CREATE or MESSAGE_UPDATE. */
export function messageWork(deps: DoorDeps, { t, channelId, d }: SpooledEvent): Work {
  const progress: Progress = { inbound: null };
  return async () => {
    // Updates that are no edits of a person may lack almost everything.
    if (t === "MESSAGE_UPDATE" && !isEdit(d)) return;
    const message = messageShape.parse(d);
    const isEdited = t === "MESSAGE_UPDATE";
    if (!isEdited && deps.recent.has(message.id)) return;
    progress.inbound ??= await inboundOf(deps, {
      ...message,
      edited_timestamp: isEdited ? message.edited_timestamp : null,
    });
    if (progress.inbound !== null) await deps.context.accept(progress.inbound);
    if (isEdited) return;
    deps.recent.add(message.id);
    if (progress.inbound === null) deps.marks.note(channelId, message.id);
    else await deps.marks.keep(channelId, message.id);
  };
}

function isEdit(d: unknown): boolean {
  return typeof d === "object" && d !== null && "edited_timestamp" in d && typeof d.edited_timestamp === "string";
}

/** Null: nobody spoke to the bot, or nobody who may. */
async function inboundOf(deps: DoorDeps, message: WireMessage): Promise<InboundMessage | null> {
  const { places, self, context } = deps;
  if (message.author.id === self().id) return null;
  const place = await places.of(message);
  const heard = place === null ? null : hear(message, place, self());
  if (place === null || heard === null) return null;
  const admission = await context.admit(heard.knock);
  if (heard.isBlank && place.kind !== "direct") deps.onBlank();
  if (admission.kind === "refused") return null;
  if (place.kind === "direct") await deps.marks.noteDirect(message.channel_id);
  const { media, notes } = await keepFiles({ ...deps, media: context.media, logger: context.logger }, heard.files);
  const content = [heard.spoken.content, ...notes].filter((piece) => piece !== "").join("\n");
  const replyTo = await quoteOf(deps, heard);
  return {
    ...heard.spoken,
    content,
    media,
    isOwner: admission.isOwner,
    ...(replyTo === undefined ? {} : { replyTo }),
  };
}

async function quoteOf(deps: DoorDeps, { quote }: Heard): Promise<InboundMessage["replyTo"]> {
  if (quote === null) return undefined;
  const { context } = deps;
  const { media, notes } = await keepFiles({ ...deps, media: context.media, logger: context.logger }, quote.files);
  return { text: [quote.text, ...notes].join("\n"), media };
}

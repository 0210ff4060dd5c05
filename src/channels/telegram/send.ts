/**
 * One part → one call to Telegram. Texts go with entities, never with markup to parse. It neither waits nor repeats.
 * Invariant: a call that fails throws a `DeliveryError` without a token in it, and what is returned names every message
 * that was made.
 */
import { type Api, InputFile } from "grammy";
import type { InputMediaAudio, InputMediaDocument, InputMediaPhoto, InputMediaVideo } from "grammy/types";
import type { MediaRef } from "../../bus/messages.js";
import { DeliveryError } from "../channel.js";
import type { MediaShelf } from "../ports.js";
import type { Formatted } from "../text/formatted.js";
import { safeError } from "./api-error.js";
import { unsent } from "./changes.js";
import { type AlbumPart, type FilePart, idOf, type TelegramPart, type TextPart } from "./part.js";
import { refusalOf } from "./refusal.js";
import { entitiesOf, keyboardOf } from "./render.js";
import { sdkSignal } from "./sdk-signal.js";

export interface SendDeps {
  /** Asked for each call: connections are renewed. */
  readonly api: Api;
  pathOf: MediaShelf["pathOf"];
}

/** Sends a part; the ids of its messages, joined by commas. Throws `DeliveryError`. */
export async function sendPart(deps: SendDeps, part: TelegramPart, signal: AbortSignal): Promise<string> {
  if (signal.aborted) throw new DeliveryError({ kind: "transient", retryAfterMs: null }, "sending was ended");
  const files = await openFiles(deps, part);
  try {
    switch (part.kind) {
      case "text":
        return String((await sendText(deps.api, part, signal)).message_id);
      case "file":
        return String((await sendFile(deps.api, { part, file: files[0] ?? missing() }, signal)).message_id);
      case "album": {
        const sent = await sendAlbum(deps.api, { part, files }, signal);
        return sent.map(({ message_id }) => message_id).join(",");
      }
      default:
        return part satisfies never;
    }
  } catch (error) {
    throw refusalOf(error, part, "send");
  }
}

/** The ids in what `sendPart` returned. */
export function messageIdsOf(platformId: string): number[] {
  return platformId.split(",").flatMap((id) => idOf(id) ?? []);
}

function sendText(api: Api, part: TextPart, signal: AbortSignal) {
  const { text, entities } = part.text;
  return api.raw.sendMessage(
    { ...placeOf(part), ...markupOf(part), text, entities: entitiesOf(entities) },
    sdkSignal(signal),
  );
}

function sendFile(api: Api, { part, file }: { part: FilePart; file: InputFile }, signal: AbortSignal) {
  const common = { ...placeOf(part), ...markupOf(part), ...captionOf(part.caption) };
  switch (part.as) {
    case "photo":
      return api.raw.sendPhoto({ ...common, photo: file }, sdkSignal(signal));
    case "video":
      return api.raw.sendVideo({ ...common, video: file, supports_streaming: true }, sdkSignal(signal));
    case "audio":
      return api.raw.sendAudio({ ...common, audio: file }, sdkSignal(signal));
    case "voice":
      return api.raw.sendVoice({ ...common, voice: file }, sdkSignal(signal));
    case "document":
      return api.raw.sendDocument({ ...common, document: file }, sdkSignal(signal));
    default:
      return part.as satisfies never;
  }
}

type AlbumMedia =
  | ReadonlyArray<InputMediaPhoto | InputMediaVideo>
  | readonly InputMediaAudio[]
  | readonly InputMediaDocument[];

function sendAlbum(api: Api, { part, files }: { part: AlbumPart; files: InputFile[] }, signal: AbortSignal) {
  const media = part.files.map(({ as }, at) => ({
    type: as,
    media: files[at] ?? missing(),
    ...(at === 0 ? captionOf(part.caption) : {}),
  }));
  // Groups are made so that the kinds in one go together.
  return api.raw.sendMediaGroup({ ...placeOf(part), media: media as AlbumMedia }, sdkSignal(signal));
}

function placeOf({ chat, thread, replyTo }: TelegramPart) {
  return {
    chat_id: chat,
    ...(thread === undefined ? {} : { message_thread_id: thread }),
    ...(replyTo === undefined ? {} : { reply_parameters: { message_id: replyTo, allow_sending_without_reply: true } }),
  };
}

function markupOf({ buttons }: TextPart | FilePart) {
  return buttons.length === 0 ? {} : { reply_markup: { inline_keyboard: keyboardOf(buttons) } };
}

function captionOf(caption: Formatted | null) {
  return caption === null ? {} : { caption: caption.text, caption_entities: entitiesOf(caption.entities) };
}

async function openFiles({ pathOf }: SendDeps, part: TelegramPart): Promise<InputFile[]> {
  const refs: MediaRef[] =
    part.kind === "text" ? [] : part.kind === "file" ? [part.file] : part.files.map(({ file }) => file);
  try {
    return await Promise.all(refs.map(async (ref) => new InputFile(await pathOf(ref), nameInForm(ref.name))));
  } catch (error) {
    const into = unsent(part) ?? [];
    throw new DeliveryError({ kind: "change", into }, "a file is gone", { cause: safeError(error) });
  }
}

/** The SDK writes it into a header as it is: what would end it or the header there becomes `_`. */
function nameInForm(name: string): string {
  return name.toWellFormed().replace(/[\p{Cc}";\\/]/gu, "_");
}

function missing(): never {
  throw new DeliveryError({ kind: "permanent" }, "a file is missing");
}

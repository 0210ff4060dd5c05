/**
 * The methods that send files, one by one and as albums, and the one that gives files out. Invariant: a file has bytes, a
 * photo is a picture, an album has 2 to 10 files that may stand together.
 */
import { randomInt } from "node:crypto";
import type { Message } from "grammy/types";
import { type Call, destinationOf, type Method } from "./call.js";
import { CAPTION_LIMIT, readCaption, readFormatted, readKeyboard } from "./format.js";
import { listed, markupOf } from "./methods-text.js";
import { Params } from "./params.js";
import { badRequest, Refusal } from "./refusal.js";
import type { StoredFile } from "./world.js";

export type MediaKind = "photo" | "video" | "audio" | "voice" | "document" | "animation" | "video_note";

/** What `getFile` gives out at most. */
export const DOWNLOAD_LIMIT = 20 * 1024 * 1024;
const UPLOAD_LIMIT = 50 * 1024 * 1024;
const PHOTO_LIMIT = 10 * 1024 * 1024;

export const MEDIA_METHODS: Readonly<Record<string, Method>> = {
  sendPhoto: (call) => sendOne(call, "photo"),
  sendVideo: (call) => sendOne(call, "video"),
  sendAudio: (call) => sendOne(call, "audio"),
  sendVoice: (call) => sendOne(call, "voice"),
  sendDocument: (call) => sendOne(call, "document"),
  sendAnimation: (call) => sendOne(call, "animation"),
  sendMediaGroup,

  getFile: ({ params, world }) => {
    const id = params.text("file_id");
    const file = world.files.get(id ?? "");
    if (file === undefined) throw badRequest("wrong file_id or the file is temporarily unavailable");
    if (file.announced > DOWNLOAD_LIMIT) throw badRequest("file is too big");
    return { file_id: file.id, file_unique_id: file.uniqueId, file_size: file.announced, file_path: file.path };
  },
};

function sendOne(call: Call, kind: MediaKind): Message {
  const { place, fields } = destinationOf(call);
  const caption = readCaption(call.params);
  const keyboard = readKeyboard(call.params);
  const { file, name } = fileOf(call, kind, call.params.all[kind]);
  const words = caption === null ? {} : { caption: caption.text, ...listed("caption_entities", caption.entities) };
  place.draft = null;
  return place.post({ ...fields, ...words, ...carried(kind, file, name), ...markupOf(keyboard) }).wire;
}

function sendMediaGroup(call: Call): Message[] {
  const { place, fields } = destinationOf(call);
  const items = call.params.list("media") ?? [];
  if (items.length < 2 || items.length > 10) throw badRequest("media group must include 2-10 items");
  const parts = items.map((item) => {
    const each = new Params(item as Record<string, unknown>, call.params.uploads);
    const kind = each.text("type") as MediaKind;
    const words = readFormatted(each, "caption", "caption_entities");
    if ((words?.text.length ?? 0) > CAPTION_LIMIT) throw badRequest("message caption is too long");
    return { kind, words, ...fileOf(call, kind, each.all.media) };
  });
  const families = new Set(parts.map(({ kind }) => (kind === "photo" || kind === "video" ? "visual" : kind)));
  const [family = ""] = families;
  if (families.size > 1 || !["visual", "audio", "document"].includes(family))
    throw badRequest("message can't be grouped with the others in the album");
  const media_group_id = String(randomInt(10 ** 12));
  place.draft = null;
  return parts.map(({ kind, words, file, name }) => {
    const caption = words === null ? {} : { caption: words.text, ...listed("caption_entities", words.entities) };
    return place.post({ ...fields, ...caption, ...carried(kind, file, name), media_group_id }).wire;
  });
}

function fileOf(call: Call, kind: MediaKind, value: unknown): { file: StoredFile; name: string } {
  const sent = call.params.file(value);
  if (sent === null) throw badRequest(`there is no ${kind} in the request`);
  if ("fileId" in sent) {
    const file = call.world.files.get(sent.fileId);
    if (file === undefined) throw badRequest("wrong remote file identifier specified: Wrong string length");
    return { file, name: file.path.slice(file.path.lastIndexOf("/") + 1) };
  }
  const { bytes, name } = sent.upload;
  if (bytes.length === 0) throw badRequest("file must be non-empty");
  if (bytes.length > UPLOAD_LIMIT) throw new Refusal(413, "Request Entity Too Large");
  if (kind === "photo") checkPhoto(bytes);
  return { file: call.world.keep(bytes, { folder: `${kind}s`, name }), name };
}

function checkPhoto(bytes: Buffer): void {
  const size = bytes.length;
  if (size > PHOTO_LIMIT)
    throw badRequest(`file of size ${size} bytes is too big for a photo; the maximum size is ${PHOTO_LIMIT} bytes`);
  const head = bytes.subarray(0, 12).toString("latin1");
  if (!/^(?:\xff\xd8\xff|\x89PNG|GIF8|RIFF....WEBP|BM)/s.test(head)) throw badRequest("IMAGE_PROCESS_FAILED");
}

/** What a message carries, as Telegram describes it. */
export function carried(kind: MediaKind, file: StoredFile, name: string | null, mime?: string): Partial<Message> {
  const common = { file_id: file.id, file_unique_id: file.uniqueId, file_size: file.announced };
  const typed = { ...common, ...(mime === undefined ? {} : { mime_type: mime }) };
  const named = { ...typed, ...(name === null ? {} : { file_name: name }) };
  switch (kind) {
    case "photo": {
      const small = { ...common, file_id: `${file.id}s`, file_size: Math.min(1000, file.announced) };
      const sizes = [
        { ...small, width: 90, height: 67 },
        { ...common, width: 1280, height: 960 },
      ];
      return { photo: sizes };
    }
    case "video":
      return { video: { ...named, width: 640, height: 360, duration: 3 } };
    case "animation":
      return { animation: { ...named, width: 320, height: 240, duration: 2 }, document: named };
    case "audio":
      return { audio: { ...named, duration: 5 } };
    case "voice":
      return { voice: { ...typed, duration: 4 } };
    case "video_note":
      return { video_note: { ...common, length: 240, duration: 3 } };
    case "document":
      return { document: named };
    default:
      return kind satisfies never;
  }
}

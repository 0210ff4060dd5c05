/**
 * Files on their way out: as what Telegram shows each, and which go together. It opens none. Invariant: every file is in
 * exactly one group or refused with a reason; an album has 2 to 10 files of kinds that Telegram lets stand together.
 */
import type { MediaRef } from "../../bus/messages.js";
import { ALBUM_LIMIT, type FileKind } from "./part.js";

/** Bytes that a bot may upload. */
const LARGEST_FILE = 50_000_000;
/** Bytes of a picture that is shown as one. */
const LARGEST_PHOTO = 10_000_000;

const KINDS: Readonly<Record<string, FileKind>> = {
  "image/jpeg": "photo",
  "image/png": "photo",
  "image/webp": "photo",
  "video/mp4": "video",
  "audio/mpeg": "audio",
  "audio/mp4": "audio",
  "audio/x-m4a": "audio",
  "audio/ogg": "voice",
  "audio/opus": "voice",
};

export interface FileGroups {
  /** Each sent by one call, in order of their first files. */
  groups: Array<Array<{ as: FileKind; file: MediaRef }>>;
  refused: Array<{ file: MediaRef; why: string }>;
}

/** Sorts files into calls. */
export function groupFiles(files: readonly MediaRef[]): FileGroups {
  const refused: FileGroups["refused"] = [];
  const byFamily = new Map<string, FileGroups["groups"][number]>();
  for (const [at, file] of files.entries()) {
    const why = file.bytes === 0 ? "the file is empty" : file.bytes > LARGEST_FILE ? "larger than 50 MB" : null;
    if (why !== null) {
      refused.push({ file, why });
      continue;
    }
    const as = kindOf(file);
    const family = as === "photo" || as === "video" ? "visual" : as === "voice" ? `voice ${at}` : as;
    byFamily.set(family, [...(byFamily.get(family) ?? []), { as, file }]);
  }
  const groups: FileGroups["groups"] = [];
  for (const family of byFamily.values()) {
    for (let at = 0; at < family.length; at += ALBUM_LIMIT) groups.push(family.slice(at, at + ALBUM_LIMIT));
  }
  return { groups, refused };
}

function kindOf({ mime, bytes }: MediaRef): FileKind {
  const [type = ""] = mime.toLowerCase().split(";");
  const kind = Object.hasOwn(KINDS, type.trim()) ? KINDS[type.trim()] : undefined;
  return kind === undefined || (kind === "photo" && bytes > LARGEST_PHOTO) ? "document" : kind;
}

/**
 * Which files a message carries, and how a file that could not be had is said in words. Pure; it fetches nothing.
 * Invariant: what is both an animation and a document is one file.
 */
import type { Cargo, WireFile } from "./wire.js";

/** A file that may be fetched. */
export interface FileRequest {
  /** What people call it. */
  what: "photo" | "voice message" | "audio" | "video" | "video note" | "animation" | "document";
  fileId: string;
  name: string | null;
  mime: string | null;
  /** As announced. */
  bytes: number | null;
  isVoice: boolean;
}

/** The files of a message, in no particular order of importance. */
export function filesOf(cargo: Cargo): FileRequest[] {
  const { photo = [], voice, audio, video, video_note: note, animation, document } = cargo;
  const largest = photo.reduce<WireFile | undefined>(
    (best, size) => (areaOf(size) >= areaOf(best) ? size : best),
    undefined,
  );
  return [
    ...request("photo", largest, "image/jpeg"),
    ...request("voice message", voice, "audio/ogg"),
    ...request("audio", audio),
    ...request("video", video, "video/mp4"),
    ...request("video note", note, "video/mp4"),
    ...request("animation", animation, "video/mp4"),
    ...(animation === undefined ? request("document", document) : []),
  ];
}

function areaOf(size: WireFile | undefined): number {
  return (size?.width ?? 0) * (size?.height ?? 0);
}

function request(
  what: FileRequest["what"],
  file: WireFile | undefined,
  usualMime: string | null = null,
): FileRequest[] {
  if (file === undefined) return [];
  const { file_id: fileId, file_name: name = null, mime_type: mime = usualMime, file_size: bytes = null } = file;
  return [{ what, fileId, name, mime, bytes, isVoice: what === "voice message" }];
}

/** Stands in the text for a file that could not be had. */
export function missingFile({ what, name }: Pick<FileRequest, "what" | "name">, why: string): string {
  const called = name === null ? "" : ` ${JSON.stringify(name.toWellFormed().slice(0, 100))}`;
  return `[${what}${called}: not received: ${why.replace(/\.$/, "")}]`;
}

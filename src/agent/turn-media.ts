/**
 * What a turn does with files beside words: spoken messages become text before they are stored. It appends no row. Invariant:
 * whatever becomes of a recording, there is a line for it; nothing but an abort of the turn is thrown.
 */
import type { MailboxMessage, MediaRef } from "../bus/messages.js";
import type { Logger } from "../logger.js";
import type { Heard, Transcriber } from "./transcription.js";
import type { Vision } from "./vision.js";

export interface TurnMedia {
  readonly transcriber: Transcriber;
  readonly vision: Vision;
}

/** What recordings say, by their paths. */
export type HeardVoices = ReadonlyMap<string, Heard>;

const NONE: HeardVoices = new Map();

function voicesIn(messages: readonly MailboxMessage[]): MediaRef[] {
  const media = messages.flatMap(({ message }) => [...message.media, ...(message.replyTo?.media ?? [])]);
  return media.filter((file) => file.isVoice === true);
}

/** Listens to every spoken message; asks nobody where there is none. */
export async function hear(
  messages: readonly MailboxMessage[],
  { transcriber }: TurnMedia,
  call: { signal: AbortSignal; logger: Logger },
): Promise<HeardVoices> {
  const voices = voicesIn(messages);
  if (voices.length === 0) return NONE;
  const heard = await Promise.all(
    voices.map(async (voice) => [voice.path, await transcriber.transcribe(voice, call)] as const),
  );
  return new Map(heard);
}

/** What a turn is given for files where a test is not about them: nobody listens, nothing is shown. */
import type { TurnMedia } from "../../src/agent/turn-media.js";
import { createVision } from "../../src/agent/vision.js";

export function noMedia(): TurnMedia {
  return {
    transcriber: { transcribe: async () => ({ kind: "nothing", why: "no transcription is configured" }) },
    vision: createVision({ images: { read: async () => ({ kind: "refused", why: "there are no eyes" }) } }),
  };
}

/**
 * The part of the schema that is about files and spoken messages. It reads nothing. Invariant: every bound is one of bytes,
 * pixels or time, so that no file can cost more than it says.
 */
import { z } from "zod";
import { durationMs, text, textLike, wholeNumber } from "./fields.js";

const HOUR_MS = 3_600_000;
const AN_OBJECT = { error: "an object" };

/** Files that people send. */
export const media = z.object(
  {
    maxBytes: wholeNumber(1, 2_000_000_000).default(20_000_000).describe("Bytes of one file that people may send."),
    keepDays: wholeNumber(1, 36_500).default(30).describe("Days that files are kept."),
    imageMaxPixels: wholeNumber(64, 16_384)
      .default(1568)
      .describe("The longer side of an image as a model gets it; larger ones are scaled down."),
  },
  AN_OBJECT,
);

/** Spoken messages. */
export const transcription = z.object(
  {
    model: textLike(/^[^/\s]+\/\S+$/, "provider/model, or null")
      .nullable()
      .default(null)
      .describe("The model that turns spoken messages into text, as provider/model. null: none."),
    language: text("a language, or null")
      .nullable()
      .default(null)
      .describe("The language spoken, such as en. null: found out."),
    maxBytes: wholeNumber(1, 2_000_000_000).default(25_000_000).describe("Bytes of a recording that is transcribed."),
    timeoutMs: durationMs(1, HOUR_MS).default(60_000).describe("The longest that a transcription may take."),
  },
  AN_OBJECT,
);

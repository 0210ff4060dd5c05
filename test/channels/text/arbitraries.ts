/**
 * Texts for the properties of the text room: like what models write, and like what nobody should. No test of its own.
 */
import fc from "fast-check";

/** Pieces that have broken splitters and renderers. */
const PIECES = [
  "\n",
  "\n\n",
  " ",
  "```",
  "\n```\n",
  "\n```js\n",
  "\n````md\n",
  "\n~~~\n",
  "\n~~~~ text\n",
  "> ",
  "> ```js\n> code\n",
  "- ",
  "1. ",
  "- ```\n",
  "    ",
  "**",
  "*",
  "_",
  "`",
  "~~",
  "# ",
  "|",
  "| a | b |\n|---|:-:|\n| 漢字 | 👍 |\n",
  "[",
  "](",
  ")",
  "[a](https://example.org)",
  "<b>",
  "&amp;",
  "\\",
  "!",
  "👨‍👩‍👧‍👦",
  "🇩🇪🇫🇷",
  "é",
  "क्षि",
  "שלום",
  "\u202e",
  "\u200b",
  "\ud83d",
  "\udc4d",
  "\r\n",
  "\t",
  "\0",
  "Words of a sentence. ",
  "code();\n",
  "x".repeat(120),
  "`".repeat(50),
  "[x]: https://example.org\n",
];

/** Any text, most of it made of pieces that mean something in markdown. */
export function markdownLike(): fc.Arbitrary<string> {
  const piece = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...PIECES) },
    { weight: 2, arbitrary: fc.lorem({ maxCount: 8 }) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 20 }) },
    { weight: 1, arbitrary: fc.string({ unit: "grapheme", maxLength: 20 }) },
  );
  return fc.array(piece, { maxLength: 80 }).map((pieces) => pieces.join(""));
}

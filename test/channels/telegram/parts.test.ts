/**
 * A message and the calls that show it: order, limits, captions, albums, buttons, threads; nothing of any text is lost.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Button, MediaRef, OutboundMessage } from "../../../src/bus/messages.js";
import type { TelegramPart } from "../../../src/channels/telegram/part.js";
import { partsOf } from "../../../src/channels/telegram/parts.js";
import { entitiesOf, keyboardOf } from "../../../src/channels/telegram/render.js";
import { renderMarkdown } from "../../../src/channels/text/markdown.js";
import { markdownLike } from "../text/arbitraries.js";
import { CONFIG, fileRef, outbound, wordsIn } from "./outbound.js";

const shown = (message: OutboundMessage) => partsOf(message, CONFIG).map(wordsIn);
const photos = (count: number): MediaRef[] =>
  Array.from({ length: count }, (_, i) => fileRef(`${i}.jpg`, "image/jpeg"));
function filesIn(part: TelegramPart): MediaRef[] {
  if (part.kind === "album") return part.files.map(({ file }) => file);
  return part.kind === "file" ? [part.file] : [];
}

const BUTTONS: Button[][] = [[{ label: "Yes", value: "yes" }]];

describe("parts of a text", () => {
  it("renders markdown into text and entities, in Telegram's words", () => {
    const [part] = partsOf(outbound("**a** ~~b~~ [c](https://x.org)\n```js\nd\n```\n> e"), CONFIG);
    expect(part).toMatchObject({ kind: "text", chat: 7, buttons: [] });
    const text = part?.kind === "text" ? part.text : null;
    expect(text?.text).toBe("a b c\nd\ne");
    expect(entitiesOf(text?.entities ?? [])).toEqual([
      { type: "bold", offset: 0, length: 1 },
      { type: "strikethrough", offset: 2, length: 1 },
      { type: "text_link", offset: 4, length: 1, url: "https://x.org" },
      { type: "pre", offset: 6, length: 1, language: "js" },
      { type: "blockquote", offset: 8, length: 1 },
    ]);
  });

  it("keeps code and links where there are more entities than a message may have", () => {
    const { entities } = renderMarkdown(`${"*a* **b** ".repeat(80)}[c](https://x.org)\n\`\`\`\nd\n\`\`\``);
    const kept = entitiesOf(entities);
    expect(kept).toHaveLength(100);
    expect(kept.slice(-2).map(({ type }) => type)).toEqual(["text_link", "pre"]);
    expect(kept).toEqual(kept.toSorted((a, b) => a.offset - b.offset));
  });

  it("cuts at 4096 and loses nothing of 300 parts", () => {
    const content = "Words of an answer that never ends. ".repeat(36_000);
    const parts = shown(outbound(content));
    expect(parts.length).toBeGreaterThan(300);
    for (const part of parts) expect(part.length).toBeLessThanOrEqual(4096);
    expect(parts.join("")).toBe(renderMarkdown(content).text);
  });

  it("says something where there is nothing to see", () => {
    for (const blank of ["", " \n ", "\u200b\u2060", "\u3164", "\ufeff"]) {
      expect(shown(outbound(blank))).toEqual(["(no answer)"]);
    }
    expect(shown(outbound("", { event: { type: "delta", streamId: "s", offset: 0 } }))).toEqual(["…"]);
    expect(shown(outbound("```\n```"))).toEqual(["```\n```"]);
    expect(shown(outbound("[](  )"))).not.toEqual([""]);
    expect(shown(outbound("👍"))).toEqual(["👍"]);
  });

  it("has parts within the limits, whatever the text and files", () => {
    const files = fc.array(
      fc.record({
        name: fc.string(),
        mime: fc.constantFrom("image/png", "video/mp4", "audio/mpeg", "audio/ogg", "text/plain", ""),
        bytes: fc.constantFrom(0, 1, 11_000_000, 60_000_000),
      }),
      { maxLength: 25 },
    );
    const event = fc.constantFrom<OutboundMessage["event"]>(
      { type: "final", streamId: null },
      { type: "final", streamId: "s" },
      { type: "notice" },
      { type: "delta", streamId: "s", offset: 0 },
    );
    fc.assert(
      fc.property(markdownLike(), files, event, fc.constantFrom([], BUTTONS), (content, refs, kind, buttons) => {
        const media = refs.map((ref, at) => ({ ...ref, path: `${at}` }));
        const message = outbound(content.repeat(20), { media, event: kind, buttons });
        const parts = partsOf(message, CONFIG);
        expect(parts.length).toBeGreaterThan(0);
        expect(partsOf(message, CONFIG)).toEqual(parts);
        for (const part of parts) {
          if (part.kind === "text") expect(part.text.text.length).toBeLessThanOrEqual(4096);
          else expect(part.caption?.text.length ?? 0).toBeLessThanOrEqual(1024);
          if (part.kind === "album") expect([2, 3, 4, 5, 6, 7, 8, 9, 10]).toContain(part.files.length);
        }
        const sent = parts.flatMap(filesIn);
        const sendable = media.filter(({ bytes }) => bytes > 0 && bytes < 50_000_000);
        expect(sent.map(({ path }) => path).sort()).toEqual(sendable.map(({ path }) => path).sort());
        expect(parts.filter((part) => part.kind !== "album" && part.buttons.length > 0)).toHaveLength(buttons.length);
      }),
      { numRuns: 200 },
    );
  });
});

describe("parts with files", () => {
  it("puts words that fit under the file, and others after it", () => {
    const media = [fileRef("a.png", "image/png")];
    expect(shown(outbound("look", { media }))).toEqual(["<photo a.png>look"]);
    const long = `${"w ".repeat(600)}w`;
    expect(shown(outbound(long, { media }))).toEqual(["<photo a.png>", long]);
    expect(shown(outbound("", { media }))).toEqual(["<photo a.png>"]);
  });

  it("puts the words first that a stream has shown already", () => {
    const media = [fileRef("a.png", "image/png")];
    expect(shown(outbound("look", { media, event: { type: "final", streamId: "s" } }))).toEqual([
      "look",
      "<photo a.png>",
    ]);
  });

  it("makes albums of 2 to 10 of what goes together", () => {
    const media = [...photos(11), fileRef("v.mp4", "video/mp4"), fileRef("d.pdf", "application/pdf")];
    const parts = partsOf(outbound("", { media }), CONFIG);
    expect(parts.map((part) => (part.kind === "album" ? part.files.length : part.kind))).toEqual([10, 2, "file"]);
    expect(parts.map(wordsIn)[1]).toBe("<album photo 10.jpg, video v.mp4>");
  });

  it("knows what is shown as what", () => {
    const kinds = (
      [
        "image/jpeg",
        "image/svg+xml",
        "image/gif",
        "video/mp4",
        "video/webm",
        "audio/mpeg",
        "audio/ogg; codecs=opus",
        "audio/wav",
        "application/pdf",
      ] as const
    ).map((mime) => shown(outbound("", { media: [fileRef("f", mime)] }))[0]?.split(" ")[0]);
    expect(kinds).toEqual([
      "<photo",
      "<document",
      "<document",
      "<video",
      "<document",
      "<audio",
      "<voice",
      "<document",
      "<document",
    ]);
    expect(shown(outbound("", { media: [fileRef("big.png", "image/png", 10_000_001)] }))).toEqual([
      "<document big.png>",
    ]);
  });

  it("says which files cannot be sent, and why", () => {
    const media = [fileRef("none.txt", "text/plain", 0), fileRef("huge.iso", "application/octet-stream", 50_000_001)];
    expect(shown(outbound("both", { media }))).toEqual([
      "both",
      "[could not send: none.txt (the file is empty)]",
      "[could not send: huge.iso (larger than 50 MB)]",
    ]);
  });
});

describe("parts in their place", () => {
  it("goes to the topic, but never names General", () => {
    expect(partsOf(outbound("a", { chatId: "-1001", threadId: "42" }), CONFIG)[0]).toMatchObject({
      chat: -1001,
      thread: 42,
    });
    expect(partsOf(outbound("a", { chatId: "-1001", threadId: "1" }), CONFIG)[0]).not.toHaveProperty("thread");
    expect(partsOf(outbound("a", { chatId: "@public", threadId: "x" }), CONFIG)[0]).toEqual({
      kind: "text",
      text: { text: "a", entities: [] },
      buttons: [],
      chat: "@public",
    });
  });

  it("quotes in the first part only, and only when it is wanted", () => {
    const message = outbound("w ".repeat(4000), { replyTo: "9" });
    expect(partsOf(message, CONFIG).some((part) => "replyTo" in part)).toBe(false);
    expect(partsOf(message, { replyQuotes: true }).map((part) => part.replyTo)).toEqual([9, undefined]);
  });

  it("hangs buttons under the last part that can have some", () => {
    const carriers = (message: OutboundMessage) =>
      partsOf(message, CONFIG).map((part) => part.kind !== "album" && part.buttons.length > 0);
    expect(carriers(outbound("w ".repeat(4000), { buttons: BUTTONS }))).toEqual([false, true]);
    expect(carriers(outbound("pick", { buttons: BUTTONS, media: photos(1) }))).toEqual([true]);
    expect(carriers(outbound("pick", { buttons: BUTTONS, media: photos(2) }))).toEqual([false, true]);
    expect(shown(outbound("pick", { buttons: BUTTONS, media: photos(2) }))[1]).toBe("pick");
    expect(carriers(outbound("", { buttons: BUTTONS, media: photos(2) }))).toEqual([false, true]);
    expect(carriers(outbound("pick", { buttons: [[]] }))).toEqual([false]);
  });

  it("cuts what a button sends back to 64 bytes, in whole characters", () => {
    const [[button] = []] = keyboardOf([[{ label: "L", value: "ä👍".repeat(30) }]]);
    expect(button).toEqual({ text: "L", callback_data: `${"ä👍".repeat(10)}ä` });
    expect(keyboardOf([[{ label: " ", value: "" }]])).toEqual([[{ text: "…", callback_data: " " }]]);
    expect(
      keyboardOf([Array.from({ length: 20 }, () => ({ label: "a", value: "b" }))]).map((row) => row.length),
    ).toEqual([8, 8, 4]);
  });
});

/** Outbound messages as Discord's messages: nothing too long, nothing lost, buttons and files where they belong. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MediaRef, OutboundMessage } from "../../../src/bus/messages.js";
import { deliveryErrorOf } from "../../../src/channels/discord/failure.js";
import { type DiscordPart, partsOf, plainer, withoutFiles } from "../../../src/channels/discord/parts.js";
import { RestError, type RestFailure } from "../../../src/channels/discord/rest.js";
import { nonceOf } from "../../../src/channels/discord/sender.js";

function message(overrides: Partial<OutboundMessage> = {}): OutboundMessage {
  return {
    id: "t.1",
    channel: "discord",
    chatId: "1",
    content: "hello",
    media: [],
    buttons: [],
    event: { type: "final", streamId: null },
    turnId: "t",
    seq: 0,
    metadata: {},
    ...overrides,
  };
}

const file = (name: string, bytes = 1000): MediaRef => ({ path: name, mime: "text/plain", name, bytes });
const words = (parts: readonly DiscordPart[]) =>
  parts
    .map(({ content }) => content)
    .join("")
    .replaceAll(/\s/g, "");

describe("parts", () => {
  it("of any text are within the limit, show something, and hold the whole of it", () => {
    const texts = fc.array(
      fc.oneof(
        fc.string({ unit: "grapheme" }),
        fc.constant("word ".repeat(300)),
        fc.constant("\n"),
        fc.constant("👩‍👩‍👧"),
      ),
    );
    fc.assert(
      fc.property(texts, (pieces) => {
        const content = pieces.join("").replaceAll(/[`~]/g, "");
        const parts = partsOf(message({ content }));
        expect(parts.length).toBeGreaterThan(0);
        for (const part of parts) {
          expect(part.content.length).toBeLessThanOrEqual(2000);
          expect(part.content.trim()).not.toBe("");
        }
        if (content.trim() !== "") expect(words(parts)).toBe(content.toWellFormed().replaceAll(/\s/g, ""));
      }),
      { numRuns: 60 },
    );
  });

  it("stay within the limit with fences that are closed and opened again", () => {
    const content = `look:\n\`\`\`typescript\n${"const line = 1;\n".repeat(400)}\`\`\`\nend`;
    const parts = partsOf(message({ content }));
    expect(parts.length).toBeGreaterThan(3);
    for (const part of parts) {
      expect(part.content.length).toBeLessThanOrEqual(2000);
      expect(part.content.split("```").length % 2).toBe(1);
    }
  });

  it("are the same every time", () => {
    const long = message({ content: "word ".repeat(3000), media: [file("a"), file("b")], replyTo: "5" });
    expect(partsOf(long)).toEqual(partsOf(long));
  });

  it("quote in the first and have buttons in the last piece of text", () => {
    const buttons = [[{ label: "Yes", value: "yes" }]];
    const parts = partsOf(message({ content: "word ".repeat(1000), buttons, replyTo: "5" }));
    expect(parts.map(({ isReply }) => isReply)).toEqual([true, ...parts.slice(1).map(() => false)]);
    expect(parts.map((part) => part.buttons.length)).toEqual([...parts.slice(1).map(() => 0), 1]);
  });

  it("carry files with the text, ten at most and not too heavy; those of a stream on their own", () => {
    const media = Array.from({ length: 12 }, (_, n) => file(`${n}`));
    expect(partsOf(message({ media })).map(({ files }) => files.length)).toEqual([10, 2]);
    const heavy = [file("a", 6_000_000), file("b", 6_000_000)];
    expect(partsOf(message({ media: heavy, content: "" })).map(({ files }) => files.length)).toEqual([1, 1]);
    const streamed = partsOf(message({ media, event: { type: "final", streamId: "s" } }));
    expect(streamed.map(({ files }) => files.length)).toEqual([0, 10, 2]);
  });

  it("say what there is no room for", () => {
    const buttons = Array.from({ length: 6 }, (_, n) => [{ label: `b${n}`, value: `${n}` }]);
    const [part] = partsOf(message({ media: [file("film.mp4", 31_000_000)], buttons }));
    expect(part).toMatchObject({ files: [], content: expect.stringContaining("film.mp4 (31.0 MB): too large") });
    expect(part?.content).toContain("• b5");
    expect(part?.buttons).toHaveLength(5);
  });

  it("of nothing show that it is nothing", () => {
    expect(partsOf(message({ content: " \n" }))).toMatchObject([{ content: "(no text)" }]);
  });

  it("are sent with a nonce that Discord takes and that is its key's", () => {
    expect(nonceOf("t.1/0").length).toBeLessThanOrEqual(25);
    expect(nonceOf("t.1/0")).toBe(nonceOf("t.1/0"));
    expect(nonceOf("t.1/0")).not.toBe(nonceOf("t.1/1"));
  });
});

describe("other forms of a part", () => {
  const part: DiscordPart = {
    content: "text",
    files: [file("a.txt")],
    buttons: [[{ label: "Yes", value: "yes" }]],
    isReply: true,
    place: "here",
    isPlain: false,
  };

  it("without files say which ones", () => {
    const [other] = withoutFiles(part, "too large");
    expect(other).toMatchObject({ files: [], isReply: true, buttons: part.buttons });
    expect(other?.content).toBe("text\n[file a.txt (1 kB): too large]");
  });

  it("that are plain have no quote and no buttons, and keep words and files", () => {
    const others = plainer({ ...part, content: "word ".repeat(390) });
    expect(others.length).toBeGreaterThan(1);
    expect(others.every(({ isPlain, isReply, buttons }) => isPlain && !isReply && buttons.length === 0)).toBe(true);
    expect(others.at(-1)).toMatchObject({ files: part.files, content: expect.stringContaining("• Yes") });
  });
});

describe("errors as failures", () => {
  const part = partsOf(message({ media: [file("a")] }))[0];
  const judge = (
    failure: RestFailure,
    overrides: { part?: Partial<DiscordPart>; isRepeatable?: boolean; threadId?: string } = {},
  ) => {
    if (part === undefined) throw new Error("there is a part");
    const { threadId, isRepeatable = true } = overrides;
    const attempt = {
      message: message(threadId === undefined ? {} : { threadId }),
      part: { ...part, ...overrides.part },
      isRepeatable,
    };
    return deliveryErrorOf(new RestError(failure, "words"), attempt).failure;
  };
  const refused = (status: number, code: number): RestFailure => ({ kind: "refused", status, code });

  it.each([
    ["a wait", { kind: "limited", waitMs: 1234 } as const, { kind: "transient", retryAfterMs: 1234 }],
    ["no line", { kind: "unreachable" } as const, { kind: "transient", retryAfterMs: null }],
    ["a broken line", { kind: "unclear" } as const, { kind: "transient", retryAfterMs: null }],
    ["a reset token", refused(401, 0), { kind: "transient", retryAfterMs: null }],
    ["no permission", refused(403, 50013), { kind: "permanent" }],
    ["an unknown channel", refused(404, 10003), { kind: "permanent" }],
    ["an unknown refusal", refused(400, 99999), { kind: "permanent" }],
    ["too much", refused(413, 40005), { kind: "change" }],
    ["a wrong form", refused(400, 50035), { kind: "change" }],
    ["nothing in it", refused(400, 50006), { kind: "change" }],
  ])("%s", (_, failure, expected) => {
    expect(judge(failure)).toMatchObject(expected);
  });

  it("a broken line when Discord has forgotten the nonce is unknown", () => {
    expect(judge({ kind: "unclear" }, { isRepeatable: false })).toEqual({ kind: "unknown" });
  });

  it("an unknown thread goes to its channel, once", () => {
    expect(judge(refused(404, 10003), { threadId: "2" })).toMatchObject({
      kind: "change",
      into: [{ place: "parent" }],
    });
    expect(judge(refused(404, 10003), { threadId: "2", part: { place: "parent" } })).toEqual({ kind: "permanent" });
  });

  it("what is refused in its plainest form is final", () => {
    expect(judge(refused(400, 50035), { part: { isPlain: true } })).toEqual({ kind: "permanent" });
    expect(judge(refused(413, 40005), { part: { files: [] } })).toEqual({ kind: "permanent" });
  });
});

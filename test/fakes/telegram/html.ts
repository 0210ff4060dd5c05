/**
 * Telegram's HTML → text and entities, as strict as the original about tags that are unknown, unclosed or crossed. It
 * checks no limits. Invariant: offsets are units of UTF-16 in the text that comes out.
 */
import type { MessageEntity } from "grammy/types";
import { badRequest } from "./refusal.js";

const TYPES: Readonly<Record<string, MessageEntity["type"]>> = {
  b: "bold",
  strong: "bold",
  i: "italic",
  em: "italic",
  u: "underline",
  ins: "underline",
  s: "strikethrough",
  strike: "strikethrough",
  del: "strikethrough",
  code: "code",
  pre: "pre",
  a: "text_link",
  blockquote: "blockquote",
  "tg-spoiler": "spoiler",
  span: "spoiler",
};
const NAMED: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"' };

interface OpenTag {
  name: string;
  offset: number;
  attributes: string;
}

/** Reads a text with tags. Throws a refusal "can't parse entities". */
export function parseHtml(html: string): { text: string; entities: MessageEntity[] } {
  const entities: MessageEntity[] = [];
  const open: OpenTag[] = [];
  let text = "";
  let at = 0;
  for (const token of html.matchAll(/<(\/?)([a-zA-Z-]*)([^<>]*)>|&(#\d+|#x[\da-fA-F]+|[a-z]+);|</g)) {
    text += html.slice(at, token.index);
    at = token.index + token[0].length;
    const [whole, slash, name = "", attributes = "", reference] = token;
    if (reference !== undefined) text += decoded(reference, whole);
    else if (slash === "/")
      entities.push(closed(open, { name: name.toLowerCase(), end: text.length, at: token.index }));
    else open.push(opened({ name: name.toLowerCase(), attributes, offset: text.length }, token.index));
  }
  text += html.slice(at);
  const left = open.pop();
  if (left !== undefined) throw cannot(`Can't find end tag corresponding to start tag "${left.name}"`);
  return { text, entities: entities.filter(({ length }) => length > 0).sort((a, b) => a.offset - b.offset) };
}

function opened(tag: OpenTag, at: number): OpenTag {
  if (!Object.hasOwn(TYPES, tag.name)) throw cannot(`Unsupported start tag "${tag.name}" at byte offset ${at}`);
  if (tag.name === "span" && !/class="tg-spoiler"/.test(tag.attributes))
    throw cannot(`Tag "span" must have class "tg-spoiler" at byte offset ${at}`);
  return tag;
}

function closed(open: OpenTag[], { name, end, at }: { name: string; end: number; at: number }): MessageEntity {
  const tag = open.pop();
  if (tag === undefined) throw cannot(`Unexpected end tag at byte offset ${at}`);
  if (tag.name !== name && name !== "")
    throw cannot(`Unmatched end tag at byte offset ${at}, expected "</${tag.name}>", found "</${name}>"`);
  const url = /href="([^"]*)"/.exec(tag.attributes)?.[1];
  const entity = { type: TYPES[tag.name], offset: tag.offset, length: end - tag.offset, ...(url && { url }) };
  return entity as MessageEntity;
}

function decoded(reference: string, whole: string): string {
  if (!reference.startsWith("#")) return NAMED[reference] ?? whole;
  const code = reference.startsWith("#x") ? Number.parseInt(reference.slice(2), 16) : Number(reference.slice(1));
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
}

function cannot(why: string) {
  return badRequest(`can't parse entities: ${why}`);
}

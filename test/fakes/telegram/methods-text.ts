/**
 * The methods that make, change and take away texts. Invariant: a call that is refused has changed nothing; an edit that
 * would change nothing is refused.
 */
import type { InlineKeyboardMarkup, Message } from "grammy/types";
import { chatIdOf, destinationOf, type Method, ownPost } from "./call.js";
import { readCaption, readFormatted, readKeyboard, readText, TEXT_LIMIT } from "./format.js";
import type { Post } from "./place.js";
import { badRequest } from "./refusal.js";

const NOT_MODIFIED =
  "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message";

export const TEXT_METHODS: Readonly<Record<string, Method>> = {
  sendMessage: (call) => {
    const { place, fields } = destinationOf(call);
    const { text, entities } = readText(call.params);
    const keyboard = readKeyboard(call.params);
    place.draft = null;
    return place.post({ ...fields, text, ...listed("entities", entities), ...markupOf(keyboard) }).wire;
  },

  sendMessageDraft: (call) => {
    const { place } = destinationOf(call);
    const id = call.params.int("draft_id");
    if (place.isGroup) throw badRequest("drafts can be sent to private chats only");
    if (id === null || id === 0) throw badRequest("draft_id must be non-zero");
    const { text } = readFormatted(call.params, "text", "entities") ?? { text: "" };
    if (text.length > TEXT_LIMIT) throw badRequest("message is too long");
    place.draft = { id, text };
    place.drafts.push({ text, atMs: performance.now() });
    return true;
  },

  editMessageText: (call) => {
    const { post } = ownPost(call);
    if (post.wire.text === undefined) throw badRequest("there is no text in the message to edit");
    const { text, entities } = readText(call.params, "MESSAGE_TOO_LONG");
    return edit(post, { text, entities }, readKeyboard(call.params));
  },

  editMessageCaption: (call) => {
    const { post } = ownPost(call);
    if (post.wire.text !== undefined) throw badRequest("there is no caption in the message to edit");
    const { text, entities } = readCaption(call.params) ?? { text: "", entities: [] };
    return edit(post, { caption: text, caption_entities: entities }, readKeyboard(call.params));
  },

  editMessageReplyMarkup: (call) => {
    const { post } = ownPost(call);
    return edit(post, {}, readKeyboard(call.params));
  },

  deleteMessage: (call) => {
    const place = call.world.placeOf(chatIdOf(call.params));
    place.checkWritable();
    const post = place.find(call.params.int("message_id"));
    if (post === null) throw badRequest("message to delete not found");
    const isOwn = post.wire.from?.id === call.world.bot.id;
    if (!isOwn && place.isGroup && place.standing !== "admin") throw badRequest("message can't be deleted");
    post.isDeleted = true;
    return true;
  },
};

type Content = Partial<Pick<Message, "text" | "entities" | "caption" | "caption_entities">>;

/** Replaces what a message shows; a keyboard that is not named goes. Throws when nothing changes. */
function edit(post: Post, content: Content, keyboard: InlineKeyboardMarkup | null): Message {
  const { wire } = post;
  const { entities, caption_entities: captionEntities, ...words } = content;
  const { reply_markup: _, ...before } = wire;
  const next = { ...before, ...words, ...markupOf(keyboard) } as Message;
  if (entities !== undefined) setList(next, "entities", entities);
  if (captionEntities !== undefined) setList(next, "caption_entities", captionEntities);
  if (JSON.stringify(essence(next)) === JSON.stringify(essence(wire))) throw badRequest(NOT_MODIFIED);
  next.edit_date = Math.floor(Date.now() / 1000);
  post.wire = next;
  if (Object.keys(words).length > 0)
    post.shown.push({ text: words.text ?? words.caption ?? "", atMs: performance.now() });
  return next;
}

/** What counts as the content of a message; an empty caption is none. */
function essence({ text, entities, caption, caption_entities: captionEntities, reply_markup: markup }: Message) {
  return [text ?? "", entities ?? [], caption ?? "", captionEntities ?? [], markup ?? null];
}

function setList<Name extends "entities" | "caption_entities">(
  wire: Message,
  name: Name,
  list: NonNullable<Message[Name]>,
): void {
  if (list.length === 0) delete wire[name];
  else wire[name] = list;
}

export function listed<Name extends "entities" | "caption_entities">(
  name: Name,
  list: NonNullable<Message["entities"]>,
): Partial<Pick<Message, Name>> {
  return (list.length === 0 ? {} : { [name]: list }) as Partial<Pick<Message, Name>>;
}

export function markupOf(keyboard: InlineKeyboardMarkup | null): Partial<Pick<Message, "reply_markup">> {
  return keyboard === null ? {} : { reply_markup: keyboard };
}

/** Whether a call changes what is shown, and so counts against the limits. */
export function isCounted({ method }: { method: string }): boolean {
  return /^send(?!ChatAction|MessageDraft)|^editMessage(?:Text|Caption|Media)$/.test(method);
}

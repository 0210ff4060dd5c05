/**
 * One call of a bot, as the methods see it, and what many of them ask of it: the chat, the thread, the message it answers.
 * It answers nothing. Invariant: whatever is asked here is asked before any effect.
 */
import type { Message } from "grammy/types";
import type { Params } from "./params.js";
import type { Place, Post } from "./place.js";
import { badRequest } from "./refusal.js";
import type { Updates } from "./updates.js";
import type { World } from "./world.js";

export interface Call {
  params: Params;
  world: World;
  updates: Updates;
  /** Aborts when whoever called has gone. */
  signal: AbortSignal;
}

/** Does what is asked and returns its result. Throws `Refusal`. */
export type Method = (call: Call) => unknown;

/** The chat as the call names it. */
export function chatIdOf(params: Params): number | string | null {
  const value = params.all.chat_id;
  return typeof value === "string" && value.startsWith("@") ? value : params.int("chat_id");
}

export interface Destination {
  place: Place;
  fields: Partial<Message> & Pick<Message, "from">;
}

/** Where a new message goes, and what is known of it by that. Throws `Refusal`. */
export function destinationOf({ params, world }: Call): Destination {
  const place = world.placeOf(chatIdOf(params));
  place.checkWritable();
  const thread = params.int("message_thread_id");
  place.checkThread(thread);
  const answered = answeredOf(params, place);
  const inThread = thread === null ? {} : { message_thread_id: thread, is_topic_message: true as const };
  const reply = answered === null ? {} : { reply_to_message: withoutReply(answered.wire) };
  return { place, fields: { from: world.bot, ...inThread, ...reply } as Destination["fields"] };
}

function answeredOf(params: Params, place: Place): Post | null {
  const reply = params.object("reply_parameters");
  if (reply === null) return null;
  const post = place.find(typeof reply.message_id === "number" ? reply.message_id : null);
  if (post === null && reply.allow_sending_without_reply !== true) throw badRequest("message to be replied not found");
  return post;
}

/** A quoted message never quotes in turn. */
export function withoutReply(wire: Message): NonNullable<Message["reply_to_message"]> {
  const { reply_to_message: _, ...rest } = wire;
  return rest as NonNullable<Message["reply_to_message"]>;
}

/** A message of the bot itself that a call wants to change. Throws `Refusal`. */
export function ownPost({ params, world }: Call): { place: Place; post: Post } {
  const place = world.placeOf(chatIdOf(params));
  place.checkWritable();
  const post = place.find(params.int("message_id"));
  if (post === null) throw badRequest("message to edit not found");
  if (post.wire.from?.id !== world.bot.id) throw badRequest("message can't be edited");
  return { place, post };
}

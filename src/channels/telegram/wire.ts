/**
 * The part of the Bot API's updates that is read, as schemas: what comes over the network is checked before it is believed.
 * It interprets nothing. Invariants: what is not needed may be malformed without harm; what is needed has the stated shape.
 */
import { z } from "zod";

const id = z.int();
const text = z.string();
/** Seconds since the epoch, within what a date can hold. */
const seconds = z.int().min(0).max(8_640_000_000_000);

const user = z.object({
  id,
  is_bot: z.boolean().default(false),
  first_name: text.default(""),
  username: text.optional(),
});

const chat = z.object({
  id,
  type: z.enum(["private", "group", "supergroup", "channel"]),
  title: text.optional(),
  username: text.optional(),
  is_forum: z.boolean().optional(),
});

const entity = z.object({ type: text, offset: z.int(), length: z.int(), user: user.optional() });

const file = z.object({
  file_id: text.min(1),
  file_size: z.number().nonnegative().optional(),
  file_name: text.optional(),
  mime_type: text.optional(),
  width: z.number().optional(),
  height: z.number().optional(),
});

const place = z.object({ latitude: z.number(), longitude: z.number(), live_period: z.number().optional() });

const origin = z.object({
  type: text,
  sender_user: user.optional(),
  sender_user_name: text.optional(),
  sender_chat: chat.optional(),
  chat: chat.optional(),
});

/** Something of an unknown shape whose presence alone counts. */
const something = z.unknown().optional();

/** What a message may carry besides text; quotes of foreign chats carry the same. */
const cargo = {
  photo: z.array(file).optional(),
  voice: file.optional(),
  audio: file.optional(),
  video: file.optional(),
  video_note: file.optional(),
  animation: file.optional(),
  document: file.optional(),
  sticker: z.object({ emoji: text.optional(), set_name: text.optional() }).optional(),
  location: place.optional(),
  venue: z.object({ location: place, title: text, address: text }).optional(),
  contact: z.object({ phone_number: text, first_name: text, last_name: text.optional() }).optional(),
  poll: z.object({ question: text, options: z.array(z.object({ text })) }).optional(),
  dice: z.object({ emoji: text, value: z.number() }).optional(),
  checklist: z.object({ title: text, tasks: z.array(z.object({ text })) }).optional(),
  game: z.object({ title: text }).optional(),
  story: something,
  invoice: something,
  paid_media: something,
  giveaway: something,
};

const plainMessage = z.object({
  message_id: id,
  date: seconds,
  chat,
  from: user.optional(),
  sender_chat: chat.optional(),
  message_thread_id: id.optional(),
  is_topic_message: z.boolean().optional(),
  text: text.optional(),
  caption: text.optional(),
  entities: z.array(entity).optional().catch(undefined),
  caption_entities: z.array(entity).optional().catch(undefined),
  forward_origin: origin.optional().catch(undefined),
  forum_topic_created: something,
  ...cargo,
});

const message = plainMessage.extend({
  edit_date: seconds.optional(),
  media_group_id: text.optional(),
  is_automatic_forward: z.boolean().optional(),
  migrate_to_chat_id: id.optional(),
  reply_to_message: plainMessage.optional().catch(undefined),
  external_reply: z
    .object({ origin: origin.optional(), ...cargo })
    .optional()
    .catch(undefined),
  quote: z.object({ text }).optional().catch(undefined),
});

/** The message with the buttons; of one that is too old only chat and id are known. */
const pressedMessage = z.object({
  message_id: id,
  chat,
  message_thread_id: id.optional(),
  is_topic_message: z.boolean().optional(),
});

const press = z.object({
  id: text.min(1),
  from: user,
  message: pressedMessage.optional(),
  data: text.optional(),
});

/** An update with what of it is read. */
export const update = z.object({
  update_id: id,
  message: message.optional(),
  edited_message: message.optional(),
  channel_post: z.object({ chat }).optional().catch(undefined),
  callback_query: press.optional(),
});

/** Whatever else an update is: its place in the stream. */
export const numbered = z.object({ update_id: id });

/** Kinds of updates that are asked for. */
export const ALLOWED_UPDATES = ["message", "edited_message", "channel_post", "callback_query"] as const;

export type Update = z.infer<typeof update>;
export type Message = z.infer<typeof message>;
export type PlainMessage = z.infer<typeof plainMessage>;
export type Press = z.infer<typeof press>;
export type User = z.infer<typeof user>;
export type Chat = z.infer<typeof chat>;
export type Origin = z.infer<typeof origin>;
export type WireFile = z.infer<typeof file>;
/** What a message or a quote carries. */
export type Cargo = Partial<Pick<PlainMessage, keyof typeof cargo>>;

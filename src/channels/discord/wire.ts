/**
 * Discord's records as far as they are read here: names, limits, and the shapes of what comes in. Pure. Invariant: a record
 * is read whole or not at all, and a field that is not needed may be anything.
 */
import { z } from "zod";

/** What Discord takes. */
export const DISCORD_LIMITS = {
  /** UTF-16 units of a message. */
  content: 2000,
  /** Lines after which a client folds a message. */
  lines: 60,
  filesPerMessage: 10,
  /** Of one file, and of all files of a message: the smallest limit a server may have. */
  fileBytes: 10_000_000,
  buttonRows: 5,
  buttonsPerRow: 5,
  buttonLabel: 80,
  customId: 100,
} as const;

/** Types of channels that are threads. */
const THREAD_TYPES: readonly number[] = [10, 11, 12];
export const DIRECT_TYPE = 1;
/** Types of messages that people write: plain ones and replies. */
const WRITTEN_TYPES: readonly number[] = [0, 19];
export const VOICE_FLAG = 1 << 13;
export const EPHEMERAL_FLAG = 1 << 6;

export const isThreadType = (type: number): boolean => THREAD_TYPES.includes(type);
export const isWritten = (type: number): boolean => WRITTEN_TYPES.includes(type);

const snowflake = z.string().regex(/^\d{1,20}$/);
const words = z.string().nullish();

/** Ids grow with time; a longer one is later. */
export function isLater(id: string, than: string): boolean {
  return BigInt(id) > BigInt(than);
}

export const isSnowflake = (text: string): boolean => snowflake.safeParse(text).success;

/** The fields of something that came from outside; none where it is no object. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

const userShape = z.object({
  id: snowflake,
  username: z.string().default(""),
  global_name: words,
  bot: z.boolean().nullish(),
});

const attachmentShape = z.object({
  id: snowflake,
  filename: z.string().default("file"),
  size: z.number().nonnegative().default(0),
  url: z.string(),
  content_type: words,
});

const embedShape = z.object({
  type: words,
  title: words,
  description: words,
  url: words,
  author: z.object({ name: words }).nullish(),
  footer: z.object({ text: words }).nullish(),
  fields: z.array(z.object({ name: words, value: words })).nullish(),
});

const bodyShape = z.object({
  content: z.string().default(""),
  attachments: z.array(attachmentShape).default([]),
  embeds: z.array(embedShape).default([]).catch([]),
  sticker_items: z
    .array(z.object({ name: words }))
    .nullish()
    .catch(null),
  mentions: z.array(userShape).default([]),
});

const plainMessageShape = bodyShape.extend({
  id: snowflake,
  channel_id: snowflake,
  guild_id: snowflake.nullish(),
  channel_type: z.number().nullish(),
  author: userShape,
  webhook_id: snowflake.nullish(),
  type: z.number().default(0),
  timestamp: z.string(),
  edited_timestamp: words,
  mention_roles: z.array(snowflake).default([]),
  flags: z.number().default(0),
  poll: z.unknown().optional(),
  message_snapshots: z.array(z.object({ message: bodyShape })).nullish(),
  message_reference: z.object({ type: z.number().nullish(), message_id: snowflake.nullish() }).nullish(),
});

/** A message, as the gateway tells it or REST gives it. */
export const messageShape = plainMessageShape.extend({
  referenced_message: plainMessageShape.nullish().catch(null),
});

export const channelShape = z.object({
  id: snowflake,
  type: z.number(),
  guild_id: snowflake.nullish(),
  parent_id: snowflake.nullish(),
  last_message_id: snowflake.nullish(),
});

export const guildShape = z.object({
  id: snowflake,
  channels: z.array(channelShape.nullable().catch(null)).default([]),
  threads: z.array(channelShape.nullable().catch(null)).default([]),
  roles: z
    .array(z.object({ id: snowflake, tags: z.object({ bot_id: snowflake.nullish() }).nullish() }))
    .default([])
    .catch([]),
});

export const threadListShape = z.object({
  guild_id: snowflake,
  threads: z.array(channelShape.nullable().catch(null)).default([]),
});

export const readyShape = z.object({
  user: userShape,
  application: z.object({ id: snowflake }),
  guilds: z.array(z.object({ id: snowflake })).default([]),
});

/** A slash command (2) or a press of a button (3). */
export const interactionShape = z.object({
  id: snowflake,
  application_id: snowflake,
  type: z.number(),
  token: z.string(),
  channel_id: snowflake,
  guild_id: snowflake.nullish(),
  channel: channelShape.nullish().catch(null),
  member: z.object({ user: userShape }).nullish(),
  user: userShape.nullish(),
  data: z
    .object({
      name: words,
      custom_id: words,
      options: z.array(z.object({ value: z.union([z.string(), z.number(), z.boolean()]).nullish() })).nullish(),
    })
    .nullish(),
  message: z.object({ id: snowflake }).nullish(),
});

export type WireUser = z.infer<typeof userShape>;
export type WireAttachment = z.infer<typeof attachmentShape>;
export type WireEmbed = z.infer<typeof embedShape>;
export type WireBody = z.infer<typeof bodyShape>;
export type WireMessage = z.infer<typeof messageShape>;
export type WireChannel = z.infer<typeof channelShape>;
export type WireInteraction = z.infer<typeof interactionShape>;

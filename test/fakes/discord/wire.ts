/**
 * Records of the fake Discord as they go over the wire. Pure. Invariant: what REST gives has neither `guild_id` nor
 * `member` nor `channel_type` in a message; only the gateway adds them.
 */
import {
  type Attachment,
  type Channel,
  ChannelKind,
  type Guild,
  type Interaction,
  type Message,
  type User,
} from "./model.js";

type Wire = Record<string, unknown>;

/** View, send, history, attach, embed, react, threads, application commands. */
export const ORDINARY_PERMISSIONS = (
  (1n << 6n) |
  (1n << 10n) |
  (1n << 11n) |
  (1n << 14n) |
  (1n << 15n) |
  (1n << 16n) |
  (1n << 31n) |
  (1n << 35n) |
  (1n << 38n)
).toString();

export const iso = (ms: number): string => new Date(ms).toISOString().replace("Z", "000+00:00");

export function userWire(user: User): Wire {
  const { id, username, isBot } = user;
  const looks = { global_name: isBot ? null : username, avatar: null, discriminator: isBot ? "0001" : "0" };
  return { id, username, ...looks, public_flags: 0, ...(isBot ? { bot: true } : {}) };
}

export function memberWire(roles: readonly string[] = []): Wire {
  const since = { joined_at: "2024-01-01T00:00:00.000000+00:00", premium_since: null };
  return { roles, nick: null, avatar: null, ...since, deaf: false, mute: false, pending: false, flags: 0 };
}

export function channelWire(channel: Channel): Wire {
  const { id, kind, name, guild, parent, recipient } = channel;
  const last = [...channel.messages.keys()].at(-1) ?? null;
  if (kind === ChannelKind.dm) {
    return {
      id,
      type: kind,
      last_message_id: last,
      flags: 0,
      recipients: recipient === null ? [] : [userWire(recipient)],
    };
  }
  const common = { id, type: kind, name, guild_id: guild?.id, parent_id: parent?.id ?? null, last_message_id: last };
  if (kind !== ChannelKind.thread) {
    const place = { position: 0, permission_overwrites: [], nsfw: false, topic: null, rate_limit_per_user: 0 };
    return { ...common, ...place, flags: 0, ...(kind === ChannelKind.forum ? { available_tags: [] } : {}) };
  }
  const when = { archive_timestamp: "2024-01-01T00:00:00.000000+00:00", auto_archive_duration: 1440 };
  const metadata = { archived: channel.isArchived, locked: channel.isLocked, ...when };
  const counts = { message_count: channel.messages.size, member_count: 1, total_message_sent: channel.messages.size };
  return { ...common, owner_id: "1", thread_metadata: metadata, ...counts, rate_limit_per_user: 0, flags: 0 };
}

export function guildWire(guild: Guild, bot: User): Wire {
  const { id, name } = guild;
  const style = { color: 0, colors: { primary_color: 0, secondary_color: null, tertiary_color: null }, hoist: false };
  const role = {
    ...style,
    icon: null,
    unicode_emoji: null,
    mentionable: false,
    permissions: ORDINARY_PERMISSIONS,
    flags: 0,
  };
  const roles = [
    { id, name: "@everyone", position: 0, managed: false, ...role },
    { id: guild.botRoleId, name: bot.username, position: 1, managed: true, tags: { bot_id: bot.id }, ...role },
  ];
  const rules = { verification_level: 0, default_message_notifications: 0, explicit_content_filter: 0, mfa_level: 0 };
  const more = { nsfw_level: 0, premium_tier: 0, system_channel_flags: 0, preferred_locale: "en-US", afk_timeout: 300 };
  const looks = {
    icon: null,
    splash: null,
    discovery_splash: null,
    banner: null,
    description: null,
    vanity_url_code: null,
  };
  return { id, name, owner_id: "1", roles, emojis: [], stickers: [], features: [], ...rules, ...more, ...looks };
}

/** A guild as GUILD_CREATE brings it. */
export function guildCreateWire(guild: Guild, bot: User): Wire {
  const seen = guild.channels.filter((channel) => !channel.denied.has("view"));
  const isThread = (channel: Channel) => channel.kind === ChannelKind.thread;
  return {
    ...guildWire(guild, bot),
    joined_at: "2024-01-01T00:00:00.000000+00:00",
    large: false,
    unavailable: false,
    member_count: 2,
    members: [{ ...memberWire([guild.botRoleId]), user: userWire(bot) }],
    channels: seen.filter((channel) => !isThread(channel)).map(channelWire),
    threads: seen.filter((channel) => isThread(channel) && !channel.isArchived).map(channelWire),
    voice_states: [],
    presences: [],
    stage_instances: [],
    guild_scheduled_events: [],
    soundboard_sounds: [],
  };
}

export function attachmentWire(attachment: Attachment): Wire {
  const { id, filename, contentType, bytes, url } = attachment;
  return {
    id,
    filename,
    size: bytes.length,
    url,
    proxy_url: url,
    ...(contentType === null ? {} : { content_type: contentType }),
  };
}

/** How a message is seen: whether its reader may read what people write, and which user reads. */
export interface Sight {
  readsContent: boolean;
  bot: User;
}

/** Without the message content intent a bot reads its own messages, direct ones, and those that mention it. */
export function maySee(message: Message, sight: Sight): boolean {
  const { author, channel, mentions } = message;
  return sight.readsContent || channel.guild === null || author.id === sight.bot.id || mentions.includes(sight.bot);
}

/** A message as REST gives it. */
export function messageWire(message: Message, sight: Sight): Wire {
  const { id, channel, author, type, reference, interaction, nonce } = message;
  const own = maySee(message, sight);
  const reactions = [...message.reactions].map(([name, users]) => ({
    count: users.size,
    me: users.has(sight.bot.id),
    emoji: { id: null, name },
  }));
  return {
    id,
    channel_id: channel.id,
    author: message.webhookId === null ? userWire(author) : { ...userWire(author), bot: true },
    type,
    content: own ? message.content : "",
    timestamp: iso(message.sentMs),
    edited_timestamp: message.editedMs === null ? null : iso(message.editedMs),
    tts: false,
    pinned: false,
    mention_everyone: message.mentionsEveryone,
    mentions: message.mentions.map(userWire),
    mention_roles: message.roleMentions,
    attachments: own ? message.attachments.map(attachmentWire) : [],
    embeds: own ? message.embeds : [],
    components: own ? message.components : [],
    flags: message.flags,
    ...(message.stickers.length > 0 ? { sticker_items: message.stickers } : {}),
    ...(message.snapshots.length > 0 ? { message_snapshots: message.snapshots } : {}),
    ...(reactions.length > 0 ? { reactions } : {}),
    ...(nonce === null ? {} : { nonce }),
    ...(message.webhookId === null ? {} : { webhook_id: message.webhookId }),
    ...(reference === null ? {} : referenceWire(reference, sight)),
    ...(interaction === null
      ? {}
      : { application_id: sight.bot.id, interaction_metadata: interactionOrigin(interaction) }),
  };
}

function referenceWire({ message, type }: NonNullable<Message["reference"]>, sight: Sight): Wire {
  const { id, channel } = message;
  const isThere = channel.messages.get(id) === message;
  const place = {
    type,
    message_id: id,
    channel_id: channel.id,
    ...(channel.guild ? { guild_id: channel.guild.id } : {}),
  };
  if (type === 1) return { message_reference: place };
  const { message_reference: _, referenced_message: __, ...shown } = messageWire(message, sight);
  return { message_reference: place, referenced_message: isThere ? shown : null };
}

function interactionOrigin({ id, kind, user }: Interaction): Wire {
  return { id, type: kind === "command" ? 2 : 3, user: userWire(user), authorizing_integration_owners: {} };
}

/** A message as the gateway tells it. */
export function messageEventWire(message: Message, sight: Sight): Wire {
  const { channel, author, webhookId } = message;
  const { guild, kind } = channel;
  const roles = guild !== null && author === sight.bot ? [guild.botRoleId] : [];
  const where =
    guild === null ? {} : { guild_id: guild.id, ...(webhookId === null ? { member: memberWire(roles) } : {}) };
  return { ...messageWire(message, sight), channel_type: kind, ...where };
}

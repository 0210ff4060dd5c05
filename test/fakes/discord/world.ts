/**
 * The state of the fake Discord and what changes in it. It judges no permission and knows neither HTTP nor gateway:
 * whoever calls it has been let in. Invariant: every change is told to the listeners, once, in the order it was made.
 */
import { mentionsIn, pingsOf } from "./mentions.js";
import {
  type Attachment,
  type Channel,
  ChannelKind,
  type Guild,
  type Interaction,
  type Message,
  MessageFlag,
  MessageType,
  type User,
  type WorldEvent,
} from "./model.js";
import { Snowflakes } from "./snowflakes.js";
import { channelWire, guildCreateWire } from "./wire.js";

export const Intent = { guilds: 1, guildMessages: 1 << 9, directMessages: 1 << 12, messageContent: 1 << 15 } as const;

/** A message that is to be made; what is left out is empty. */
export interface Draft {
  content?: string;
  type?: number;
  attachments?: Attachment[];
  embeds?: unknown[];
  components?: unknown[];
  stickers?: unknown[];
  snapshots?: unknown[];
  reference?: Message["reference"];
  webhookId?: string;
  flags?: number;
  nonce?: string | number;
  interaction?: Interaction;
  /** As `allowed_mentions` of the API; left out: everything pings. */
  allowedMentions?: unknown;
  /** For the first message of a forum post, whose id is the thread's. */
  id?: string;
}

/** What of a message changes. */
export type Change = Partial<Pick<Message, "content" | "embeds" | "components" | "attachments" | "flags">>;

export class World {
  readonly ids = new Snowflakes();
  readonly bot: User;
  readonly users = new Map<string, User>();
  readonly guilds = new Map<string, Guild>();
  readonly channels = new Map<string, Channel>();
  readonly interactions = new Map<string, Interaction>();
  readonly attachments = new Map<string, Attachment>();
  /** Slash commands as registered, by name. */
  commands: ReadonlyMap<string, Record<string, unknown>> = new Map();
  readonly #listeners = new Set<(event: WorldEvent) => void>();

  constructor(botName: string) {
    this.bot = this.user(botName, true);
  }

  listen(listener: (event: WorldEvent) => void): void {
    this.#listeners.add(listener);
  }

  tell(event: WorldEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  user(username: string, isBot: boolean): User {
    const user = { id: this.ids.next(), username, isBot, refusesDms: false };
    this.users.set(user.id, user);
    return user;
  }

  guild(name: string): Guild {
    const guild: Guild = { id: this.ids.next(), name, botRoleId: this.ids.next(), channels: [] };
    this.guilds.set(guild.id, guild);
    this.tell({ t: "GUILD_CREATE", d: guildCreateWire(guild, this.bot), intents: Intent.guilds });
    return guild;
  }

  channel(
    kind: ChannelKind,
    place: { name: string; guild?: Guild; parent?: Channel; recipient?: User; id?: string },
  ): Channel {
    const { name, guild = null, parent = null, recipient = null, id = this.ids.next() } = place;
    const fresh = { messages: new Map(), denied: new Set<never>(), isArchived: false, isLocked: false };
    const channel: Channel = { id, kind, name, guild, parent, recipient, ...fresh };
    this.channels.set(id, channel);
    if (guild === null) return channel;
    guild.channels.push(channel);
    const isThread = kind === ChannelKind.thread;
    const d = { ...channelWire(channel), ...(isThread ? { newly_created: true } : {}) };
    this.tell({ t: isThread ? "THREAD_CREATE" : "CHANNEL_CREATE", d, intents: Intent.guilds });
    return channel;
  }

  /** The direct chat of the bot with this user; made when there is none. */
  directChat(recipient: User): Channel {
    const known = [...this.channels.values()].find((channel) => channel.recipient === recipient);
    return known ?? this.channel(ChannelKind.dm, { name: recipient.username, recipient });
  }

  removeChannel(channel: Channel): void {
    this.channels.delete(channel.id);
    const { guild } = channel;
    if (guild !== null) guild.channels = guild.channels.filter((each) => each !== channel);
    const t = channel.kind === ChannelKind.thread ? "THREAD_DELETE" : "CHANNEL_DELETE";
    this.tell({ t, d: channelWire(channel), intents: Intent.guilds });
  }

  setArchived(thread: Channel, isArchived: boolean, isLocked = thread.isLocked): void {
    Object.assign(thread, { isArchived, isLocked });
    this.tell({ t: "THREAD_UPDATE", d: channelWire(thread), intents: Intent.guilds });
  }

  attach(
    channel: Channel,
    file: { filename: string; contentType: string | null; bytes: Buffer },
    origin: string,
  ): Attachment {
    const id = this.ids.next();
    const url = `${origin}/attachments/${channel.id}/${id}/${encodeURIComponent(file.filename)}?ex=1&is=1&hm=1`;
    const attachment = { id, url, ...file };
    this.attachments.set(id, attachment);
    return attachment;
  }

  /** Says something. Archived threads wake up. */
  post(channel: Channel, author: User, draft: Draft): Message {
    if (channel.isArchived) this.setArchived(channel, false);
    const { reference = null, nonce = null, interaction = null, content = "", webhookId = null } = draft;
    const message: Message = {
      id: draft.id ?? this.ids.next(),
      channel,
      author,
      webhookId,
      type: draft.type ?? (reference?.type === 0 ? MessageType.reply : MessageType.normal),
      content,
      sentMs: Date.now(),
      editedMs: null,
      attachments: draft.attachments ?? [],
      embeds: draft.embeds ?? [],
      components: draft.components ?? [],
      stickers: draft.stickers ?? [],
      snapshots: draft.snapshots ?? [],
      ...mentionsIn(this, content),
      pings: [],
      reference,
      flags: draft.flags ?? 0,
      nonce,
      reactions: new Map(),
      interaction,
    };
    message.pings = pingsOf(message, draft.allowedMentions);
    const repliedTo = reference?.type === 0 ? reference.message.author : null;
    if (repliedTo !== null && message.pings.includes(repliedTo.id) && !message.mentions.includes(repliedTo)) {
      message.mentions.push(repliedTo);
    }
    channel.messages.set(message.id, message);
    this.#tellMessage("MESSAGE_CREATE", message);
    return message;
  }

  change(message: Message, change: Change): void {
    Object.assign(message, change, mentionsIn(this, change.content ?? message.content));
    message.editedMs = Date.now();
    this.#tellMessage("MESSAGE_UPDATE", message);
  }

  remove(message: Message): void {
    const { channel, id } = message;
    channel.messages.delete(id);
    const where = channel.guild === null ? {} : { guild_id: channel.guild.id };
    this.tell({ t: "MESSAGE_DELETE", d: { id, channel_id: channel.id, ...where }, intents: messageIntent(channel) });
  }

  #tellMessage(t: string, message: Message): void {
    const isPrivate = (message.flags & MessageFlag.ephemeral) !== 0;
    if (isPrivate || message.channel.denied.has("view")) return;
    this.tell({ t, d: {}, intents: messageIntent(message.channel), message });
  }
}

function messageIntent(channel: Channel): number {
  return channel.guild === null ? Intent.directMessages : Intent.guildMessages;
}

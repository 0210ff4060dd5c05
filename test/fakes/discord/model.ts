/**
 * What there is on the fake Discord: users, guilds, channels, messages, interactions, as plain records. It does nothing
 * with them. Invariant: a record refers to others by the record, never by an id that might be unknown.
 */

export const ChannelKind = { text: 0, dm: 1, voice: 2, thread: 11, forum: 15 } as const;
export type ChannelKind = (typeof ChannelKind)[keyof typeof ChannelKind];

/** Message types used here; all but `normal`, `reply` and `command` are system messages. */
export const MessageType = { normal: 0, memberJoin: 7, threadCreated: 18, reply: 19, command: 20 } as const;

export const MessageFlag = { ephemeral: 64, loading: 128 } as const;

export interface User {
  id: string;
  username: string;
  isBot: boolean;
  /** Has closed direct messages, or blocked the bot. */
  refusesDms: boolean;
}

export interface Guild {
  id: string;
  name: string;
  /** The role that Discord makes for a bot. */
  botRoleId: string;
  channels: Channel[];
}

/** What a channel may deny the bot. */
export type Denial = "view" | "send" | "history" | "attach" | "react" | "threads";

export interface Channel {
  id: string;
  kind: ChannelKind;
  name: string;
  guild: Guild | null;
  /** The channel of a thread. */
  parent: Channel | null;
  /** The other end of a direct chat. */
  recipient: User | null;
  messages: Map<string, Message>;
  denied: Set<Denial>;
  isArchived: boolean;
  isLocked: boolean;
}

export interface Attachment {
  id: string;
  filename: string;
  contentType: string | null;
  bytes: Buffer;
  url: string;
}

export interface Message {
  id: string;
  channel: Channel;
  author: User;
  webhookId: string | null;
  type: number;
  content: string;
  sentMs: number;
  editedMs: number | null;
  attachments: Attachment[];
  embeds: unknown[];
  components: unknown[];
  stickers: unknown[];
  snapshots: unknown[];
  mentions: User[];
  roleMentions: string[];
  mentionsEveryone: boolean;
  /** Who was notified: user ids, role ids, `everyone`. */
  pings: string[];
  reference: { message: Message; type: 0 | 1 } | null;
  flags: number;
  nonce: string | number | null;
  /** Users by emoji. */
  reactions: Map<string, Set<string>>;
  interaction: Interaction | null;
}

/** A slash command or a button press, and what its user was shown for it. */
export interface Interaction {
  id: string;
  token: string;
  kind: "command" | "button";
  name: string;
  user: User;
  channel: Channel;
  /** The message whose button was pressed. */
  message: Message | null;
  createdMs: number;
  state: "pending" | "deferred" | "answered" | "updated";
  isEphemeral: boolean;
  /** What `@original` is: the answer, or the pressed message. */
  original: Message | null;
  followUps: Message[];
}

/** Something that happened, as the gateway tells it. */
export interface WorldEvent {
  t: string;
  d: Record<string, unknown>;
  /** The intent bits of which a session needs one; 0: every session gets it. */
  intents: number;
  /** The message in it, whose content needs the message content intent. */
  message?: Message;
}

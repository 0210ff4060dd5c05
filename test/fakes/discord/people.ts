/**
 * What people, other bots and webhooks do on the fake Discord: say, answer, edit, delete, post, press, run a command. They
 * may do everything that Discord's own client would let them do, and an impossible act throws. Invariant: a person can only
 * use what is there: commands that are registered, buttons that are shown.
 */
import { randomBytes } from "node:crypto";
import { type Channel, ChannelKind, type Interaction, type Message, type User } from "./model.js";
import { attachmentWire, channelWire, memberWire, messageWire, ORDINARY_PERMISSIONS, userWire } from "./wire.js";
import type { Draft, World } from "./world.js";

/** A file that a person sends. */
export interface SentFile {
  name: string;
  /** Null: Discord does not say. */
  type: string | null;
  bytes: Buffer;
}

/** What goes along with a text. */
export interface Extras {
  replyTo?: Message;
  /** Whether a reply notifies its author; it does, unless switched off. */
  pings?: boolean;
  forwards?: Message;
  files?: readonly SentFile[];
  embeds?: unknown[];
  stickers?: unknown[];
}

/** What a person with a subscription may write in one message. */
const MAX_OF_PEOPLE = 4000;

export interface PeopleDeps {
  world: World;
  origin: () => string;
}

export class Person {
  constructor(
    readonly user: User,
    private readonly deps: PeopleDeps,
  ) {}

  get id(): string {
    return this.user.id;
  }

  /** The direct chat with the bot. */
  get chat(): Channel {
    return this.deps.world.directChat(this.user);
  }

  dm(content: string, extras: Extras = {}): Message {
    return this.says(this.chat, content, extras);
  }

  says(place: Channel, content: string, extras: Extras = {}): Message {
    if (place.isLocked || place.kind === ChannelKind.forum) throw new Error(`nobody can write in ${place.name}`);
    if (content.length > MAX_OF_PEOPLE) throw new Error("nobody can say so much");
    return this.deps.world.post(place, this.user, this.#draft(place, content, extras));
  }

  /** A thread in a text channel. */
  startsThread(parent: Channel, name: string): Channel {
    if (parent.guild === null) throw new Error("direct chats have no threads");
    return this.deps.world.channel(ChannelKind.thread, { name, guild: parent.guild, parent });
  }

  /** A post in a forum: a thread whose first message has the id of the thread. */
  posts(forum: Channel, title: string, content: string, extras: Extras = {}): { thread: Channel; message: Message } {
    if (forum.kind !== ChannelKind.forum) throw new Error(`${forum.name} is no forum`);
    const thread = this.startsThread(forum, title);
    const draft = { ...this.#draft(thread, content, extras), id: thread.id };
    return { thread, message: this.deps.world.post(thread, this.user, draft) };
  }

  edits(message: Message, content: string): void {
    if (message.author !== this.user) throw new Error("only its author can edit a message");
    this.deps.world.change(message, { content });
  }

  deletes(message: Message): void {
    this.deps.world.remove(message);
  }

  presses(message: Message, customId: string): Interaction {
    const buttons = message.components.flatMap(
      (row) => (row as { components: Array<{ custom_id?: string }> }).components,
    );
    if (!buttons.some((button) => button.custom_id === customId)) throw new Error(`there is no button ${customId}`);
    const data = { component_type: 2, custom_id: customId };
    return this.#interact({ kind: "button", name: customId, channel: message.channel, message }, data);
  }

  /** Runs a slash command that the bot has registered. */
  runs(place: Channel, name: string, options: Readonly<Record<string, string>> = {}): Interaction {
    const command = this.deps.world.commands.get(name) as
      | { id: string; options: Array<{ name: string; type: number }> }
      | undefined;
    if (command === undefined) throw new Error(`there is no command /${name}`);
    const given = Object.entries(options).map(([option, value]) => {
      const known = command.options.find((each) => each.name === option);
      if (known === undefined) throw new Error(`/${name} has no option ${option}`);
      return { name: option, type: known.type, value };
    });
    const data = { id: command.id, name, type: 1, options: given };
    return this.#interact({ kind: "command", name, channel: place, message: null }, data);
  }

  #draft(place: Channel, content: string, extras: Extras): Draft {
    const { world, origin } = this.deps;
    const { replyTo, forwards, files = [], embeds = [], stickers = [], pings = true } = extras;
    const attachments = files.map(({ name, type, bytes }) =>
      world.attach(place, { filename: name, contentType: type, bytes }, origin()),
    );
    const reference = replyTo ?? forwards;
    return {
      content: content.trim(),
      attachments,
      embeds,
      stickers,
      snapshots: forwards === undefined ? [] : [{ message: snapshotOf(forwards) }],
      reference: reference === undefined ? null : { message: reference, type: replyTo === undefined ? 1 : 0 },
      allowedMentions: { parse: ["users", "roles", "everyone"], replied_user: pings },
    };
  }

  #interact(what: Pick<Interaction, "kind" | "name" | "channel" | "message">, data: unknown): Interaction {
    const { world } = this.deps;
    const token = randomBytes(24).toString("base64url");
    const fresh = { state: "pending" as const, isEphemeral: false, original: null, followUps: [] };
    const interaction: Interaction = {
      id: world.ids.next(),
      token,
      user: this.user,
      createdMs: Date.now(),
      ...what,
      ...fresh,
    };
    world.interactions.set(interaction.id, interaction);
    world.tell({ t: "INTERACTION_CREATE", d: interactionWire(interaction, data, world.bot), intents: 0 });
    return interaction;
  }
}

function snapshotOf(message: Message): unknown {
  const { content, embeds, attachments, flags, sentMs, type } = message;
  const timestamp = new Date(sentMs).toISOString();
  const empty = { mentions: [], mention_roles: [], components: [] };
  return {
    type,
    content,
    embeds,
    flags,
    timestamp,
    edited_timestamp: null,
    attachments: attachments.map(attachmentWire),
    ...empty,
  };
}

function interactionWire(interaction: Interaction, data: unknown, bot: User): Record<string, unknown> {
  const { id, token, kind, user, channel, message } = interaction;
  const { guild } = channel;
  const person = userWire(user);
  const who =
    guild === null
      ? { user: person }
      : { member: { ...memberWire(), user: person, permissions: ORDINARY_PERMISSIONS } };
  const sight = { readsContent: true, bot };
  return {
    id,
    application_id: bot.id,
    type: kind === "command" ? 2 : 3,
    token,
    version: 1,
    data,
    channel_id: channel.id,
    channel: channelWire(channel),
    ...who,
    ...(guild === null
      ? {}
      : { guild_id: guild.id, guild: { id: guild.id, locale: "en-US", features: [] }, guild_locale: "en-US" }),
    ...(message === null ? {} : { message: messageWire(message, sight) }),
    app_permissions: ORDINARY_PERMISSIONS,
    locale: "en-US",
    entitlements: [],
    authorizing_integration_owners: guild === null ? { 1: user.id } : { 0: guild.id },
    context: guild === null ? 1 : 0,
    attachment_size_limit: 10_485_760,
  };
}

/**
 * The channels, threads and roles of the bot's guilds, as the gateway tells them; what it has not told is asked over REST.
 * It judges nobody. Invariant: where a message was said is known before it is read, or it is not read.
 */

import type { Place } from "./hear.js";
import type { Rest } from "./rest.js";
import {
  channelShape,
  DIRECT_TYPE,
  guildShape,
  isLater,
  isThreadType,
  threadListShape,
  type WireChannel,
  type WireMessage,
} from "./wire.js";

/** Categories, directories and forums: nothing is said in them. */
const WITHOUT_MESSAGES: readonly number[] = [4, 14, 15, 16];

/** What an event tells of the place where it was. */
type Said = Pick<WireMessage, "channel_id" | "guild_id" | "channel_type"> & Pick<WireChannel, "parent_id">;

export class Places {
  readonly #rest: Rest;
  readonly #places = new Map<string, Place>();
  readonly #newest = new Map<string, string>();
  readonly #roles = new Map<string, string>();

  constructor(rest: Rest) {
    this.#rest = rest;
  }

  /** Learns from an event of the gateway. Throws `ZodError` for a strange one. */
  take(t: string, d: unknown, selfId: string): void {
    switch (t) {
      case "GUILD_CREATE": {
        const { id, channels, threads, roles } = guildShape.parse(d);
        this.#learnAll(id, [...channels, ...threads]);
        const role = roles.find(({ tags }) => tags?.bot_id === selfId);
        if (role !== undefined) this.#roles.set(id, role.id);
        break;
      }
      case "THREAD_LIST_SYNC": {
        const { guild_id: id, threads } = threadListShape.parse(d);
        this.#learnAll(id, threads);
        break;
      }
      case "CHANNEL_CREATE":
      case "CHANNEL_UPDATE":
      case "THREAD_CREATE":
      case "THREAD_UPDATE":
        this.#learn(channelShape.parse(d));
        break;
      case "CHANNEL_DELETE":
      case "THREAD_DELETE": {
        const { id } = channelShape.parse(d);
        this.#places.delete(id);
        this.#newest.delete(id);
        break;
      }
      default:
        break;
    }
  }

  roleIn(guildId: string): string | undefined {
    return this.#roles.get(guildId);
  }

  /** True for a chat that is known to be between two people. */
  isDirect(channelId: string): boolean {
    return this.#places.get(channelId)?.kind === "direct";
  }

  /** The newest message of each channel of the guilds, as last told; its own id where nothing was said. */
  newest(): ReadonlyMap<string, string> {
    return this.#newest;
  }

  /** A direct chat that is remembered. */
  noteDirect(channelId: string): void {
    this.#places.set(channelId, { kind: "direct" });
  }

  known(channelId: string): Place | undefined {
    return this.#places.get(channelId);
  }

  /** Where something was said. Throws `RestError`. */
  async of(said: Said): Promise<Place | null> {
    const { channel_id: id, guild_id, channel_type: type, parent_id } = said;
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    const isTold = typeof type === "number" && (!isThreadType(type) || typeof parent_id === "string");
    if (isTold && (typeof guild_id === "string" || type === DIRECT_TYPE))
      this.#learn({ id, type, guild_id, parent_id });
    else this.#learn(channelShape.parse(await this.#rest.call({ method: "GET", path: `channels/${id}` })));
    return this.#places.get(id) ?? null;
  }

  #learnAll(guildId: string, channels: ReadonlyArray<WireChannel | null>): void {
    for (const channel of channels) if (channel !== null) this.#learn({ ...channel, guild_id: guildId });
  }

  #learn({ id, type, guild_id: guildId, parent_id: parentId, last_message_id: newest }: WireChannel): void {
    if (type === DIRECT_TYPE) this.noteDirect(id);
    if (typeof guildId !== "string") return;
    if (!isThreadType(type)) this.#places.set(id, { kind: "channel", guildId });
    else if (typeof parentId === "string") this.#places.set(id, { kind: "thread", guildId, parentId });
    const known = this.#newest.get(id);
    // Of a channel where nothing was said yet, everything is newer than itself.
    const told = newest ?? id;
    if (!WITHOUT_MESSAGES.includes(type) && (known === undefined || isLater(told, known))) this.#newest.set(id, told);
  }
}

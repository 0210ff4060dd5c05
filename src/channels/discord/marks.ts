/**
 * What was last read of each channel, and which direct chats there are: kept in the account's memory, so that a later life
 * knows what it missed. Invariant: a mark never runs ahead of what is stored or was judged; one that could not be kept is
 * older, which costs a repeated look and nothing else.
 */
import type { Logger } from "../../logger.js";
import type { AccountMemory } from "../ports.js";
import { isLater, isSnowflake } from "./wire.js";

const SEEN = "seen:";
const DIRECT = "dm:";

export class Marks {
  readonly #memory: AccountMemory;
  readonly #logger: Logger;
  readonly #seen = new Map<string, string>();
  readonly #directs = new Set<string>();
  /** Channels whose mark has moved since it was kept. */
  readonly #unkept = new Set<string>();

  private constructor(memory: AccountMemory, logger: Logger) {
    this.#memory = memory;
    this.#logger = logger;
  }

  /** Throws `BUS_UNAVAILABLE`. */
  static async load(memory: AccountMemory, logger: Logger): Promise<Marks> {
    const marks = new Marks(memory, logger);
    for (const [name, id] of await memory.list(SEEN)) if (isSnowflake(id)) marks.#seen.set(name.slice(SEEN.length), id);
    for (const name of (await memory.list(DIRECT)).keys()) marks.#directs.add(name.slice(DIRECT.length));
    return marks;
  }

  seen(): ReadonlyMap<string, string> {
    return this.#seen;
  }

  directs(): ReadonlySet<string> {
    return this.#directs;
  }

  /** Read up to this message; kept with the next `flush`. */
  note(channelId: string, messageId: string): void {
    const known = this.#seen.get(channelId);
    if (known !== undefined && !isLater(messageId, known)) return;
    this.#seen.set(channelId, messageId);
    this.#unkept.add(channelId);
  }

  /** Read up to this message; kept at once. */
  async keep(channelId: string, messageId: string): Promise<void> {
    this.note(channelId, messageId);
    if (this.#unkept.has(channelId)) await this.#keep(channelId);
  }

  async noteDirect(channelId: string): Promise<void> {
    if (this.#directs.has(channelId)) return;
    this.#directs.add(channelId);
    await this.#try(() => this.#memory.set(`${DIRECT}${channelId}`, "known"), channelId);
  }

  /** A channel that is gone. */
  async forget(channelId: string): Promise<void> {
    this.#unkept.delete(channelId);
    this.#directs.delete(channelId);
    if (this.#seen.delete(channelId)) await this.#try(() => this.#memory.forget(`${SEEN}${channelId}`), channelId);
  }

  /** Keeps every mark that has moved. */
  async flush(): Promise<void> {
    for (const channelId of [...this.#unkept]) await this.#keep(channelId);
  }

  async #keep(channelId: string): Promise<void> {
    const id = this.#seen.get(channelId);
    if (id === undefined) return;
    this.#unkept.delete(channelId);
    const isKept = await this.#try(() => this.#memory.set(`${SEEN}${channelId}`, id), channelId);
    if (!isKept) this.#unkept.add(channelId);
  }

  async #try(work: () => Promise<void>, channelId: string): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.#logger.debug({ err: error, chatId: channelId }, "a mark of what was read could not be kept");
      return false;
    }
  }
}

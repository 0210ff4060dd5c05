/**
 * Groups that got another id when they became supergroups, as the account remembers them. Invariant: a group keeps the
 * names under which the configuration may know it; a memory that cannot be asked costs old names and no message.
 */
import type { Logger } from "../../logger.js";
import type { AccountMemory } from "../ports.js";

const PREFIX = "moved:";

interface Where {
  memory: AccountMemory;
  logger: Logger;
}

export class MovedGroups {
  #former: Promise<Map<string, string>> | null = null;

  /** A group has become another one. */
  async note(fromChatId: string, toChatId: string, { memory, logger }: Where): Promise<void> {
    logger.info({ chatId: fromChatId, toChatId }, "a group has got another id; it is answered there");
    await memory.set(`${PREFIX}${toChatId}`, fromChatId);
    (await this.#known({ memory, logger })).set(toChatId, fromChatId);
  }

  /** The ids of a chat, its present one first. */
  async idsOf(chatId: string, where: Where): Promise<string[]> {
    const former = (await this.#known(where)).get(chatId);
    return former === undefined ? [chatId] : [chatId, former];
  }

  async #known({ memory, logger }: Where): Promise<Map<string, string>> {
    this.#former ??= memory
      .list(PREFIX)
      .then((found) => new Map([...found].map(([name, value]) => [name.slice(PREFIX.length), value])));
    try {
      return await this.#former;
    } catch (error) {
      this.#former = null;
      logger.warn({ err: error }, "former ids of groups could not be read");
      return new Map();
    }
  }
}

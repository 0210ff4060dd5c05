/**
 * What other bots may say, over Redis: a sliding window for each channel, chat and bot. It does not know which bots are
 * allowed at all. Invariant: over all processes no more is taken in any window than was allowed, and a repeated message
 * counts once.
 */
import type { BotBudget, BotSpending } from "../channels/ports.js";
import { list, UnexpectedReply } from "./reply.js";
import type { Scripts } from "./scripts.js";

export class RedisBotBudget implements BotBudget {
  readonly #scripts: Pick<Scripts, "run">;

  constructor(scripts: Pick<Scripts, "run">) {
    this.#scripts = scripts;
  }

  async spend(spending: BotSpending): Promise<"taken" | "spent" | "still_spent"> {
    const { channel, chatId, botId, messageId: message, messages, perMs } = spending;
    // Ids may hold any sign, so their borders must not be one.
    const bot = JSON.stringify([channel, chatId, botId]);
    const [outcome] = list(await this.#scripts.run("bot-budget", { bot, message, messages, perMs }));
    if (outcome === "taken" || outcome === "spent" || outcome === "still_spent") return outcome;
    throw new UnexpectedReply("bot-budget");
  }
}

/**
 * Tells the platform that a press has arrived: the button stops turning, and the buttons go, so that nobody presses twice.
 * Invariant: it is a courtesy; what fails or takes long is logged and changes nothing.
 */
import type { Api } from "grammy";
import type { Logger } from "../../logger.js";
import type { Clock } from "../clock.js";
import { safeError } from "./api-error.js";
import { withDeadline } from "./deadline.js";
import type { Saying } from "./parse.js";
import { sdkSignal } from "./sdk-signal.js";

/** The press itself waits for this. */
const LIMIT_MS = 3_000;

export interface PressDeps {
  api: Api;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
}

/** Never rejects. */
export async function acknowledgePress(press: NonNullable<Saying["press"]>, deps: PressDeps): Promise<void> {
  const { queryId, chatId, messageId } = press;
  const { api, clock, logger, signal } = deps;
  const courtesy = (call: (signal: AbortSignal) => Promise<unknown>) =>
    withDeadline({ clock, ms: LIMIT_MS, signal }, call);
  const outcomes = await Promise.allSettled([
    courtesy((limit) => api.answerCallbackQuery(queryId, {}, sdkSignal(limit))),
    courtesy((limit) => api.editMessageReplyMarkup(chatId, messageId, {}, sdkSignal(limit))),
  ]);
  for (const outcome of outcomes)
    if (outcome.status === "rejected")
      logger.debug({ err: safeError(outcome.reason), chatId, messageId }, "a press could not be acknowledged");
}

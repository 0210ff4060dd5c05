/**
 * The outgoing half of the Telegram channel: how a message is cut, sent, limited and shown while it is made. It polls
 * nothing and knows no order of deliveries. Invariant: it throws, and never waits or repeats on its own.
 */
import type { Api } from "grammy";
import type { Logger } from "../../logger.js";
import type { LiveView, OutboxChannel } from "../channel.js";
import type { MediaShelf } from "../ports.js";
import { limitsOf } from "./limits.js";
import { TelegramLiveView } from "./live.js";
import type { TelegramOutletConfig, TelegramPart } from "./part.js";
import { partsOf } from "./parts.js";
import { sendPart } from "./send.js";

export interface TelegramOutletDeps {
  /** Asked for each call, so it may be a getter: connections are renewed. */
  readonly api: Api;
  pathOf: MediaShelf["pathOf"];
  config: TelegramOutletConfig;
  logger: Logger;
}

export type TelegramOutlet = Pick<OutboxChannel<TelegramPart>, "parts" | "send" | "limits"> & {
  readonly live: LiveView<TelegramPart>;
};

export function createTelegramOutlet(deps: TelegramOutletDeps): TelegramOutlet {
  return {
    parts: (message) => partsOf(message, deps.config),
    send: async ({ part, signal }) => ({ platformId: await sendPart(deps, part, signal) }),
    limits: (_, part) => limitsOf(part),
    live: new TelegramLiveView(deps),
  };
}

/**
 * The owner's part of webhook mode: the platform is told where to bring updates, and asked from time to time how that goes.
 * Invariant: what the platform says of failing deliveries becomes the channel's health while they fail, and no longer.
 */
import type { Api } from "grammy";
import type { Logger } from "../../logger.js";
import type { Clock } from "../clock.js";
import type { InboundHealth } from "./health.js";
import { sdkSignal } from "./sdk-signal.js";
import { ALLOWED_UPDATES } from "./wire.js";

const WATCH_MS = 60_000;
/** An error of longer ago says nothing about now. */
const RECENT_S = 120;
/** Deliveries at once. */
const MAX_CONNECTIONS = 8;

export interface WebhookWatchDeps {
  api: () => Api;
  clock: Clock;
  health: InboundHealth;
  webhook: { url: string; secret: string };
  /** ms since the epoch. */
  wallMs: () => number;
  onProgress: () => void;
}

/** Sets the webhook. */
export async function setWebhook(
  { api, webhook }: Pick<WebhookWatchDeps, "api" | "webhook">,
  signal: AbortSignal,
): Promise<void> {
  const options = {
    secret_token: webhook.secret,
    allowed_updates: ALLOWED_UPDATES,
    max_connections: MAX_CONNECTIONS,
  };
  await api().setWebhook(webhook.url, options, sdkSignal(signal));
}

/** Watches until the signal aborts. Throws what a call threw. */
export async function watchWebhook(
  deps: WebhookWatchDeps,
  { logger, signal }: { logger: Logger; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    const info = await deps.api().getWebhookInfo(sdkSignal(signal));
    const { url, pending_update_count: pending, last_error_date: failedS = 0, last_error_message: why = "" } = info;
    if (url !== deps.webhook.url) {
      logger.warn({}, "somebody else changed the webhook; it is set again");
      await setWebhook(deps, signal);
    }
    deps.onProgress();
    if (pending > 0 && deps.wallMs() / 1000 - failedS < RECENT_S)
      deps.health.failed({
        code: "TELEGRAM_WEBHOOK_FAILING",
        problem: `Telegram cannot bring ${pending} updates: ${why.slice(0, 200)}`,
        kind: "deaf",
      });
    await deps.clock.sleep(WATCH_MS, signal);
    if (signal.aborted) return;
  }
}

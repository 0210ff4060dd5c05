/**
 * Updates that the platform brings: who knows the secret is heard, and is told so only when the update is stored. It listens
 * nowhere itself; any process may take one in, also one that does not own the account. Invariants: nothing is read before
 * the secret is checked; 200 means stored or rightly skipped; what cannot be stored is asked for again by 503.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { hasCode } from "../../errors.js";
import type { ChannelContext } from "../channel.js";
import { safeError } from "./api-error.js";
import type { Intake } from "./intake.js";
import type { Me } from "./parse-address.js";
import { numbered } from "./wire.js";

/** A request as it came in; header names in lower case. */
export interface WebhookRequest {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The JSON, parsed or as text. */
  body: unknown;
}

/** What the platform is told: stored or rightly skipped, not for you, bring it again. */
export type WebhookStatus = 200 | 401 | 503;

export interface Webhook {
  handle(request: WebhookRequest, context: ChannelContext): Promise<WebhookStatus>;
}

export interface WebhookDeps {
  secret: string;
  intake: Intake;
  /** Who the bot is; asks the platform the first time. */
  whoAmI: () => Promise<Me>;
  /** Aborts when the channel ends for good. */
  signal: AbortSignal;
}

const SECRET_HEADER = "x-telegram-bot-api-secret-token";

export function createWebhook({ secret, intake, whoAmI, signal }: WebhookDeps): Webhook {
  const underWay = new Map<number, Promise<WebhookStatus>>();
  const take = async (update: { update_id: number }, context: ChannelContext): Promise<WebhookStatus> => {
    try {
      await intake.take(update, { me: await whoAmI(), context, signal, insist: (step) => step() });
      return 200;
    } catch (error) {
      return statusOf(error, update.update_id, context);
    }
  };
  return {
    handle: async ({ headers, body }, context) => {
      if (!isSame(headers[SECRET_HEADER], secret)) return 401;
      const json = typeof body === "string" || body instanceof Uint8Array ? parsed(body) : body;
      const read = numbered.safeParse(json);
      if (!read.success || typeof json !== "object" || json === null) {
        context.logger.warn({}, "an update without a number was skipped");
        return 200;
      }
      const { update_id: id } = read.data;
      // One that takes long is brought again: that waits for the same work.
      const work = underWay.get(id) ?? take({ ...json, update_id: id }, context).finally(() => underWay.delete(id));
      underWay.set(id, work);
      return work;
    },
  };
}

function statusOf(error: unknown, update: number, { logger }: ChannelContext): WebhookStatus {
  const isPassing =
    hasCode(error, "BUS_OVERLOADED") ||
    hasCode(error, "BUS_UNAVAILABLE") ||
    (error instanceof Error && ["HttpError", "GrammyError", "AbortError"].includes(error.name));
  if (isPassing) logger.warn({ err: safeError(error), update }, "an update cannot be stored now; it will come again");
  else logger.error({ err: safeError(error), update }, "an update could not be handled and was skipped");
  return isPassing ? 503 : 200;
}

function parsed(body: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return null;
  }
}

/** Takes as long whatever was presented. */
function isSame(presented: string | string[] | undefined, secret: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(typeof presented === "string" ? presented : ""), digest(secret));
}

/**
 * Answers to slash commands: the first goes into the "thinking" line that only the asker sees, the next ones behind it. What
 * it does not know of (after a restart, or too late) is a plain message of the sender's. Invariant: the token of an
 * interaction stays in this memory and ends with its time.
 */
import { DeliveryError } from "../channel.js";
import type { Clock } from "../clock.js";
import type { DiscordRequest } from "./parts.js";
import { idIn, type Rest, type RestCall, RestError } from "./rest.js";
import { EPHEMERAL_FLAG } from "./wire.js";

/** How long Discord takes an answer, a little less than its 15 min, ms. */
const OPEN_MS = 14 * 60_000;
/** The interaction is over, or its line is gone. */
const OVER = [10008, 10015, 10062, 50027];

interface Open {
  applicationId: string;
  token: string;
  untilMs: number;
  isAnswered: boolean;
}

export class AnswerDesk {
  readonly #rest: Rest;
  readonly #clock: Clock;
  readonly #open = new Map<string, Open>();

  constructor({ rest, clock }: { rest: Rest; clock: Clock }) {
    this.#rest = rest;
    this.#clock = clock;
  }

  /** From now on the answers to this interaction go into its line. */
  expect(interaction: { id: string; application_id: string; token: string }): void {
    const nowMs = this.#clock.nowMs();
    for (const [id, { untilMs }] of this.#open) if (untilMs < nowMs) this.#open.delete(id);
    const { id, application_id: applicationId, token } = interaction;
    this.#open.set(id, { applicationId, token, untilMs: nowMs + OPEN_MS, isAnswered: false });
  }

  /** Whether answers to this message are shown to its asker only. */
  knows(messageId: string | undefined): boolean {
    const open = messageId === undefined ? undefined : this.#open.get(messageId);
    return open !== undefined && open.untilMs >= this.#clock.nowMs();
  }

  /** Null: it is no answer to an open interaction. Throws `RestError`, and `DeliveryError` where repeating could show it twice. */
  async answer(
    { message, part, signal }: DiscordRequest,
    body: Record<string, unknown>,
  ): Promise<{ platformId: string } | null> {
    const { replyTo } = message;
    const open = replyTo === undefined ? undefined : this.#open.get(replyTo);
    if (replyTo === undefined || open === undefined || !this.knows(replyTo) || part.files.length > 0) return null;
    const { content, components, allowed_mentions } = body;
    const shown = { content, components, allowed_mentions };
    try {
      const sent = await this.#rest.call({ ...callOf(open, shown), isOpen: true, signal });
      open.isAnswered = true;
      return { platformId: idIn(sent) };
    } catch (error) {
      const failure = error instanceof RestError ? error.failure : null;
      // A line behind the first carries no nonce: sent again, it would stand there twice.
      if (failure?.kind === "unclear" && open.isAnswered)
        throw new DeliveryError({ kind: "unknown" }, "nobody knows whether it was shown", { cause: error });
      if (failure?.kind !== "refused" || !OVER.includes(failure.code)) throw error;
      this.#open.delete(replyTo);
      return null;
    }
  }
}

/** The first answer fills the line that is there, which may be repeated; the others are lines of their own. */
function callOf({ applicationId, token, isAnswered }: Open, shown: Record<string, unknown>): RestCall {
  const path = `webhooks/${applicationId}/${token}`;
  if (!isAnswered) return { method: "PATCH", path: `${path}/messages/@original`, body: shown };
  return { method: "POST", path, query: { wait: "true" }, body: { ...shown, flags: EPHEMERAL_FLAG } };
}

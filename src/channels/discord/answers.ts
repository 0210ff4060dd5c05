/**
 * Answers to slash commands: the first goes into the "thinking" line that only the asker sees, the next ones behind it. What
 * it does not know of (after a restart, or too late) is a plain message of the sender's. Invariant: the token of an
 * interaction stays in this memory and ends with its time.
 */
import type { Clock } from "../clock.js";
import type { DiscordRequest } from "./parts.js";
import { idIn, type Rest, RestError } from "./rest.js";
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

  /** Null: it is no answer to an open interaction. Throws `RestError`. */
  async answer(
    { message, part, signal }: DiscordRequest,
    body: Record<string, unknown>,
  ): Promise<{ platformId: string } | null> {
    const { replyTo } = message;
    const open = replyTo === undefined ? undefined : this.#open.get(replyTo);
    if (replyTo === undefined || open === undefined || !this.knows(replyTo) || part.files.length > 0) return null;
    const { content, components, allowed_mentions } = body;
    const shown = { content, components, allowed_mentions };
    const hook = `webhooks/${open.applicationId}/${open.token}`;
    try {
      const sent = open.isAnswered
        ? await this.#rest.call({
            method: "POST",
            path: hook,
            query: { wait: "true" },
            body: { ...shown, flags: EPHEMERAL_FLAG },
            isOpen: true,
            signal,
          })
        : await this.#rest.call({
            method: "PATCH",
            path: `${hook}/messages/@original`,
            body: shown,
            isOpen: true,
            signal,
          });
      open.isAnswered = true;
      return { platformId: idIn(sent) };
    } catch (error) {
      const isOver =
        error instanceof RestError && error.failure.kind === "refused" && OVER.includes(error.failure.code);
      if (!isOver) throw error;
      this.#open.delete(replyTo);
      return null;
    }
  }
}

/**
 * The updates that wait for the bot: one long poll at a time, or a webhook. It makes none itself. Invariants: an update is
 * forgotten only by an offset beyond it or by a 2xx of the webhook; a second poll ends the first with 409.
 */
import { randomInt } from "node:crypto";
import type { Update, WebhookInfo } from "grammy/types";
import type { Journal } from "./journal.js";
import { conflict } from "./refusal.js";
import { type Hook, WebhookSender } from "./webhook-sender.js";

export interface Asking {
  offset: number | null;
  limit: number;
  timeoutMs: number;
  allowed: readonly string[] | null;
  /** Aborts when whoever asks has gone. */
  signal: AbortSignal;
}

export interface Waiting {
  update: Update;
  /** Whether it was ever given to somebody. */
  isGiven: boolean;
}

/** What is left out unless it is asked for. */
const RARE: readonly string[] = ["chat_member", "message_reaction", "message_reaction_count"];

export class Updates {
  readonly #waiting: Waiting[] = [];
  readonly #sender: WebhookSender;
  #nextId = randomInt(100_000_000, 900_000_000);
  #allowed: readonly string[] | null = null;
  /** The poll that is open: `look` answers it if it can, `stop` with nothing, `end` with a refusal. */
  #poll: { look: () => void; stop: () => void; end: (error: Error) => void } | null = null;
  #hook: Hook | null = null;

  constructor(
    private readonly journal: Journal,
    route: (url: string) => string,
  ) {
    this.#sender = new WebhookSender({
      route,
      waiting: () => this.#waiting,
      taken: (update) => this.#forget((each) => each.update === update),
    });
  }

  /** Updates that are not confirmed. */
  get pending(): readonly Update[] {
    return this.#waiting.map(({ update }) => update);
  }

  /** Whether somebody is asking at this moment. */
  get isPolled(): boolean {
    return this.#poll !== null;
  }

  isConfirmed(updateId: number): boolean {
    return !this.pending.some(({ update_id }) => update_id === updateId);
  }

  /** Whether somebody was given it, or had it confirmed. */
  isGiven(updateId: number): boolean {
    return !this.#waiting.some(({ update, isGiven }) => update.update_id === updateId && !isGiven);
  }

  /** A new update of this kind; its id, also where the bot did not ask for such. */
  push(kind: string, content: unknown): number {
    const isWanted = this.#allowed === null ? !RARE.includes(kind) : this.#allowed.includes(kind);
    return this.raw({ [kind]: content }, isWanted);
  }

  /** An update of any shape. */
  raw(fields: Record<string, unknown>, isWanted = true): number {
    const update_id = this.#nextId;
    this.#nextId += 1;
    // As of now: what changes later is another update.
    if (isWanted) this.#waiting.push({ update: structuredClone({ update_id, ...fields }), isGiven: false });
    this.#poll?.look();
    this.#sender.wake();
    return update_id;
  }

  /** Numbers go on from elsewhere, as after a week without updates. */
  renumber(nextId: number): void {
    this.#nextId = nextId;
  }

  /** Throws a refusal where somebody else gets the updates. */
  async ask(asking: Asking): Promise<Update[]> {
    if (this.#hook !== null)
      throw conflict(
        "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
      );
    this.#poll?.end(
      conflict("terminated by other getUpdates request; make sure that only one bot instance is running"),
    );
    this.#allow(asking.allowed);
    this.#confirm(asking.offset);
    const { limit, timeoutMs, signal } = asking;
    if (this.#waiting.length === 0 && timeoutMs > 0) await this.#arrival(timeoutMs, signal);
    return this.#waiting.slice(0, limit).map(({ update }) => update);
  }

  /** These have arrived at whoever asked. */
  given(updates: readonly Update[]): void {
    for (const waiting of this.#waiting) if (updates.includes(waiting.update)) waiting.isGiven = true;
    this.journal.changed();
  }

  #arrival(timeoutMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", stop);
        this.#poll = null;
        this.journal.changed();
      };
      const stop = () => {
        over();
        resolve();
      };
      const timer = setTimeout(stop, timeoutMs);
      signal.addEventListener("abort", stop);
      this.#poll = {
        look: () => this.#waiting.length > 0 && stop(),
        stop,
        end: (error) => {
          over();
          reject(error);
        },
      };
      this.journal.changed();
    });
  }

  #allow(allowed: readonly string[] | null): void {
    if (allowed !== null) this.#allowed = allowed.length === 0 ? null : allowed;
  }

  #confirm(offset: number | null): void {
    if (offset === null || offset === 0) return;
    const first = offset > 0 ? offset : (this.#waiting.at(offset)?.update.update_id ?? 0);
    for (const { update, isGiven } of this.#waiting)
      if (offset > 0 && update.update_id < first && !isGiven)
        this.journal.violated("unseen_confirmed", `update ${update.update_id} was confirmed and never given out`);
    this.#forget(({ update }) => update.update_id < first);
  }

  #forget(isOver: (waiting: Waiting) => boolean): void {
    for (let at = this.#waiting.length - 1; at >= 0; at -= 1) {
      const waiting = this.#waiting[at];
      if (waiting !== undefined && isOver(waiting)) this.#waiting.splice(at, 1);
    }
    this.journal.changed();
  }

  setHook(hook: Hook, allowed: readonly string[] | null): void {
    this.#poll?.end(conflict("terminated by setWebhook request"));
    this.#allow(allowed);
    this.#hook = hook;
    this.#sender.use(hook);
  }

  deleteHook(): void {
    this.#hook = null;
    this.#sender.use(null);
  }

  dropPending(): void {
    this.#forget(() => true);
  }

  get info(): WebhookInfo {
    const { lastError } = this.#sender;
    return {
      url: this.#hook?.url ?? "",
      has_custom_certificate: false,
      pending_update_count: this.#waiting.length,
      ...(this.#hook === null ? {} : { max_connections: this.#hook.connections }),
      ...(lastError === null ? {} : { last_error_date: lastError.date, last_error_message: lastError.message }),
      ...(this.#allowed === null ? {} : { allowed_updates: [...this.#allowed] as WebhookInfo["allowed_updates"] }),
    } as WebhookInfo;
  }

  close(): void {
    this.#sender.use(null);
    this.#poll?.stop();
  }
}

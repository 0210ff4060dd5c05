/**
 * Brings updates to a webhook: in order within a chat, chats side by side, again and again until a 2xx. It keeps nothing.
 * Invariant: an update counts as taken only after a 2xx.
 */
import type { Update } from "grammy/types";

export interface Hook {
  url: string;
  secret: string | null;
  /** Requests at once. */
  connections: number;
}

export interface WebhookSenderDeps {
  /** Where a public address leads to, as a proxy in front of the gateway would know. */
  route: (url: string) => string;
  waiting: () => ReadonlyArray<{ update: Update; isGiven: boolean }>;
  taken: (update: Update) => void;
}

/** Between two tries. */
const RETRY_MS = 100;

export class WebhookSender {
  readonly #busy = new Set<string>();
  #run: { hook: Hook; over: AbortController } | null = null;
  lastError: { date: number; message: string } | null = null;

  constructor(private readonly deps: WebhookSenderDeps) {}

  /** Updates go there from now on; null: nowhere. */
  use(hook: Hook | null): void {
    this.#run?.over.abort();
    this.#busy.clear();
    this.lastError = null;
    this.#run = hook === null ? null : { hook, over: new AbortController() };
    this.wake();
  }

  /** Something may wait. */
  wake(): void {
    const run = this.#run;
    if (run === null) return;
    for (const { update } of this.deps.waiting()) {
      const chat = chatOf(update);
      if (this.#busy.size >= run.hook.connections) return;
      if (this.#busy.has(chat)) continue;
      this.#busy.add(chat);
      void this.#bring(update, run).then(() => {
        if (this.#run !== run) return;
        this.#busy.delete(chat);
        this.wake();
      });
    }
  }

  async #bring(update: Update, { hook, over }: { hook: Hook; over: AbortController }): Promise<void> {
    while (!over.signal.aborted) {
      const problem = await this.#try(update, hook, over.signal);
      if (problem === null) return this.deps.taken(update);
      this.lastError = { date: Math.floor(Date.now() / 1000), message: problem };
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /** What went wrong; null for nothing. */
  async #try(update: Update, { url, secret }: Hook, signal: AbortSignal): Promise<string | null> {
    const headers = {
      "content-type": "application/json",
      ...(secret === null ? {} : { "x-telegram-bot-api-secret-token": secret }),
    };
    try {
      const body = JSON.stringify(update);
      const response = await fetch(this.deps.route(url), { method: "POST", headers, body, signal });
      await response.arrayBuffer();
      return response.ok ? null : `Wrong response from the webhook: ${response.status} ${response.statusText}`;
    } catch (error) {
      return signal.aborted ? "stopped" : `Connection failed: ${error instanceof Error ? error.message : "unknown"}`;
    }
  }
}

function chatOf(update: Update): string {
  const { message, edited_message: edited, callback_query: press } = update;
  const chat = message?.chat?.id ?? edited?.chat?.id ?? press?.message?.chat?.id;
  return chat === undefined ? `update ${update.update_id}` : String(chat);
}

/** One-time tokens in memory; how long a look-up takes, and whether it fails, is a test's choice. */
import type { IssuedToken, OneTimeTokens } from "../../src/channels/websocket/ports.js";

export class MemoryTokens implements OneTimeTokens {
  readonly #alive = new Map<string, string>();
  /** Runs before a token is looked up. */
  beforeRedeem: () => Promise<void> = async () => {};
  /** What a full store says; null while there is room. */
  fullForMs: number | null = null;

  async issue(clientId: string): Promise<IssuedToken> {
    if (this.fullForMs !== null) return { ok: false, retryAfterMs: this.fullForMs };
    const token = `token-${this.#alive.size + 1}-of-${clientId}`;
    this.#alive.set(token, clientId);
    return { ok: true, token, ttlMs: 300_000 };
  }

  async redeem(token: string): Promise<string | null> {
    await this.beforeRedeem();
    const clientId = this.#alive.get(token) ?? null;
    this.#alive.delete(token);
    return clientId;
  }
}

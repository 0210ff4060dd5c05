/** Lossy events in memory: what is published while somebody follows reaches them, the rest is gone. */
import type { OutboundMessage } from "../../src/bus/messages.js";
import type { LiveEvents } from "../../src/channels/ports.js";

type Listener = (message: OutboundMessage) => void;

export class MemoryLive implements LiveEvents {
  readonly #listeners = new Map<string, Set<Listener>>();
  /** Thrown by `follow` while set. */
  failure: Error | null = null;

  async follow(account: string, listener: Listener): Promise<() => Promise<void>> {
    if (this.failure !== null) throw this.failure;
    const listeners = this.#listeners.get(account) ?? new Set();
    this.#listeners.set(account, listeners.add(listener));
    return async () => void listeners.delete(listener);
  }

  followers(account: string): number {
    return this.#listeners.get(account)?.size ?? 0;
  }

  publish(account: string, message: OutboundMessage): void {
    for (const listener of [...(this.#listeners.get(account) ?? [])]) listener(structuredClone(message));
  }
}

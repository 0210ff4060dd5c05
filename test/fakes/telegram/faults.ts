/**
 * Faults on order: the next calls of a method are held, cut, delayed or refused. It does nothing by chance. Invariant: a
 * fault strikes as often as ordered, in the order of ordering, and nothing else goes wrong.
 */

export type Fault =
  /** It is never answered. */
  | { kind: "hold"; effect: "before" | "after" }
  /** The connection is cut; `after`: what was asked for has happened. */
  | { kind: "reset"; effect: "before" | "after" }
  /** It is answered late. */
  | { kind: "slow"; ms: number }
  /** Not Telegram but what stands before it answers. */
  | { kind: "gateway"; status: number; effect: "before" | "after" }
  /** Telegram refuses. */
  | { kind: "refuse"; code: number; description: string; retryAfter?: number };

interface Order {
  /** `*`: every method; `file`: a download. */
  method: string;
  chatId: number | null;
  fault: Fault;
  left: number;
}

export interface FaultOrder {
  chatId?: number;
  /** How often; once when left out, `Infinity` for ever. */
  times?: number;
}

export class Faults {
  readonly #orders: Order[] = [];

  /** Orders a fault; the returned function takes back what is left of it. */
  order(method: string, fault: Fault, { chatId, times = 1 }: FaultOrder = {}): () => void {
    const order = { method, chatId: chatId ?? null, fault, left: times };
    this.#orders.push(order);
    return () => {
      order.left = 0;
    };
  }

  /** The fault of this call; null for none. */
  take(method: string, chatId: number | null): Fault | null {
    const order = this.#orders.find(
      (each) =>
        each.left > 0 &&
        (each.method === method || each.method === "*") &&
        (each.chatId === null || each.chatId === chatId),
    );
    if (order === undefined) return null;
    order.left -= 1;
    return order.fault;
  }
}

/**
 * Faults that a test scripts into the REST side: what happens to the next calls of a route. It answers nothing itself.
 * Invariant: a fault is used as often as it was ordered, by the first calls that fit, in their order.
 */
import type { RefusalCode } from "./refusal.js";

/** `hasEffect`: whether the call did what it asked before it went wrong. */
export type Fault =
  | { kind: "reset"; hasEffect: boolean }
  | { kind: "status"; status: 500 | 502 | 503 | 504; hasEffect: boolean }
  /** 429, and the bucket (or everything) stays closed for so long. */
  | { kind: "limited"; retryAfterMs: number; isGlobal?: boolean }
  | { kind: "refuse"; code: RefusalCode };

/** Which calls: `POST /channels/:channel/messages`, and where it says so, of one channel, or with such a body. */
export interface Aim {
  call: string;
  major?: string;
  times?: number;
  fits?: (body: unknown) => boolean;
}

export interface Hold {
  /** Resolves when the first call that fits is there. */
  arrived: Promise<void>;
  /** Lets it and those behind it go on. Idempotent. */
  release: () => void;
}

interface Order extends Required<Omit<Aim, "major" | "fits">>, Pick<Aim, "major" | "fits"> {
  fault: Fault;
}

interface Gate extends Aim {
  opened: Promise<void>;
  onArrival: () => void;
}

export class Faults {
  readonly #orders: Order[] = [];
  readonly #gates = new Set<Gate>();

  /** The next call that fits (or the next `times`) goes wrong. */
  next(aim: Aim, fault: Fault): void {
    this.#orders.push({ times: 1, ...aim, fault });
  }

  /** Calls that fit wait, before they have any effect. */
  hold(aim: Aim): Hold {
    let open = (): void => {};
    let onArrival = (): void => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const arrived = new Promise<void>((resolve) => {
      onArrival = resolve;
    });
    const gate: Gate = { ...aim, opened, onArrival };
    this.#gates.add(gate);
    const release = () => {
      this.#gates.delete(gate);
      open();
    };
    return { arrived, release };
  }

  /** Waits at the gates that this call meets. */
  async pass(call: string, major: string, body: unknown): Promise<void> {
    for (const gate of [...this.#gates].filter((each) => isAimed(each, call, major, body))) {
      gate.onArrival();
      await gate.opened;
    }
  }

  /** The fault of this call, used up; null when it goes right. */
  take(call: string, major: string, body: unknown): Fault | null {
    const order = this.#orders.find((each) => isAimed(each, call, major, body));
    if (order === undefined) return null;
    order.times -= 1;
    if (order.times <= 0) this.#orders.splice(this.#orders.indexOf(order), 1);
    return order.fault;
  }
}

function isAimed(aim: Aim, call: string, major: string, body: unknown): boolean {
  return aim.call === call && (aim.major ?? major) === major && (aim.fits?.(body) ?? true);
}

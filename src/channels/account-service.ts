/**
 * What an owner does for its account while it owns it: puts the parts of delivery together over one set of lanes, runs them,
 * and ends them in order. It takes no ownership and starts no channel. Invariant: everything that is shown for the account
 * goes through the same limits, and through the lane of its chat.
 */
import { setMaxListeners } from "node:events";
import type { Delivery, OutboxStore } from "../bus/delivery-ports.js";
import type { FaultHook } from "../faults.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Authority } from "./authority.js";
import { Caller } from "./caller.js";
import type { OutboxChannel } from "./channel.js";
import type { Clock } from "./clock.js";
import { consumeOutbox } from "./consumer.js";
import { Deliverer } from "./delivery.js";
import { Lanes } from "./lanes.js";
import { LimitGate } from "./limit-gate.js";
import { LiveDesk } from "./live-desk.js";
import { LivePainter } from "./live-painter.js";
import { LiveTurns } from "./live-turns.js";
import type { Ownership } from "./ownership.js";
import type { LiveEvents, RateLimiter } from "./ports.js";
import type { Receipts } from "./receipts.js";
import { ShownStreams } from "./shown.js";
import { Working } from "./working.js";

export interface AccountServiceDeps {
  channel: OutboxChannel;
  outbox: OutboxStore;
  /** Lives longer than one ownership. */
  receipts: Receipts;
  limiter: RateLimiter;
  live: LiveEvents;
  clock: Clock;
  faults: FaultHook;
  logger: Logger;
  metrics: Metrics;
  sendTimeoutMs: number;
  /** The time of day, ms since the epoch. */
  wallMs: () => number;
}

/** Serves until `stopReading` or a loss, then finishes what the lanes have begun, at the latest until `stopSending`. */
export async function serveAccount(
  deps: AccountServiceDeps,
  ownership: Ownership,
  { stopReading, stopSending }: { stopReading: AbortSignal; stopSending: AbortSignal },
): Promise<void> {
  const { channel, outbox, clock, logger } = deps;
  const { account } = channel;
  const ending = AbortSignal.any([stopReading, ownership.signal]);
  const authority: Authority = {
    fence: ownership.fence,
    signal: AbortSignal.any([ownership.signal, stopSending]),
    ending,
    isHeld: () => ownership.isHeld() && !stopSending.aborted,
  };
  // Every lane may wait on these at once.
  setMaxListeners(0, ending, authority.signal);
  const lanes = new Lanes((lane, error) => logger.error({ err: error, lane, account }, "a lane failed"));
  const { deliverer, desk } = build(deps, { lanes, authority, onLost: () => ownership.lose() });
  try {
    await consumeOutbox({ account, outbox, deliverer, lanes, clock, logger }, authority, () => ownership.lose());
    await lanes.idle();
  } finally {
    await desk?.stop();
  }
}

interface Shift {
  lanes: Lanes;
  authority: Authority;
  onLost: () => void;
}

function build(deps: AccountServiceDeps, shift: Shift): { deliverer: Deliverer; desk: LiveDesk | null } {
  const { channel, limiter, clock, logger, sendTimeoutMs } = deps;
  const { account, live } = channel;
  const turns = new LiveTurns();
  const gate = new LimitGate({ account, limiter, clock, logger });
  const caller = new Caller({ ...deps, gate });
  const shown = new ShownStreams({ ...deps, stateOf: (turnId, streamId) => turns.stateOf(turnId, streamId) });
  const desk =
    live === null
      ? null
      : new LiveDesk({
          ...{ account, live, turns, clock, logger, ...shift },
          events: deps.live,
          working: new Working({ live, clock, logger }),
          painter: new LivePainter({ channel, live, turns, shown, caller, gate, clock, logger, sendTimeoutMs }),
        });
  const onAnswered = (delivery: Delivery) => desk?.answered(delivery);
  const deliverer = new Deliverer({ ...deps, account, caller, shown, onAnswered });
  return { deliverer, desk };
}

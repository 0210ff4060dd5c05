/**
 * Reads the outbox of one account and hands each delivery to the lane of its chat. It neither sends nor owns. Invariant:
 * deliveries of a chat run one after the other in the order of the outbox, and a chat that waits holds up no other.
 */
import type { Delivery, OutboxStore } from "../bus/delivery-ports.js";
import { bindDelivery } from "../bus/log-ids.js";
import { hasCode } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Authority } from "./authority.js";
import { backOffMs, type Clock, unlessAborted } from "./clock.js";
import type { Deliverer } from "./delivery.js";
import { type Lanes, laneOf } from "./lanes.js";

export interface ConsumerDeps {
  account: string;
  outbox: Pick<OutboxStore, "read">;
  deliverer: Pick<Deliverer, "deliver">;
  lanes: Lanes;
  clock: Clock;
  logger: Logger;
}

/** How long one read waits for entries; also how soon it is seen that the reading has ended. */
const READ_WAIT_MS = 1_000;
/** Deliveries held in memory at most. One flooded chat would have to fill all of it to hold up the others. */
const MAX_HELD = 10_000;

/** Reads until the authority comes to its end; the lanes go on with what they have begun. */
export async function consumeOutbox(deps: ConsumerDeps, authority: Authority, onLost: () => void): Promise<void> {
  const { lanes, clock } = deps;
  const { ending } = authority;
  let position = "0";
  while (!ending.aborted) {
    for (const delivery of await readNext(deps, position, ending)) {
      position = delivery.entryId;
      void lanes.add(laneOf(delivery.outgoing.route), () => carryOut(deps, { delivery, authority, onLost }));
    }
    while (lanes.size >= MAX_HELD && !ending.aborted) await clock.sleep(100, ending);
  }
}

async function readNext(deps: ConsumerDeps, position: string, ended: AbortSignal): Promise<Delivery[]> {
  try {
    return (await unlessAborted(ended, deps.outbox.read(deps.account, position, READ_WAIT_MS))) ?? [];
  } catch (error) {
    deps.logger.warn({ err: error, account: deps.account }, "the outbox could not be read; trying again");
    await deps.clock.sleep(500, ended);
    return [];
  }
}

interface LaneWork {
  delivery: Delivery;
  authority: Authority;
  onLost: () => void;
}

/** A failure that is nobody's answer is tried again: the next delivery of the chat must not overtake this one. */
async function carryOut(deps: ConsumerDeps, { delivery, authority, onLost }: LaneWork): Promise<void> {
  // What has not begun when the reading ends is the next owner's.
  for (let tries = 1; !authority.ending.aborted; tries += 1) {
    try {
      return await deps.deliverer.deliver(delivery, authority);
    } catch (error) {
      if (hasCode(error, "LEASE_LOST")) return onLost();
      bindDelivery(deps.logger, delivery.outgoing).error({ err: error, tries }, "a delivery failed; trying again");
      await deps.clock.sleep(backOffMs(tries), authority.ending);
    }
  }
}

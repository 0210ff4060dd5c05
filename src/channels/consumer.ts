/**
 * Reads the outbox of one account and hands each delivery to the lane of its chat. It neither sends nor owns. Invariant:
 * deliveries of a chat run one after the other in the order of the outbox, and a chat that waits holds up no other.
 */
import { setMaxListeners } from "node:events";
import type { Delivery, OutboxStore } from "../bus/delivery-ports.js";
import { bindDelivery } from "../bus/log-ids.js";
import { hasCode } from "../errors.js";
import type { Logger } from "../logger.js";
import { backOffMs, type Clock, unlessAborted } from "./clock.js";
import type { Authority, Deliverer } from "./delivery.js";
import { Lanes } from "./lanes.js";
import type { Ownership } from "./ownership.js";

export interface ConsumerDeps {
  account: string;
  outbox: Pick<OutboxStore, "read">;
  deliverer: Pick<Deliverer, "deliver">;
  clock: Clock;
  logger: Logger;
}

/** How long one read waits for entries; also how soon it is seen that the reading has ended. */
const READ_WAIT_MS = 1_000;
/** Deliveries held in memory at most. One flooded chat would have to fill all of it to hold up the others. */
const MAX_HELD = 10_000;

/** Consumes until `stopReading` or a loss, then waits for what the lanes have begun. */
export async function consumeOutbox(
  deps: ConsumerDeps,
  ownership: Ownership,
  { stopReading, stopSending }: { stopReading: AbortSignal; stopSending: AbortSignal },
): Promise<void> {
  const ended = AbortSignal.any([stopReading, ownership.signal]);
  const authority: Authority = {
    fence: ownership.fence,
    signal: AbortSignal.any([ownership.signal, stopSending]),
    ending: ended,
    isHeld: () => ownership.isHeld() && !stopSending.aborted,
  };
  // Every lane may wait on these at once.
  setMaxListeners(0, ended, authority.signal);
  const lanes = new Lanes((chatId, error) => {
    deps.logger.error({ err: error, chatId, account: deps.account }, "a lane failed");
  });
  let position = "0";
  while (!ended.aborted) {
    const deliveries = await readNext(deps, position, ended);
    for (const delivery of deliveries) {
      position = delivery.entryId;
      lanes.add(delivery.outgoing.route.chatId, () => carryOut(deps, { delivery, authority, ownership }));
    }
    while (lanes.size >= MAX_HELD && !ended.aborted) await deps.clock.sleep(100, ended);
  }
  await lanes.idle();
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
  ownership: Ownership;
}

/** A failure that is nobody's answer is tried again: the next delivery of the chat must not overtake this one. */
async function carryOut(deps: ConsumerDeps, { delivery, authority, ownership }: LaneWork): Promise<void> {
  // What has not begun when the reading ends is the next owner's.
  for (let tries = 1; !authority.ending.aborted; tries += 1) {
    try {
      return await deps.deliverer.deliver(delivery, authority);
    } catch (error) {
      if (hasCode(error, "LEASE_LOST")) return ownership.lose();
      bindDelivery(deps.logger, delivery.outgoing).error({ err: error, tries }, "a delivery failed; trying again");
      await deps.clock.sleep(backOffMs(tries), authority.ending);
    }
  }
}

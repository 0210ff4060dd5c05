/** The steps of a holder over one bus, by chat, as the tests of the scripts take them. */
import type { InboundMessage } from "../../src/bus/messages.js";
import type { Settled, Settlement } from "../../src/bus/ports.js";
import type { Claim } from "../../src/session/ports.js";
import { type BusFixture, completed, eventsRoute, inbound, sessionKey } from "./bus-fixture.js";

/** The session of a chat. */
export const keyOf = (chat: string) => sessionKey(`web:${chat}`);

/** A message in a chat. */
export const messageIn = (chat: string, content: string, overrides: Partial<InboundMessage> = {}) =>
  inbound(content, { route: eventsRoute(chat), ...overrides });

/** Takes a chat's scheduled session; throws when it is not to be had. */
export async function open(f: BusFixture, chat: string): Promise<Claim> {
  const wake = await f.bus.peek(keyOf(chat));
  const taken = await f.stack.leases.open(keyOf(chat), wake?.wake ?? -1);
  if (!taken.ok) throw new Error(`not opened: ${taken.why}`);
  return taken.claim;
}

/** Settles the message that a claim was given. */
export async function settle(
  f: BusFixture,
  chat: string,
  claim: Claim,
  overrides: Partial<Settlement> = {},
): Promise<Settled> {
  const next = claim.next?.message;
  if (next === undefined) throw new Error("nothing to settle");
  return f.bus.settle({
    key: keyOf(chat),
    fence: claim.fence,
    settled: [{ inboundKey: next.key, result: completed("done") }],
    outgoing: [],
    file: null,
    afterwards: "next",
    honoursStop: false,
    ...overrides,
  });
}

/**
 * What a rewrite of a session file asks the bus, for every holder of a lease. It rewrites nothing. Invariant: both steps
 * are refused with `LEASE_LOST` under a stale fence, and neither settles a message.
 */
import type { Bus } from "../bus/bus.js";
import type { Lease } from "../session/ports.js";
import type { RewriteGuard } from "../session/rewrite.js";

/** The guard of a lease; it asks for the fence at each step, since that may grow once. */
export function createRewriteGuard(bus: Bus, lease: Lease): RewriteGuard {
  const { key } = lease;
  return {
    check: async () => void (await bus.check({ key, fence: lease.fence, inboundKeys: [], route: "", take: 0 })),
    commit: async (file) => {
      const nothing = { settled: [], outgoing: [], afterwards: "stay" as const, honoursStop: true };
      await bus.settle({ key, fence: lease.fence, file, ...nothing });
    },
  };
}

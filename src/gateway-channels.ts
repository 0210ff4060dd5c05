/**
 * The part of the composition root that knows channels: who may speak, what they are given, who watches over them. Invariant:
 * every channel of every platform goes through the one admission and the one ingress.
 */
import type { Ingress } from "./agent/ingress.js";
import { createAdmission } from "./channels/access.js";
import { createSystemClock } from "./channels/clock.js";
import { ChannelManager } from "./channels/manager.js";
import { hasOwners } from "./channels/policy.js";
import { createChannels, describeChannels, policyOf, type UpgradeHandler } from "./channels/registry.js";
import { isOutboxChannel } from "./channels/supervisor.js";
import type { FaultHook } from "./faults.js";
import type { BusParts } from "./gateway-bus.js";
import type { GatewayOptions } from "./gateway-options.js";
import type { WebhookHandler } from "./http/webhooks.js";
import type { MediaStore } from "./media/store.js";
import type { Metrics } from "./metrics.js";

/** Longest that lanes may go on when the gateway stops, ms. */
const MAX_DRAIN_MS = 10_000;
/** A send that takes longer has an unknown outcome, ms. */
const SEND_TIMEOUT_MS = 60_000;

export interface ChannelAssembly {
  options: GatewayOptions;
  parts: BusParts;
  ingress: Ingress;
  media: MediaStore;
  faults: FaultHook;
  metrics: Metrics;
}

export interface ChannelParts {
  manager: ChannelManager;
  upgrade: UpgradeHandler | null;
  /** Channels whose platform brings its updates, by name. */
  webhooks: ReadonlyMap<string, WebhookHandler>;
  /** Accounts whose outbox this process serves. */
  accounts: readonly string[];
}

export async function assembleChannels(work: ChannelAssembly): Promise<ChannelParts> {
  const { options, parts, ingress, media, faults, metrics } = work;
  const { loaded, logger } = options;
  const { config, spoolFolder } = loaded;
  const { stack, bus } = parts;
  const clock = createSystemClock();
  const { token, leaseMs, drainMs } = config.gateway;
  const { channels, upgrade, webhooks } = await createChannels({
    config: config.channels,
    chatEvents: stack.chatEvents,
    tokens: stack.tokens,
    token,
    metrics,
    media,
    spoolFolder,
    clock,
    wallMs: Date.now,
    logger,
  });
  for (const { name, policy } of describeChannels({ config: config.channels, token }))
    logger.info({ channel: name, policy }, "who may use a channel");
  const admit = createAdmission({
    pairings: stack.pairings(hasOwners(config.channels)),
    budget: stack.botBudget,
    reply: (outgoing) => bus.reply(outgoing),
    logger,
  });
  const manager = new ChannelManager({
    channels,
    outbox: stack.outbox,
    limiter: stack.limiter,
    live: stack.liveEvents,
    memory: (account) => stack.accountMemory(account),
    media,
    accept: (message) => ingress.accept(message),
    admit: (channel, knock) => admit(knock, policyOf(config.channels, channel)),
    logger,
    faults,
    metrics,
    clock,
    wallMs: Date.now,
    settings: { leaseMs, drainMs: Math.min(drainMs, MAX_DRAIN_MS), sendTimeoutMs: SEND_TIMEOUT_MS, watchMs: 1000 },
  });
  const handlers = [...webhooks].map(([name, webhook]): [string, WebhookHandler] => [
    name,
    async (call) => {
      const context = manager.contextOf(name);
      return context === null ? 503 : webhook.handle(call, context);
    },
  ]);
  const accounts = channels.filter(isOutboxChannel).map(({ account }) => account);
  return { manager, upgrade, webhooks: new Map(handlers), accounts };
}

/** Starts every channel; returns when each runs, stands by or has failed, or after `limitMs`. */
export async function startWithin(manager: Pick<ChannelManager, "start">, limitMs: number): Promise<void> {
  const over = new AbortController();
  const started = manager.start().finally(() => over.abort());
  await Promise.race([started, createSystemClock().sleep(limitMs, over.signal)]);
}

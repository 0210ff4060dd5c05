/**
 * The channels there are: one entry each. It starts none. Invariant: outside its own folder a channel is named here and
 * in the config only.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { AccessPolicy } from "./access-rules.js";
import type { Channel, ChannelContext } from "./channel.js";
import type { Clock } from "./clock.js";
import type { DiscordConfig } from "./discord/deps.js";
import { DISCORD } from "./discord/name.js";
import { type BotSettings, botPolicyOf, describeBotPolicy, isBotEnabled } from "./policy.js";
import type { MediaShelf } from "./ports.js";
import type { TelegramSettings } from "./telegram/channel.js";
import { TELEGRAM } from "./telegram/settings.js";
import { createWebSocketChannel, WEBSOCKET_LIMITS } from "./websocket/channel.js";
import { describePolicy } from "./websocket/policy.js";
import type { ChatLog, OneTimeTokens } from "./websocket/ports.js";
import { WEBSOCKET } from "./websocket/wire.js";

/** Each channel's slice of the config. */
export interface ChannelConfigs {
  websocket: { enabled: boolean; streaming: boolean };
  telegram: BotSettings & TelegramSettings;
  discord: BotSettings & DiscordConfig;
}

export interface RegistryDeps {
  config: ChannelConfigs;
  chatEvents: ChatLog;
  tokens: OneTimeTokens;
  /** The gateway's token; null when none is configured. */
  token: string | null;
  metrics: Metrics;
  media: MediaShelf;
  /** Where events wait that could not be stored. */
  spoolFolder: string;
  clock: Clock;
  /** The time of day, ms since the epoch. */
  wallMs: () => number;
  logger: Logger;
}

/** A channel as the operator sees it. */
export interface ChannelPolicy {
  name: string;
  enabled: boolean;
  /** Who may talk to it, in a sentence. */
  policy: string;
}

/** Every channel there is, with who may talk to it. */
export function describeChannels({ config, token }: Pick<RegistryDeps, "config" | "token">): ChannelPolicy[] {
  const { enabled } = config.websocket;
  const bots = [TELEGRAM, DISCORD] as const;
  return [
    { name: WEBSOCKET, enabled, policy: describePolicy({ enabled, token }) },
    ...bots.map((name) => ({
      name,
      enabled: isBotEnabled(config[name]),
      policy: describeBotPolicy(config[name]),
    })),
  ];
}

/** The rules of a channel with a bot. */
export function policyOf(config: ChannelConfigs, channel: string): AccessPolicy {
  switch (channel) {
    case TELEGRAM:
    case DISCORD:
      return botPolicyOf(config[channel]);
    default:
      throw new Error(`the channel ${channel} has no bot`);
  }
}

/** Takes over a connection that asked for an upgrade. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** The door of a channel whose platform brings its updates; the HTTP status to answer with. */
export interface WebhookDoor {
  handle(
    call: { headers: Readonly<Record<string, string | string[] | undefined>>; body: string },
    context: ChannelContext,
  ): Promise<number>;
}

export interface Channels {
  channels: Channel[];
  /** The handler of those that live on the HTTP port; null when there is none. */
  upgrade: UpgradeHandler | null;
  webhooks: ReadonlyMap<string, WebhookDoor>;
}

/** The enabled channels. What a platform needs is loaded only where it is enabled: it takes memory. */
export async function createChannels(deps: RegistryDeps): Promise<Channels> {
  const { config, media, spoolFolder, clock, wallMs, logger } = deps;
  const channels: Channel[] = [];
  const webhooks = new Map<string, WebhookDoor>();
  const upgrade = config.websocket.enabled ? addWebSocket(deps, channels) : null;
  if (isBotEnabled(config.telegram)) {
    const { createTelegramChannel } = await import("./telegram/channel.js");
    const telegram = createTelegramChannel({ config: config.telegram, clock, wallMs, media, logger });
    channels.push(telegram);
    if (telegram.webhook !== null) webhooks.set(TELEGRAM, telegram.webhook);
  }
  if (isBotEnabled(config.discord)) {
    const { createDiscordChannel } = await import("./discord/channel.js");
    const { DISCORD_TIMING } = await import("./discord/deps.js");
    const token = config.discord.token ?? "";
    channels.push(
      createDiscordChannel({ config: config.discord, token, spoolFolder, clock, wallMs, timing: DISCORD_TIMING }),
    );
  }
  return { channels, upgrade, webhooks };
}

function addWebSocket(deps: RegistryDeps, channels: Channel[]): UpgradeHandler {
  const websocket = createWebSocketChannel({
    log: deps.chatEvents,
    tokens: deps.tokens,
    token: deps.token,
    isStreaming: deps.config.websocket.streaming,
    limits: WEBSOCKET_LIMITS,
  });
  channels.push(websocket);
  const open = { count: 0 };
  const note = (change: 1 | -1) => {
    open.count += change;
    deps.metrics.set("websocket_connections", {}, open.count);
  };
  return (request, socket, head) => {
    note(1);
    socket.once("close", () => note(-1));
    websocket.upgrade(request, socket, head);
  };
}

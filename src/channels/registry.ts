/**
 * The channels there are: one entry each. It starts none. Invariant: outside its own folder a channel is named here and
 * in the config only.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Metrics } from "../metrics.js";
import type { Channel } from "./channel.js";
import { createWebSocketChannel, WEBSOCKET_LIMITS } from "./websocket/channel.js";
import { describePolicy } from "./websocket/policy.js";
import type { ChatLog, OneTimeTokens } from "./websocket/ports.js";
import { WEBSOCKET } from "./websocket/wire.js";

export interface RegistryDeps {
  /** Each channel's slice of the config. */
  config: { websocket: { enabled: boolean; streaming: boolean } };
  chatEvents: ChatLog;
  tokens: OneTimeTokens;
  /** The gateway's token; null when none is configured. */
  token: string | null;
  metrics: Metrics;
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
  return [{ name: WEBSOCKET, enabled, policy: describePolicy({ enabled, token }) }];
}

/** Takes over a connection that asked for an upgrade. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** The enabled channels, and the handler of those that live on the HTTP port. */
export function createChannels(deps: RegistryDeps): { channels: Channel[]; upgrade: UpgradeHandler | null } {
  const { enabled, streaming } = deps.config.websocket;
  if (!enabled) return { channels: [], upgrade: null };
  const websocket = createWebSocketChannel({
    log: deps.chatEvents,
    tokens: deps.tokens,
    token: deps.token,
    isStreaming: streaming,
    limits: WEBSOCKET_LIMITS,
  });
  const open = { count: 0 };
  const note = (change: 1 | -1) => {
    open.count += change;
    deps.metrics.set("websocket_connections", {}, open.count);
  };
  const upgrade: UpgradeHandler = (request, socket, head) => {
    note(1);
    socket.once("close", () => note(-1));
    websocket.upgrade(request, socket, head);
  };
  return { channels: [websocket], upgrade };
}

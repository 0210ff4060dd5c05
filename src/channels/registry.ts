/**
 * The channels there are: one entry each. It starts none. Invariant: outside its own folder a channel is named here and
 * in the config only.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Channel } from "./channel.js";
import { createWebSocketChannel, WEBSOCKET_LIMITS } from "./websocket/channel.js";
import type { ChatLog } from "./websocket/ports.js";

export interface RegistryDeps {
  /** Each channel's slice of the config. */
  config: { websocket: { enabled: boolean; streaming: boolean } };
  chatEvents: ChatLog;
  /** The gateway's token; null when none is configured. */
  token: string | null;
}

/** Takes over a connection that asked for an upgrade. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** The enabled channels, and the handler of those that live on the HTTP port. */
export function createChannels(deps: RegistryDeps): { channels: Channel[]; upgrade: UpgradeHandler | null } {
  const { enabled, streaming } = deps.config.websocket;
  if (!enabled) return { channels: [], upgrade: null };
  const websocket = createWebSocketChannel({
    log: deps.chatEvents,
    token: deps.token,
    isStreaming: streaming,
    limits: WEBSOCKET_LIMITS,
  });
  return { channels: [websocket], upgrade: (request, socket, head) => websocket.upgrade(request, socket, head) };
}

/** A WebSocket channel on a real port over in-memory logs; what it accepts is kept, how it is accepted is a test's choice. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type InboundMessage,
  inboundKeyOf,
  type OutboundEvent,
  sessionKeyOf,
  turnIdOf,
} from "../../../src/bus/messages.js";
import type { Accepted } from "../../../src/channels/channel.js";
import {
  createWebSocketChannel,
  WEBSOCKET_LIMITS,
  type WebSocketLimits,
} from "../../../src/channels/websocket/channel.js";
import { testContext } from "../../fakes/channel-context.js";
import { type MemoryChatEvents, MemoryChatLogs } from "../../fakes/memory-chat-events.js";
import { MemoryTokens } from "../../fakes/memory-tokens.js";
import { outbound } from "../../fakes/outbound.js";
import { TestClient } from "../../fakes/websocket-client.js";

export interface GatewayOptions {
  token?: string;
  limits?: Partial<WebSocketLimits>;
  logs?: MemoryChatLogs;
  tokens?: MemoryTokens;
}

/** One process' channel. */
export class TestGateway {
  readonly accepted: InboundMessage[] = [];
  /** Runs before a message counts as stored; throws to refuse it. */
  onAccept: (message: InboundMessage) => Promise<void> = async () => {};
  readonly #clients: TestClient[] = [];
  #close: () => Promise<void> = async () => {};

  private constructor(
    readonly logs: MemoryChatLogs,
    readonly events: MemoryChatEvents,
    readonly port: number,
  ) {}

  static async start(options: GatewayOptions = {}): Promise<TestGateway> {
    const { token = null, limits = {}, logs = new MemoryChatLogs(), tokens = new MemoryTokens() } = options;
    const events = logs.process();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address() as AddressInfo;
    const gateway = new TestGateway(logs, events, address.port);
    const all = { ...WEBSOCKET_LIMITS, closeGraceMs: 500, retryMs: 10, ...limits };
    const channel = createWebSocketChannel({ log: events, tokens, token, isStreaming: true, limits: all });
    server.on("upgrade", (request, socket, head) => channel.upgrade(request, socket, head));
    await channel.start(testContext({ accept: (message) => gateway.#accept(message) }));
    gateway.#close = async () => {
      await channel.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    };
    return gateway;
  }

  async #accept(message: InboundMessage): Promise<Accepted> {
    await this.onAccept(message);
    const isKnown = this.accepted.some((known) => inboundKeyOf(known) === inboundKeyOf(message));
    if (!isKnown) this.accepted.push(message);
    return {
      status: isKnown ? "duplicate" : "stored",
      sessionKey: sessionKeyOf(message, { unified: false }),
      turnId: turnIdOf(inboundKeyOf(message)),
    };
  }

  connect(query = "", options: ConstructorParameters<typeof TestClient>[1] = {}): TestClient {
    const client = new TestClient(`ws://127.0.0.1:${this.port}/${query}`, options);
    this.#clients.push(client);
    return client;
  }

  /** A client that has been greeted, and its default chat. */
  async open(query = "?client_id=alice"): Promise<{ client: TestClient; chatId: string }> {
    const client = this.connect(query);
    const ready = await client.frame("ready");
    return { client, chatId: String(ready.chat_id) };
  }

  append(chatId: string, content: string, event: OutboundEvent = { type: "notice" }): void {
    this.logs.append("websocket", chatId, { ...outbound(content, event), channel: "websocket", chatId });
  }

  /** Stops the channel; clients are ended by it. */
  stop(): Promise<void> {
    return this.#close();
  }

  async close(): Promise<void> {
    await this.#close();
    for (const client of this.#clients) client.socket.terminate();
  }
}

/** A channel with an outbox whose platform is a list; a test scripts how each send goes. */
import type { OutboundMessage } from "../../src/bus/messages.js";
import type { ChannelContext, ChannelHealth, OutboxChannel } from "../../src/channels/channel.js";

type Send = (part: OutboundMessage, signal: AbortSignal) => Promise<void>;

export class RecordingChannel implements OutboxChannel {
  readonly name = "recording";
  readonly account = "bot";
  /** What the platform got, `chat:text`. */
  readonly got: string[] = [];
  /** Each call of start and stop, in order. */
  readonly life: string[] = [];
  context: ChannelContext | null = null;
  state: ChannelHealth = { state: "stopped" };
  /** Runs before a part is recorded; throws to fail it. */
  onSend: Send = async () => {};
  onStart: () => Promise<void> = async () => {};

  async start(context: ChannelContext): Promise<void> {
    this.life.push("start");
    await this.onStart();
    this.context = context;
    this.state = { state: "running" };
  }

  async stop(): Promise<void> {
    this.life.push("stop");
    this.state = { state: "stopped" };
  }

  health(): ChannelHealth {
    return this.state;
  }

  /** Cuts at `|`. */
  parts(message: OutboundMessage): OutboundMessage[] {
    return message.content.split("|").map((content, part) => ({ ...message, id: `${message.id}.${part}`, content }));
  }

  async send(part: OutboundMessage, signal: AbortSignal): Promise<{ platformId: string }> {
    await this.onSend(part, signal);
    this.got.push(`${part.chatId}:${part.content}`);
    return { platformId: `p${this.got.length}` };
  }
}

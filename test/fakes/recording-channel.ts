/**
 * A channel with an outbox whose platform is a list of messages; a test scripts how each call goes. Its limits are what a
 * test sets; its view of what goes on is there when `live` is not null.
 */
import type { OutboundMessage } from "../../src/bus/messages.js";
import type {
  ChannelContext,
  ChannelHealth,
  LiveView,
  OutboxChannel,
  SendRequest,
} from "../../src/channels/channel.js";
import type { RateLimit } from "../../src/channels/ports.js";

/** A message cut at `|`. */
export interface RecordedPart {
  content: string;
}

export type RecordedRequest = SendRequest<RecordedPart>;

export class RecordingChannel implements OutboxChannel<RecordedPart> {
  readonly name = "recording";
  readonly account = "bot";
  repeatableMs = 0;
  /** What the platform got, `chat:text`. */
  readonly got: string[] = [];
  /** What its chats show now, by platform id; what was taken away is gone. */
  readonly shows = new Map<string, string>();
  /** Each call that changes what is shown, in order: `send p1 c1:text`, `edit p1 text`, `remove p1`, `draft s text`. */
  readonly calls: string[] = [];
  /** Signs of work, `begin c1`. */
  readonly signs: string[] = [];
  /** Keys of all sends that were tried. */
  readonly keys: string[] = [];
  /** Each call of start and stop, in order. */
  readonly life: string[] = [];
  context: ChannelContext | null = null;
  state: ChannelHealth = { state: "stopped" };
  /** Runs before a part is recorded; throws to fail it. */
  onSend: (part: RecordedPart, request: RecordedRequest) => Promise<void> = async () => {};
  onEdit: (platformId: string, request: RecordedRequest) => Promise<void> = async () => {};
  onStart: () => Promise<void> = async () => {};
  onWorking: (phase: string, message: OutboundMessage) => Promise<void> = async () => {};
  limits: (message: OutboundMessage, part: RecordedPart) => readonly RateLimit[] = () => [];
  live: LiveView<RecordedPart> | null = null;
  #next = 1;

  /** Shows what goes on, in this way. */
  showing(way: "edits" | "drafts" | "none" = "edits", intervalMs = 1_000): this {
    this.live = {
      workingEveryMs: 4_000,
      way: () => way,
      intervalMs: () => intervalMs,
      edit: (platformId, request) => this.#edit(platformId, request),
      draft: async (streamId, { part }) => void this.calls.push(`draft ${streamId} ${part.content}`),
      remove: async (platformId) => {
        this.shows.delete(platformId);
        this.calls.push(`remove ${platformId}`);
      },
      working: async (phase, message) => {
        await this.onWorking(phase, message);
        this.signs.push(`${phase} ${placeOf(message)}`);
      },
    };
    return this;
  }

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

  parts(message: OutboundMessage): RecordedPart[] {
    return message.content.split("|").map((content) => ({ content }));
  }

  async send(request: RecordedRequest): Promise<{ platformId: string }> {
    const { message, part, key } = request;
    this.keys.push(key);
    await this.onSend(part, request);
    const platformId = `p${this.#next++}`;
    this.got.push(`${placeOf(message)}:${part.content}`);
    this.shows.set(platformId, part.content);
    this.calls.push(`send ${platformId} ${placeOf(message)}:${part.content}`);
    return { platformId };
  }

  async #edit(platformId: string, request: RecordedRequest): Promise<void> {
    await this.onEdit(platformId, request);
    this.shows.set(platformId, request.part.content);
    this.calls.push(`edit ${platformId} ${request.part.content}`);
  }
}

function placeOf({ chatId, threadId }: OutboundMessage): string {
  return threadId === undefined ? chatId : `${chatId}/${threadId}`;
}

/**
 * The Discord channel with the real discord.js against the strict fake: a gateway around it that keeps what it was handed, a
 * memory that survives restarts, and builders of what goes out.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import pino from "pino";
import type { InboundMessage, MediaRef, OutboundMessage } from "../../../src/bus/messages.js";
import type { Admission, ChannelContext, Knock, OutboxChannel } from "../../../src/channels/channel.js";
import { createSystemClock } from "../../../src/channels/clock.js";
import { createDiscordChannel } from "../../../src/channels/discord/channel.js";
import { DISCORD_TIMING, type DiscordConfig, type DiscordTiming } from "../../../src/channels/discord/deps.js";
import type { DiscordPart } from "../../../src/channels/discord/parts.js";
import type { AccountMemory } from "../../../src/channels/ports.js";
import { NanogateError } from "../../../src/errors.js";
import { redactText } from "../../../src/logger.js";
import type { FakeDiscord } from "../../fakes/discord/fake-discord.js";
import type { Channel } from "../../fakes/discord/model.js";

/** An account's memory in a map; `isAway`: as when Redis is down. */
export class MapMemory implements AccountMemory {
  readonly values = new Map<string, string>();
  isAway = false;

  async get(name: string): Promise<string | null> {
    this.#check();
    return this.values.get(name) ?? null;
  }

  async set(name: string, value: string): Promise<void> {
    this.#check();
    this.values.set(name, value);
  }

  async list(prefix: string): Promise<Map<string, string>> {
    this.#check();
    return new Map([...this.values].filter(([name]) => name.startsWith(prefix)));
  }

  async forget(name: string): Promise<void> {
    this.#check();
    this.values.delete(name);
  }

  #check(): void {
    if (this.isAway) throw new NanogateError("BUS_UNAVAILABLE", "the memory is away");
  }
}

export class Harness {
  readonly memory = new MapMemory();
  readonly accepted: InboundMessage[] = [];
  readonly knocks: Knock[] = [];
  readonly kept = new Map<string, Buffer>();
  readonly log: Array<Record<string, unknown>> = [];
  /** What the door says; a test may set another. */
  admits: (knock: Knock) => Promise<Admission> = async () => ({ kind: "admitted", isOwner: false });
  /** Called before a message is stored; throws for one that cannot be. */
  onAccept: (message: InboundMessage) => Promise<void> = async () => {};
  channel: OutboxChannel<DiscordPart>;
  maxBytes = 1_000_000;

  private constructor(
    readonly fake: FakeDiscord,
    readonly folder: string,
    private readonly config: Partial<DiscordConfig>,
    private readonly timing: Partial<DiscordTiming>,
  ) {
    this.channel = this.create();
  }

  static async make(
    fake: FakeDiscord,
    config: Partial<DiscordConfig> = {},
    timing: Partial<DiscordTiming> = {},
  ): Promise<Harness> {
    return new Harness(fake, await mkdtemp(path.join(tmpdir(), "ng-discord-")), config, timing);
  }

  /** A new channel, as after a restart. */
  create(token = this.fake.token): OutboxChannel<DiscordPart> {
    const config = { streaming: true, editIntervalMs: 1200, reaction: "👀", lateEdits: "ignore" as const };
    this.channel = createDiscordChannel({
      config: { ...config, backfillMessages: 50, apiRoot: this.fake.apiRoot, ...this.config },
      token,
      spoolFolder: path.join(this.folder, "spool"),
      clock: createSystemClock(),
      wallMs: () => Date.now(),
      timing: {
        ...DISCORD_TIMING,
        identify: { burst: 20, everyMs: 240_000, spacingMs: 0 },
        guildsMs: 1000,
        ...this.timing,
      },
    });
    return this.channel;
  }

  async start(): Promise<void> {
    await this.channel.start(this.context());
  }

  async restart(): Promise<void> {
    await this.channel.stop();
    this.create();
    await this.start();
  }

  async close(): Promise<void> {
    await this.channel.stop();
    await rm(this.folder, { recursive: true });
  }

  context(): ChannelContext {
    const write = (line: string) => void this.log.push(JSON.parse(line));
    const err = (error: unknown) =>
      error instanceof Error ? `${error.name}: ${error.message}\n${error.stack}` : String(error);
    return {
      admit: async (knock) => {
        this.knocks.push(knock);
        return this.admits(knock);
      },
      accept: async (message) => {
        await this.onAccept(message);
        this.accepted.push(message);
        return { status: "stored", sessionKey: "s" as never, turnId: "t" };
      },
      media: {
        maxBytes: this.maxBytes,
        save: (file) => this.#save(file),
        pathOf: async (ref) => path.join(this.folder, ref.path),
      },
      memory: this.memory,
      logger: pino({ level: "debug", serializers: { err } }, { write }),
    };
  }

  async #save(file: {
    name: string | null;
    mime: string | null;
    isVoice: boolean;
    body: AsyncIterable<Uint8Array>;
  }): Promise<MediaRef> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of file.body) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    if (bytes.length === 0) throw new NanogateError("MEDIA_REFUSED", "it is empty");
    const name = file.name ?? "file";
    this.kept.set(name, bytes);
    const ref = {
      path: `${this.kept.size}-${path.basename(name)}`,
      mime: file.mime ?? "application/octet-stream",
      name,
      bytes: bytes.length,
    };
    await writeFile(path.join(this.folder, ref.path), bytes);
    return file.isVoice ? { ...ref, isVoice: true } : ref;
  }

  /** Waits for so many stored messages. */
  arrived(count: number): Promise<InboundMessage[]> {
    return this.fake.until(() => this.accepted.length >= count && this.accepted);
  }

  /** Everything that was logged, as text. */
  logText(): string {
    return redactText(this.log.map((line) => JSON.stringify(line)).join("\n"));
  }

  async spooled(): Promise<string> {
    const [, id = ""] = this.channel.account.split(":");
    return readFile(path.join(this.folder, "spool", `discord-${id}.jsonl`), "utf8");
  }
}

/** A final answer in this channel. */
export function answer(place: Channel, content: string, overrides: Partial<OutboundMessage> = {}): OutboundMessage {
  const isThread = place.parent !== null;
  return {
    id: `t${place.id}.1`,
    channel: "discord",
    chatId: isThread ? (place.parent?.id ?? "") : place.id,
    ...(isThread ? { threadId: place.id } : {}),
    content,
    media: [],
    buttons: [],
    event: { type: "final", streamId: null },
    turnId: `t${place.id}`,
    seq: 0,
    metadata: {},
    ...overrides,
  };
}

/** Sends all parts of a message; the platform's ids. */
export async function sendAll(channel: OutboxChannel<DiscordPart>, message: OutboundMessage): Promise<string[]> {
  const ids: string[] = [];
  for (const [index, part] of channel.parts(message).entries()) {
    const key = `${message.id}/${index}`;
    ids.push((await channel.send({ message, part, key, signal: new AbortController().signal })).platformId);
  }
  return ids;
}

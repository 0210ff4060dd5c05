/**
 * A stage with the fake Discord on it: real gateway processes whose bot is connected there. Times are scaled down, limits
 * are Discord's own. Invariant: `close` fails when a token stood in a log, when a process made a call that no client should
 * make, or when the fake itself had an error.
 */
import { FakeDiscord, type FakeDiscordOptions } from "../../fakes/discord/fake-discord.js";
import type { Channel, Message } from "../../fakes/discord/model.js";
import { run } from "./command.js";
import { type GatewayProcess, type ProcessOptions, Stage } from "./stage.js";

export interface DiscordStageOptions {
  fake?: FakeDiscordOptions;
  /** Merged over the stage's settings of the channel. */
  discord?: Record<string, unknown>;
  /** Merged over the configuration, by top-level key. */
  config?: Record<string, unknown>;
}

/**
 * A message each its turn, so that answers can be counted. The lease outlasts the loading of the library on a machine that has
 * much to do.
 */
const USUAL = {
  agent: { model: "peer/m", queueMode: "followup" },
  gateway: { leaseMs: 3000 },
};

/** A delivery that failed for good, as `nanogate outbox list` tells it. */
export interface DeadLetter {
  channel: string;
  chatId: string;
  text: string;
  error: string;
}

export class DiscordStage {
  readonly #processes: GatewayProcess[] = [];

  private constructor(
    readonly fake: FakeDiscord,
    readonly stage: Stage,
    /** The last part of the token: it must stand in no log. */
    readonly secret: string,
  ) {}

  static async open(options: DiscordStageOptions = {}): Promise<DiscordStage> {
    const fake = await FakeDiscord.start({ heartbeatMs: 1000, identifyEveryMs: 0, ...options.fake });
    const account = { token: fake.token, apiRoot: fake.apiRoot };
    const everybody = { allowFrom: ["*"], groupAllowFrom: ["*"] };
    const discord = { ...account, ...everybody, editIntervalMs: 150, reaction: null, ...options.discord };
    const stage = await Stage.open({ ...USUAL, ...options.config, channels: { discord } });
    return new DiscordStage(fake, stage, account.token.slice(account.token.lastIndexOf(".") + 1));
  }

  /** A process; it need not be connected yet. */
  async gateway(options: ProcessOptions = {}): Promise<GatewayProcess> {
    const process = await this.stage.gateway(options);
    this.#processes.push(process);
    return process;
  }

  /** A process whose bot is connected, alone. */
  async connected(options: ProcessOptions = {}): Promise<GatewayProcess> {
    const process = await this.gateway(options);
    await this.isConnected();
    return process;
  }

  isConnected(): Promise<true> {
    return this.fake.until(() => this.fake.gateway.connected === 1 || null);
  }

  /** What the bot has answered there, once it is these texts; fails with what it is instead. */
  async answered(channel: Channel, texts: readonly string[], withinMs = 30_000): Promise<void> {
    const wanted = JSON.stringify(texts);
    try {
      await this.fake.until(() => JSON.stringify(this.fake.answers(channel)) === wanted, withinMs);
    } catch (error) {
      const found = JSON.stringify(this.fake.answers(channel));
      throw new Error(`wanted ${wanted}, found ${found}\n${String(error)}\n${this.#logs()}`);
    }
  }

  /** The answer to this message, once there is one: what the bot said after it. */
  async answerTo(message: Message, withinMs = 30_000): Promise<Message> {
    const isAnswer = (each: Message) => each.author === this.fake.world.bot && BigInt(each.id) > BigInt(message.id);
    try {
      return await this.fake.until(() => [...message.channel.messages.values()].find(isAnswer), withinMs);
    } catch (error) {
      throw new Error(`no answer to "${message.content}"\n${String(error)}\n${this.#logs()}`);
    }
  }

  /** What `nanogate outbox list` says. */
  async deadLetters(): Promise<DeadLetter[]> {
    const { configFile, workspace, home } = this.stage;
    const { code, out, err } = await run(["outbox", "list", "--json", "-c", configFile, "-w", workspace], { home });
    if (code !== 0) throw new Error(`outbox list ended with ${code}: ${err}`);
    return JSON.parse(out) as DeadLetter[];
  }

  #logs(): string {
    return this.#processes.map(({ pid, log }) => `--- ${pid}\n${log.split("\n").slice(-25).join("\n")}`).join("\n");
  }

  async close(): Promise<void> {
    const leaking = this.#processes.filter(({ log }) => log.includes(this.secret)).map(({ pid }) => pid);
    const { strange } = this.fake.journal;
    await this.stage.close();
    await this.fake.close();
    if (leaking.length > 0) throw new Error(`the token stands in the log of ${leaking.join(", ")}`);
    if (strange.length > 0) throw new Error(`calls that no client should make: ${strange.join(", ")}`);
  }
}

/**
 * A stage with the fake Telegram on it: real gateway processes whose bot is there. Times are scaled down, limits are
 * Telegram's own. Invariant: `close` fails when a token stood in a log, when a limit was broken that the test did not
 * expect to be, or when the fake itself had an error.
 */
import { FakeTelegram, type FakeTelegramOptions } from "../../fakes/telegram/fake-telegram.js";
import type { Violation } from "../../fakes/telegram/journal.js";
import type { Place, SeenMessage } from "../../fakes/telegram/place.js";
import { run } from "./command.js";
import { type GatewayProcess, type ProcessOptions, Stage } from "./stage.js";

export interface TelegramStageOptions {
  fake?: FakeTelegramOptions;
  /** Merged over the stage's settings of the channel. */
  telegram?: Record<string, unknown>;
  /** Merged over the configuration, by top-level key. */
  config?: Record<string, unknown>;
}

/** A message each its turn, so that answers can be counted. */
const EACH_ITS_TURN = { agent: { model: "peer/m", queueMode: "followup" } };

export interface Problem {
  part: string;
  problem: string;
  advice: string;
}

export interface DeadLetter {
  id: string;
  channel: string;
  chatId: string;
  text: string;
  error: string;
  attempts: number;
}

export class TelegramStage {
  readonly #processes: GatewayProcess[] = [];
  /** Kinds of violations that a test provokes. */
  readonly tolerated = new Set<Violation["kind"]>();

  private constructor(
    readonly fake: FakeTelegram,
    readonly stage: Stage,
    /** The part of the token that must stand in no log. */
    readonly secret: string,
  ) {}

  static async open(options: TelegramStageOptions = {}): Promise<TelegramStage> {
    const fake = await FakeTelegram.start(options.fake);
    const account = { token: fake.token, apiRoot: fake.apiRoot };
    const everybody = { allowFrom: ["*"], groupAllowFrom: ["*"] };
    const telegram = { ...account, ...everybody, reaction: null, ...options.telegram };
    const stage = await Stage.open({ ...EACH_ITS_TURN, ...options.config, channels: { telegram } });
    return new TelegramStage(fake, stage, fake.secret);
  }

  /** A process; it need not poll. */
  async gateway(options: ProcessOptions = {}): Promise<GatewayProcess> {
    const process = await this.stage.gateway(options);
    this.#processes.push(process);
    return process;
  }

  /** A process, once somebody polls. */
  async polling(options: ProcessOptions = {}): Promise<GatewayProcess> {
    const process = await this.gateway(options);
    await this.isPolled();
    return process;
  }

  isPolled(): Promise<true> {
    return this.fake.until(() => this.fake.updates.isPolled || null);
  }

  /** The bot's texts there, once they are these; fails with what they are instead. */
  async answered(chat: Place, texts: readonly string[], { thread, withinMs = 30_000 }: Where = {}): Promise<void> {
    const wanted = JSON.stringify(texts);
    try {
      await this.fake.until(() => JSON.stringify(chat.answers(thread)) === wanted, withinMs);
    } catch (error) {
      const found = JSON.stringify(chat.answers(thread));
      throw new Error(`wanted ${wanted}, found ${found}\n${String(error)}\n${this.#logs()}`);
    }
  }

  /** The first message of the bot in this chat that fits. */
  async answer(chat: Place, fits: (message: SeenMessage) => boolean = () => true): Promise<SeenMessage> {
    try {
      return await this.fake.until(() => chat.visible().find((each) => each.isBot && fits(each)), 30_000);
    } catch (error) {
      const found = JSON.stringify(chat.visible());
      throw new Error(`no such answer in ${found}\n${String(error)}\n${this.#logs()}`);
    }
  }

  /** Returns when this process has logged so many deliveries, receipts stored. */
  async delivered(process: GatewayProcess, count: number): Promise<void> {
    await this.fake.until(() => process.log.split('"msg":"delivered"').length > count);
  }

  /** Fails when /readyz once names nothing for the channel within this time. */
  async staysFailed(process: GatewayProcess, forMs: number): Promise<void> {
    const untilMs = performance.now() + forMs;
    await this.#readiness(process, (found) => {
      if (found === undefined) throw new Error(`/readyz names nothing any more\n${this.#logs()}`);
      return performance.now() > untilMs || null;
    });
  }

  /** What /readyz names for the channel, once it names something. */
  problem(process: GatewayProcess): Promise<Problem> {
    return this.#readiness(process, (found) => found ?? null);
  }

  /** Returns when /readyz names nothing for the channel any more. */
  async recovered(process: GatewayProcess, withinMs: number): Promise<void> {
    await this.#readiness(process, (found) => found === undefined || null, withinMs);
  }

  async #readiness<T>(
    process: GatewayProcess,
    judge: (found: Problem | undefined) => T | null,
    withinMs = 20_000,
  ): Promise<T> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const response = await fetch(`http://127.0.0.1:${await process.ready}/readyz`);
      const { problems = [] } = (await response.json()) as { problems?: Problem[] };
      const verdict = judge(problems.find((each) => JSON.stringify(each).toLowerCase().includes("telegram")));
      if (verdict !== null) return verdict;
      if (performance.now() > deadline) throw new Error(`/readyz says ${JSON.stringify(problems)}\n${this.#logs()}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** What `nanogate outbox list` says. */
  async deadLetters(): Promise<DeadLetter[]> {
    return JSON.parse(await this.outbox("list", "--json")) as DeadLetter[];
  }

  /** Runs `nanogate outbox …`; what it prints. */
  async outbox(...args: readonly string[]): Promise<string> {
    const { configFile, workspace, home } = this.stage;
    const { code, out, err } = await run(["outbox", ...args, "-c", configFile, "-w", workspace], { home });
    if (code !== 0) throw new Error(`outbox ${args.join(" ")} ended with ${code}: ${err}`);
    return out;
  }

  #logs(): string {
    return this.#processes.map(({ pid, log }) => `--- ${pid}\n${log.split("\n").slice(-25).join("\n")}`).join("\n");
  }

  async close(): Promise<void> {
    const leaking = this.#processes.filter(({ log }) => log.includes(this.secret)).map(({ pid }) => pid);
    const broken = this.fake.violations.filter(({ kind }) => !this.tolerated.has(kind));
    await this.stage.close();
    await this.fake.close();
    if (leaking.length > 0) throw new Error(`the token stands in the log of ${leaking.join(", ")}`);
    if (broken.length > 0) throw new Error(`rules were broken: ${broken.map(({ kind, what }) => `${kind} ${what}`)}`);
  }
}

interface Where {
  thread?: number | null;
  withinMs?: number;
}

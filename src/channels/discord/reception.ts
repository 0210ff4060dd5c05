/**
 * Everything that the gateway tells, sorted: places are learnt at once, messages wait for their turn, interactions are
 * answered, and after a new session what was missed is fetched first. It connects to nothing. Invariants: what an earlier
 * life spooled comes first, then what was missed, then what is new; an event that cannot be read is logged and left out.
 */
import { setMaxListeners } from "node:events";
import type { CommandSpec } from "../../commands.js";
import type { ChannelContext } from "../channel.js";
import type { AnswerDesk } from "./answers.js";
import { type BackfillDeps, backfill, backfillGuild } from "./backfill.js";
import type { DiscordDeps } from "./deps.js";
import { type DoorDeps, messageWork, Recent } from "./door.js";
import type { Self } from "./hear.js";
import { Intake } from "./intake.js";
import { type InteractDeps, interact } from "./interact.js";
import type { Marks } from "./marks.js";
import type { Places } from "./places.js";
import type { Rest } from "./rest.js";
import type { Spool, SpoolEntry } from "./spool.js";
import { fieldsOf, isSnowflake, readyShape } from "./wire.js";

export interface ReceptionDeps extends Pick<DiscordDeps, "config" | "clock" | "wallMs" | "timing"> {
  context: ChannelContext;
  rest: Rest;
  places: Places;
  marks: Marks;
  desk: AnswerDesk;
  spool: Spool;
  /** What an earlier life spooled. */
  entries: readonly SpoolEntry[];
  commands: readonly CommandSpec[];
  /** The bot, as far as its token tells. */
  bot: { id: string; account: string };
}

const BLANK =
  "Messages in servers come without their text. Open the Developer Portal (discord.com/developers/applications), choose the " +
  "bot, page Bot, switch Message Content Intent on, save, and restart nanogate.";

export class Reception {
  readonly #deps: ReceptionDeps;
  readonly #ended = new AbortController();
  readonly #intake: Intake;
  #self: Self;
  #isBlankSaid = false;
  /** Guilds of the present session that have not been told yet. */
  #awaited: Set<string> = new Set();
  #onGuilds: () => void = () => {};
  #filling: Promise<void> = Promise.resolve();

  constructor(deps: ReceptionDeps) {
    this.#deps = deps;
    // Every channel may wait on it at once.
    setMaxListeners(0, this.#ended.signal);
    const { config, places, marks, spool, entries, clock, context, bot } = deps;
    const { streaming: isStreaming, lateEdits } = config;
    this.#self = { ...bot, isStreaming, lateEdits, roleIn: (guildId) => places.roleIn(guildId) };
    const common = { clock, signal: this.#ended.signal };
    const door: DoorDeps = {
      ...common,
      context,
      places,
      marks,
      recent: new Recent(),
      self: () => this.#self,
      onBlank: () => this.#sayBlank(),
    };
    const workOf = (event: SpoolEntry["event"]) => messageWork(door, event);
    this.#intake = new Intake({ ...common, spool, workOf, logger: context.logger });
    for (const channelId of marks.directs()) places.noteDirect(channelId);
    for (const { n, event } of entries) this.#intake.addEarlier(event, n);
    this.inBackground("marks could not be kept", () => this.#flushing());
  }

  /** A new session: nobody tells what came before it. The application's id. Throws `ZodError`. */
  identified(ready: unknown): string {
    const { user, application, guilds } = readyShape.parse(ready);
    this.#self = { ...this.#self, id: user.id };
    this.#intake.holdAll();
    this.#awaited = new Set(guilds.map(({ id }) => id));
    this.#filling = this.#filling.then(() => this.#fill());
    return application.id;
  }

  /** An event of the gateway: only taken in here, read when its turn comes. Never throws. */
  take(t: string, d: unknown): void {
    try {
      this.#deps.places.take(t, d, this.#self.id);
      this.#sort(t, d);
    } catch (error) {
      this.#deps.context.logger.warn({ err: error, event: t }, "an event could not be read and is left out");
    }
  }

  /** Takes nothing more; what was not stored is spooled. */
  async close(): Promise<void> {
    this.#ended.abort();
    this.#onGuilds();
    await this.#filling;
    await this.#intake.end();
    await this.#deps.marks.flush();
  }

  /** Work whose failure is logged and harms nothing else. */
  inBackground(problem: string, work: () => Promise<unknown>): void {
    work().catch((error: unknown) => this.#deps.context.logger.warn({ err: error }, problem));
  }

  async #fill(): Promise<void> {
    const { clock, timing } = this.#deps;
    const told = new AbortController();
    this.#onGuilds = () => told.abort();
    if (this.#awaited.size === 0 || this.#ended.signal.aborted) told.abort();
    await clock.sleep(timing.guildsMs, told.signal);
    // Guilds that are told later than this are filled one by one.
    this.#awaited.clear();
    await backfill(this.#gapDeps());
  }

  #gapDeps(): BackfillDeps {
    const { config, context } = this.#deps;
    const { logger } = context;
    return { ...this.#deps, intake: this.#intake, most: config.backfillMessages, logger, signal: this.#ended.signal };
  }

  #guild(id: string): void {
    if (!this.#awaited.delete(id)) {
      this.#filling = Promise.all([this.#filling, backfillGuild(this.#gapDeps(), id)]).then(() => {});
    } else if (this.#awaited.size === 0) this.#onGuilds();
  }

  #sort(t: string, d: unknown): void {
    const { id } = fieldsOf(d);
    switch (t) {
      case "GUILD_CREATE":
        this.#guild(String(id));
        break;
      case "CHANNEL_DELETE":
      case "THREAD_DELETE":
        this.inBackground("a mark could not be forgotten", () => this.#deps.marks.forget(String(id)));
        break;
      case "MESSAGE_CREATE":
      case "MESSAGE_UPDATE":
        this.#message(t, d);
        break;
      case "INTERACTION_CREATE":
        this.inBackground("an interaction could not be answered", () => interact(this.#desk(), d));
        break;
      default:
        break;
    }
  }

  #message(t: string, d: unknown): void {
    const { channel_id: channelId, author } = fieldsOf(d);
    if (typeof channelId !== "string" || !isSnowflake(channelId)) throw new TypeError("a message without a channel");
    if (fieldsOf(author).id === this.#self.id) return;
    this.inBackground("an event was lost", () => this.#intake.add({ t, channelId, d }));
  }

  #desk(): InteractDeps {
    const self = () => this.#self;
    return { ...this.#deps, intake: this.#intake, self, signal: this.#ended.signal };
  }

  #sayBlank(): void {
    if (this.#isBlankSaid) return;
    this.#isBlankSaid = true;
    this.#deps.context.logger.warn({}, BLANK);
  }

  async #flushing(): Promise<void> {
    const { clock, timing, marks } = this.#deps;
    while (!this.#ended.signal.aborted) {
      await clock.sleep(timing.flushMs, this.#ended.signal);
      if (!this.#ended.signal.aborted) await marks.flush();
    }
  }
}

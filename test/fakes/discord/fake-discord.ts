/**
 * A strict fake of Discord for tests: REST and gateway on one port of this machine, people who use it, a journal of all
 * calls, and faults on order. It takes what Discord takes and refuses what Discord refuses; it is no Discord for people.
 * Invariant: nothing that a test has not ordered goes wrong.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Buckets, type Limit, USUAL_LIMITS } from "./buckets.js";
import { Faults } from "./faults.js";
import { Gateway, type GatewaySettings } from "./gateway.js";
import { Journal } from "./journal.js";
import { type Channel, ChannelKind, type Guild, type Interaction, type Message, MessageFlag } from "./model.js";
import { Person } from "./people.js";
import { RestServer } from "./rest-server.js";
import type { RestSettings } from "./routes.js";
import { World } from "./world.js";

export interface FakeDiscordOptions
  extends Partial<GatewaySettings>,
    Partial<Omit<RestSettings, "gatewayBot" | "applicationFlags">> {
  botName?: string;
  /** Limits by call, over the usual ones; null: none. */
  limits?: Readonly<Record<string, Limit | null>>;
  /** Calls of the bot in a second. */
  globalPerSecond?: number;
  port?: number;
}

/** A message as people see it. */
export interface SeenMessage {
  id: string;
  author: string;
  content: string;
  isEdited: boolean;
  /** "… is thinking": an answer that is still to come. */
  isLoading: boolean;
  files: string[];
  buttons: Array<{ label: string; id: string }>;
  /** The message it answers. */
  replyTo: string | null;
  /** Who was notified: user ids, role ids, `everyone`. */
  pings: string[];
  reactions: string[];
}

const DEFAULTS: GatewaySettings & Omit<RestSettings, "gatewayBot" | "applicationFlags"> = {
  heartbeatMs: 41_250,
  identifyEveryMs: 5000,
  identifyBudget: 1000,
  resumeWithinMs: 90_000,
  mayReadContent: true,
  nonceMs: 180_000,
  interactionMs: 3000,
  interactionTokenMs: 900_000,
  maxFileBytes: 10_485_760,
};

/** The flag of an application whose message content switch is on, in fewer than 100 servers. */
const MESSAGE_CONTENT_LIMITED = 1 << 19;

export class FakeDiscord {
  readonly journal = new Journal();
  readonly faults = new Faults();
  readonly world: World;
  readonly gateway: Gateway;
  readonly buckets: Buckets;
  readonly #server: Server;
  readonly #persons = new Map<string, Person>();
  #token: string | null;
  #port = 0;
  /** Errors of the fake itself; `close` throws for them. */
  readonly #errors: unknown[] = [];

  private constructor(options: FakeDiscordOptions) {
    const { botName = "nano", limits = {}, globalPerSecond = 50, port: _, ...given } = options;
    const settings = { ...DEFAULTS, ...given };
    this.world = new World(botName);
    this.#token = newToken(this.world.bot.id);
    const token = () => this.#token;
    const origin = () => this.origin;
    const onBurnt = () => this.resetToken();
    this.gateway = new Gateway({ world: this.world, settings, token, onBurnt, origin });
    const known = { ...USUAL_LIMITS, ...limits };
    this.buckets = new Buckets(({ method, route }) => known[`${method} ${route}`] ?? null, {
      count: globalPerSecond,
      perMs: 1000,
    });
    const applicationFlags = settings.mayReadContent ? MESSAGE_CONTENT_LIMITED : 0;
    const rest = new RestServer({
      world: this.world,
      buckets: this.buckets,
      faults: this.faults,
      journal: this.journal,
      settings: { ...settings, applicationFlags, gatewayBot: () => this.gateway.about() },
      token,
      origin,
    });
    this.#server = createServer((request, response) => {
      rest.handle(request, response).catch((error: unknown) => {
        if (!request.complete || response.socket?.destroyed) return;
        this.#errors.push(error);
        response.socket?.destroy();
      });
    });
    this.#server.on("upgrade", (request, socket, head) => this.gateway.upgrade(request, socket, head));
  }

  static async start(options: FakeDiscordOptions = {}): Promise<FakeDiscord> {
    const fake = new FakeDiscord(options);
    fake.#server.listen(options.port ?? 0, "127.0.0.1");
    await once(fake.#server, "listening");
    fake.#port = (fake.#server.address() as AddressInfo).port;
    return fake;
  }

  /** Ends everything. Throws when the fake itself had an error. */
  async close(): Promise<void> {
    this.gateway.close();
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    if (this.#errors.length > 0) throw new AggregateError(this.#errors, "the fake had errors");
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** What goes into `rest.api` of discord.js, with version 10. */
  get apiRoot(): string {
    return `${this.origin}/api`;
  }

  /** A token of the right shape. Throws after it was reset. */
  get token(): string {
    if (this.#token === null) throw new Error("the token was reset");
    return this.#token;
  }

  /** The bot's token is good no more: REST says 401, every connection ends with 4004. */
  resetToken(): void {
    this.#token = null;
    this.gateway.kick(4004);
  }

  /** How people mention the bot. */
  get mention(): string {
    return `<@${this.world.bot.id}>`;
  }

  person(name: string): Person {
    return this.#personOf(name, false);
  }

  otherBot(name: string): Person {
    return this.#personOf(name, true);
  }

  #personOf(name: string, isBot: boolean): Person {
    const known = this.#persons.get(name);
    if (known !== undefined) return known;
    const person = new Person(this.world.user(name, isBot), { world: this.world, origin: () => this.origin });
    this.#persons.set(name, person);
    return person;
  }

  guild(name = "home"): Guild {
    return this.world.guild(name);
  }

  text(guild: Guild, name = "general"): Channel {
    return this.world.channel(ChannelKind.text, { name, guild });
  }

  forum(guild: Guild, name = "help"): Channel {
    return this.world.channel(ChannelKind.forum, { name, guild });
  }

  /** A webhook says something. */
  webhookSays(channel: Channel, name: string, content: string): Message {
    const id = this.world.ids.next();
    return this.world.post(channel, { id, username: name, isBot: true, refusesDms: true }, { content, webhookId: id });
  }

  /** Discord itself says something: somebody has joined, a thread was started. */
  systemMessage(channel: Channel, author: Person, type: number): Message {
    return this.world.post(channel, author.user, { type });
  }

  /** An update that says only so much, as Discord sends for link previews. */
  partialUpdate(message: Message, fields: Record<string, unknown>): void {
    const { id, channel } = message;
    const where = channel.guild === null ? { channel_type: channel.kind } : { guild_id: channel.guild.id };
    const intents = channel.guild === null ? 1 << 12 : 1 << 9;
    this.world.tell({ t: "MESSAGE_UPDATE", d: { id, channel_id: channel.id, ...where, ...fields }, intents });
  }

  /** What people see in this channel, oldest first; what only one of them sees left out. */
  visible(channel: Channel): SeenMessage[] {
    return [...channel.messages.values()].filter(({ flags }) => (flags & MessageFlag.ephemeral) === 0).map(seen);
  }

  /** What the bot has said there, oldest first. */
  answers(channel: Channel): string[] {
    return [...channel.messages.values()]
      .filter(
        ({ author, flags }) =>
          author === this.world.bot && (flags & (MessageFlag.loading | MessageFlag.ephemeral)) === 0,
      )
      .map(({ content }) => content);
  }

  /** What the user of an interaction sees as its answer; null while there is none. */
  answerTo({ original, state }: Interaction): string | null {
    return original === null || state === "deferred" || state === "pending" ? null : original.content;
  }

  /** Waits until `probe` gives something; fails after `withinMs`. It looks after each call and each change of the gateway. */
  until<T>(probe: () => T | undefined | null | false, withinMs = 20_000): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const value = probe();
        if (value === undefined || value === null || value === false) return;
        end();
        resolve(value);
      };
      const stops = [this.journal.watch(look), this.gateway.watch(look)];
      const timer = setTimeout(() => {
        end();
        reject(new Error(`it did not happen within ${withinMs} ms; last calls:\n${this.#tail()}`));
      }, withinMs);
      const again = setInterval(look, 25);
      const end = () => {
        clearTimeout(timer);
        clearInterval(again);
        for (const stop of stops) stop();
      };
      look();
    });
  }

  #tail(): string {
    const { counts, identifies } = this.gateway;
    const calls = this.journal.entries
      .slice(-15)
      .map(({ call, major, status, code }) => `${call} ${major} → ${status} ${code ?? ""}`);
    return [...calls, JSON.stringify({ ...counts, identifies: identifies.length })].join("\n");
  }
}

function seen(message: Message): SeenMessage {
  const { id, author, content, editedMs, flags, attachments, components, reference, pings, reactions } = message;
  const buttons = components.flatMap(
    (row) => (row as { components: Array<{ label?: string; custom_id?: string }> }).components,
  );
  return {
    id,
    author: author.username,
    content,
    isEdited: editedMs !== null,
    isLoading: (flags & MessageFlag.loading) !== 0,
    files: attachments.map(({ filename }) => filename),
    buttons: buttons.map(({ label = "", custom_id = "" }) => ({ label, id: custom_id })),
    replyTo: reference?.type === 0 ? reference.message.id : null,
    pings,
    reactions: [...reactions.keys()],
  };
}

function newToken(botId: string): string {
  const first = Buffer.from(botId).toString("base64url");
  return `${first}.${randomBytes(4).toString("base64url")}.${randomBytes(28).toString("base64url")}`;
}

/**
 * The connection to Discord's gateway through discord.js, which resumes by itself. Nothing of what comes in is read here.
 * Invariants: no identify without a place in the budget; a link that was closed never connects again; the library's own
 * objects are not used, so that no cache grows and no strange event can throw inside it.
 */
import type { Client, WebSocketOptions } from "discord.js";
import { NanogateError } from "../../errors.js";
import type { Logger } from "../../logger.js";
import type { Clock } from "../clock.js";
import { checkLimits, type IdentifyDeps, reasonOf, safe, waitForPlace } from "./identify.js";
import { type Library, restOptions } from "./rest.js";
import { fieldsOf } from "./wire.js";

/** The library's name for its manager of shards. */
type Manager = Parameters<NonNullable<WebSocketOptions["buildStrategy"]>>[0];

export interface LinkDeps extends IdentifyDeps {
  library: Library;
  apiRoot: string;
  token: string;
  /** A new session: what came since the last one has to be asked for. Called before any event of it. */
  onIdentified: (ready: unknown) => void;
  onEvent: (t: string, d: unknown) => void;
}

export interface Link {
  close(): Promise<void>;
}

/** Longest time for the closing of a connection. */
const HANG_UP_MS = 2000;
/** How often a connection that is being made is asked how it is. */
const LOOK_MS = 500;

/** Connects; returns when the session is ready. Throws `DISCORD_…` errors, without a secret in them. */
export async function openLink(deps: LinkDeps): Promise<Link> {
  const { vitals, clock } = deps;
  await checkLimits(deps);
  const line: Line = { ended: new AbortController(), manager: null, isGreeted: false };
  const client = clientOf(deps, line);
  const close = async () => {
    line.ended.abort();
    if (line.isGreeted) await hangUp(line, clock);
    await client.destroy();
  };
  const connected = new AbortController();
  try {
    await Promise.race([client.login(deps.token), untilHopeless(deps, connected.signal)]);
  } catch (error) {
    await close();
    throw vitals.failure() ?? reasonOf(error);
  } finally {
    connected.abort();
  }
  return { close };
}

/** The library tries for ever, and its promise tells nothing meanwhile. Throws when the channel is stopped, or has failed. */
async function untilHopeless({ vitals, clock, signal }: LinkDeps, connected: AbortSignal): Promise<void> {
  const over = AbortSignal.any([signal, connected]);
  while (!over.aborted && vitals.failure() === null) await clock.sleep(LOOK_MS, over);
  if (connected.aborted) return;
  throw vitals.failure() ?? new NanogateError("DISCORD_UNREACHABLE", "The channel was stopped while it connected.");
}

/** The connection of a link. */
interface Line {
  ended: AbortController;
  manager: Manager | null;
  /** Whether there is a connection that Discord has greeted. Only such a one can be closed without harm. */
  isGreeted: boolean;
}

/** The library's promise may never settle when it was waiting for something itself. */
async function hangUp({ manager }: Line, clock: Clock): Promise<void> {
  const done = new AbortController();
  const limit = clock.sleep(HANG_UP_MS, done.signal);
  await Promise.race([manager?.destroy({ reason: "the channel stops" }), limit]);
  done.abort();
}

function clientOf(deps: LinkDeps, line: Line): Client {
  const { library, apiRoot } = deps;
  const { Guilds, GuildMessages, DirectMessages, MessageContent } = library.GatewayIntentBits;
  const client = new library.Client({
    intents: [Guilds, GuildMessages, DirectMessages, MessageContent],
    rest: restOptions(apiRoot),
    shards: [0],
    shardCount: 1,
    ws: {
      buildStrategy: (manager) => {
        line.manager = manager;
        watch(deps, manager, line);
        endWith(line.ended.signal, manager);
        return new library.SimpleShardingStrategy(manager);
      },
      buildIdentifyThrottler: () => ({
        waitForIdentify: (_shard, signal) => waitForPlace(deps, signal, line.ended.signal),
      }),
    },
  });
  Object.defineProperty(client.ws, "handlePacket", { value: () => true });
  // It closes connections that are not open yet, whose errors then end the process; `close` does it in order.
  Object.defineProperty(client.ws, "destroy", { value: async () => {} });
  return client;
}

/** After the end, the library's next try to connect waits for ever: it asks for its session first. */
function endWith(ended: AbortSignal, { options }: Manager): void {
  const { retrieveSessionInfo } = options;
  options.retrieveSessionInfo = (shard) => (ended.aborted ? new Promise(() => {}) : retrieveSessionInfo(shard));
}

/** Events of the library's manager, by the names it gives them. */
function watch({ vitals, logger, onIdentified, onEvent }: LinkDeps, manager: Manager, line: Line): void {
  const on = (name: string, listener: (payload: Payload) => void) =>
    manager.on(name, (payload: Payload) => {
      if (line.ended.signal.aborted) return;
      try {
        listener(payload);
      } catch (error) {
        // Thrown further it would end the process.
        logger.error({ err: error, event: name }, "an event of the connection could not be read");
      }
    });
  watchLine(manager, line, logger);
  on("hello", () => vitals.shaking());
  on("heartbeat", () => vitals.beat());
  on("resumed", () => vitals.up());
  on("ready", ({ data }) => {
    vitals.up();
    onIdentified(data);
  });
  on("dispatch", ({ data }) => {
    vitals.heard();
    const { t, d } = fieldsOf(data);
    if (typeof t === "string") onEvent(t, d);
  });
  on("closed", ({ code }) => {
    logger.info({ code }, "the connection to Discord was closed");
    vitals.closed(Number(code));
  });
  manager.on("error", ({ error }: Payload) =>
    logger.warn({ err: safe(error) }, "the connection to Discord had an error"),
  );
}

/** Whether the line is open; one that opens after the end is closed at once. */
function watchLine(manager: Manager, line: Line, logger: Logger): void {
  manager.on("closed", () => {
    line.isGreeted = false;
  });
  manager.on("hello", () => {
    line.isGreeted = true;
    if (!line.ended.signal.aborted) return;
    Promise.resolve(manager.destroy({ reason: "the channel stops" })).catch((error: unknown) =>
      logger.warn({ err: safe(error) }, "a connection could not be closed"),
    );
  });
}

/** What the manager's events carry, as far as it is used. */
interface Payload {
  data?: unknown;
  code?: unknown;
  error?: unknown;
}

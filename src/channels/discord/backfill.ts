/**
 * After a new session: fetches what was missed in the channels that the bot has read before, and in those that are new. It
 * reads no message; they go the way of all others, which knows the ones it has seen. Invariant: a channel's new events wait
 * until what it missed stands before them, and go on even when it cannot be fetched.
 */
import type { Logger } from "../../logger.js";
import type { Clock } from "../clock.js";
import type { Intake } from "./intake.js";
import type { Marks } from "./marks.js";
import type { Places } from "./places.js";
import { type Rest, RestError } from "./rest.js";
import { fieldsOf, isLater, isSnowflake } from "./wire.js";

export interface BackfillDeps {
  rest: Rest;
  places: Places;
  marks: Marks;
  intake: Pick<Intake, "addEarlier" | "release" | "releaseAll">;
  /** At most so many messages of a channel; 0: none. */
  most: number;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
}

/** What to fetch: all after this message. */
interface Gap {
  channelId: string;
  after: string;
}

/** Direct chats cannot be listed, so each that is known is asked; the ones that were used last, at most so many. */
const MOST_DIRECT = 500;
const AT_ONCE = 4;
const TRIES = 5;

/** Returns when every channel goes on. Never throws. */
export async function backfill(deps: BackfillDeps): Promise<void> {
  try {
    const gaps = deps.most === 0 ? [] : await gapsOf(deps);
    const next = gaps.values();
    await Promise.all(Array.from({ length: AT_ONCE }, () => worker(deps, next)));
  } catch (error) {
    deps.logger.error({ err: error }, "what was missed could not be fetched");
  } finally {
    deps.intake.releaseAll();
  }
}

/** Channels with something after what was read last. Channels that are seen for the first time begin here. */
async function gapsOf({ places, marks, signal }: BackfillDeps): Promise<Gap[]> {
  const seen = marks.seen();
  const latest = [...seen.values()].reduce((a, b) => (isLater(b, a) ? b : a), "0");
  const gaps: Gap[] = [];
  for (const [channelId, newest] of places.newest()) {
    if (signal.aborted) return [];
    const after = seen.get(channelId);
    if (after !== undefined) {
      if (isLater(newest, after)) gaps.push({ channelId, after });
    } else if (latest !== "0" && isLater(channelId, latest)) {
      // A thread that was begun meanwhile; the first post of a forum has the thread's own id.
      gaps.push({ channelId, after: String(BigInt(channelId) - 1n) });
    } else await marks.read(channelId, newest, { isKept: false });
  }
  return [...gaps, ...directGaps(marks)];
}

function directGaps(marks: Marks): Gap[] {
  const directs = marks.directs();
  return [...marks.seen()]
    .filter(([channelId]) => directs.has(channelId))
    .sort(([, a], [, b]) => (isLater(b, a) ? 1 : -1))
    .slice(0, MOST_DIRECT)
    .map(([channelId, after]) => ({ channelId, after }));
}

async function worker(deps: BackfillDeps, gaps: IterableIterator<Gap>): Promise<void> {
  for (const gap of gaps) {
    if (deps.signal.aborted) return;
    await fill(deps, gap);
    deps.intake.release(gap.channelId);
  }
}

async function fill(deps: BackfillDeps, { channelId, after }: Gap): Promise<void> {
  const { logger, intake, most, places } = deps;
  try {
    const messages = await fetchMissed(deps, { channelId, after });
    for (const d of messages)
      intake.addEarlier({ t: "MESSAGE_CREATE", channelId, d: located(d, channelId, places) }, null);
    if (messages.length > 0)
      logger.info({ chatId: channelId, messages: messages.length }, "missed messages were fetched");
    if (messages.length >= most) logger.warn({ chatId: channelId, most }, "more may have been missed than is fetched");
  } catch (error) {
    logger.warn({ err: error, chatId: channelId }, "what a channel missed could not be fetched");
  }
}

/** Oldest first. Throws `RestError`. */
async function fetchMissed({ rest, most, clock, signal }: BackfillDeps, { channelId, after }: Gap): Promise<unknown[]> {
  const query = { after, limit: String(most) };
  for (let tries = 1; ; tries += 1) {
    try {
      const answer = await rest.call({ method: "GET", path: `channels/${channelId}/messages`, query, signal });
      return (Array.isArray(answer) ? answer : []).filter((d) => isSnowflake(idOf(d))).sort(byId);
    } catch (error) {
      if (!(error instanceof RestError) || error.failure.kind === "refused" || tries >= TRIES) throw error;
      await clock.sleep(error.failure.kind === "limited" ? error.failure.waitMs : 500 * tries, signal);
      if (signal.aborted) throw error;
    }
  }
}

const idOf = (d: unknown): string => String(fieldsOf(d).id);
const byId = (a: unknown, b: unknown): number => (isLater(idOf(a), idOf(b)) ? 1 : -1);

/** REST does not say of which guild a message is. */
function located(d: unknown, channelId: string, places: Places): unknown {
  const place = places.known(channelId);
  const guild = place === undefined || place.kind === "direct" ? {} : { guild_id: place.guildId };
  return { ...fieldsOf(d), channel_id: channelId, ...guild };
}

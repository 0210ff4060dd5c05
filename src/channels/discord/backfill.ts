/**
 * After a new session, or when a server comes back: fetches what was missed in the channels that the bot has read before, and
 * in threads that are new. It reads no message; they go the way of all others, which knows the ones it has seen. Invariant: a
 * channel's new events wait until what it missed stands before them, and go on even when it cannot be fetched.
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
  intake: Pick<Intake, "addEarlier" | "hold" | "release" | "releaseAll">;
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

/** Everywhere, after a new session. Returns when every channel goes on. Never throws. */
export async function backfill(deps: BackfillDeps): Promise<void> {
  await fillAll(deps, () => [...gapsOf(deps, () => true), ...directGaps(deps.marks)]);
  deps.intake.releaseAll();
}

/** In a server that is told late, or again after it was away. Returns when its channels go on. Never throws. */
export async function backfillGuild(deps: BackfillDeps, guildId: string): Promise<void> {
  await fillAll(deps, () => gapsOf(deps, (guild) => guild === guildId));
}

async function fillAll(deps: BackfillDeps, find: () => Gap[]): Promise<void> {
  try {
    const gaps = deps.most === 0 ? [] : find();
    for (const { channelId } of gaps) deps.intake.hold(channelId);
    const next = gaps.values();
    await Promise.all(Array.from({ length: AT_ONCE }, () => worker(deps, next)));
  } catch (error) {
    deps.logger.error({ err: error }, "what was missed could not be fetched");
  }
}

/** Channels with something after what was read last. Those that are seen for the first time begin here. */
function gapsOf({ places, marks }: BackfillDeps, isMeant: (guildId: string | null) => boolean): Gap[] {
  const seen = marks.seen();
  const guilds = new Set([...seen.keys()].map((channelId) => guildOf(places, channelId)));
  const latest = [...seen.values()].reduce((a, b) => (isLater(b, a) ? b : a), "0");
  const gaps: Gap[] = [];
  for (const [channelId, newest] of places.newest()) {
    const guild = guildOf(places, channelId);
    if (!isMeant(guild)) continue;
    const after = seen.get(channelId);
    if (after !== undefined) {
      if (isLater(newest, after)) gaps.push({ channelId, after });
    } else if (guilds.has(guild) && isLater(channelId, latest)) {
      // A thread that was begun meanwhile; the first post of a forum has the thread's own id. What a server that the bot
      // has just joined said before is not for it.
      gaps.push({ channelId, after: String(BigInt(channelId) - 1n) });
    } else marks.note(channelId, newest);
  }
  return gaps;
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
    if (!deps.signal.aborted) await fill(deps, gap);
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
    if (messages.length >= most)
      logger.warn(
        { chatId: channelId, most },
        "more may have been missed than is fetched; the oldest of it is left out",
      );
  } catch (error) {
    logger.warn({ err: error, chatId: channelId }, "what a channel missed could not be fetched");
  }
}

/**
 * Oldest first. When it is more than may be fetched, the newest of it: what was asked last is what somebody still waits for,
 * and what follows is said after it. Throws `RestError`.
 */
async function fetchMissed(deps: BackfillDeps, { channelId, after }: Gap): Promise<unknown[]> {
  const limit = String(deps.most);
  const missed = await fetchPage(deps, channelId, { after, limit });
  if (missed.length < deps.most) return missed;
  const newest = await fetchPage(deps, channelId, { limit });
  return newest.filter((d) => isLater(idOf(d), after));
}

/** Throws `RestError`. */
async function fetchPage(
  { rest, clock, signal }: BackfillDeps,
  channelId: string,
  query: Readonly<Record<string, string>>,
): Promise<unknown[]> {
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

function guildOf(places: Places, channelId: string): string | null {
  const place = places.known(channelId);
  return place === undefined || place.kind === "direct" ? null : place.guildId;
}

/** REST does not say of which guild a message is. */
function located(d: unknown, channelId: string, places: Places): unknown {
  const guild = guildOf(places, channelId);
  return { ...fieldsOf(d), channel_id: channelId, ...(guild === null ? {} : { guild_id: guild }) };
}

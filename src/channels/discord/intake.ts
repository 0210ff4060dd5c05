/**
 * What comes in, one channel after its own order: an event is worked on until it is stored. While the bus takes nothing, the
 * events of that channel go to the spool. It reads no event. Invariants: nothing overtakes within a channel; what is spooled
 * comes before what was missed, and that before what is new; a channel that waits holds up no other.
 */
import { hasCode } from "../../errors.js";
import type { Logger } from "../../logger.js";
import type { Clock } from "../clock.js";
import { RestError } from "./rest.js";
import type { Spool, SpooledEvent } from "./spool.js";

/** A piece of work of one channel. Throws `BUS_OVERLOADED` or `BUS_UNAVAILABLE` to be called again. */
export type Work = () => Promise<void>;

interface Item {
  work: Work;
  /** What is spooled for it; null for work that ends with its process. */
  event: SpooledEvent | null;
  /** Its place in the spool, once it is on the disk; null when it has none. */
  spooled: Promise<number | null> | null;
}

interface Lane {
  /** Of an earlier life, and what was missed meanwhile. */
  earlier: Item[];
  live: Item[];
  isHeld: boolean;
  isBlocked: boolean;
  isRunning: boolean;
}

export interface IntakeDeps {
  spool: Spool;
  /** The work of an event. */
  workOf: (event: SpooledEvent) => Work;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
}

/** Waits between tries while the bus takes nothing, ms. */
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 2000;

export class Intake {
  readonly #deps: IntakeDeps;
  readonly #lanes = new Map<string, Lane>();
  /** Whether lanes begin held: until it is known what was missed. */
  #isHolding = false;
  readonly #running = new Set<Promise<void>>();

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
  }

  /** Something new of a channel. */
  async add(event: SpooledEvent): Promise<void> {
    const lane = this.#lane(event.channelId);
    const item: Item = { work: this.#deps.workOf(event), event, spooled: null };
    lane.live.push(item);
    if (lane.isBlocked && (await this.#spool(item)) === null) lane.live = lane.live.filter((each) => each !== item);
    this.#start(event.channelId, lane);
  }

  /** Something that is not an event, in its turn. */
  addWork(channelId: string, work: Work): void {
    const lane = this.#lane(channelId);
    lane.live.push({ work, event: null, spooled: null });
    this.#start(channelId, lane);
  }

  /** Before everything that is new: what the spool held (with its place), or what was missed. */
  addEarlier(event: SpooledEvent, spooled: number | null): void {
    const lane = this.#lane(event.channelId);
    lane.earlier.push({
      work: this.#deps.workOf(event),
      event,
      spooled: spooled === null ? null : Promise.resolve(spooled),
    });
    this.#start(event.channelId, lane);
  }

  /** From now on what is new waits, in every channel, until its channel is released. */
  holdAll(): void {
    this.#isHolding = true;
    for (const lane of this.#lanes.values()) lane.isHeld = true;
  }

  /** From now on what is new in this channel waits until it is released. */
  hold(channelId: string): void {
    this.#lane(channelId).isHeld = true;
  }

  release(channelId: string): void {
    const lane = this.#lane(channelId);
    lane.isHeld = false;
    this.#start(channelId, lane);
  }

  releaseAll(): void {
    this.#isHolding = false;
    for (const channelId of [...this.#lanes.keys()]) this.release(channelId);
  }

  /** After the signal: waits for what runs, and spools what is left. */
  async end(): Promise<void> {
    await Promise.all(this.#running);
    for (const { earlier, live } of this.#lanes.values())
      for (const item of [...earlier, ...live]) await this.#spool(item);
    this.#lanes.clear();
  }

  #lane(channelId: string): Lane {
    const known = this.#lanes.get(channelId);
    if (known !== undefined) return known;
    const lane = { earlier: [], live: [], isHeld: this.#isHolding, isBlocked: false, isRunning: false };
    this.#lanes.set(channelId, lane);
    return lane;
  }

  #start(channelId: string, lane: Lane): void {
    if (lane.isRunning || this.#deps.signal.aborted) return;
    lane.isRunning = true;
    const run = this.#run(channelId, lane).finally(() => {
      lane.isRunning = false;
      this.#running.delete(run);
      // Something may have come while it was ending.
      if (nextOf(lane) !== undefined) this.#start(channelId, lane);
      else if (lane.live.length === 0 && !lane.isHeld) this.#lanes.delete(channelId);
    });
    this.#running.add(run);
  }

  async #run(channelId: string, lane: Lane): Promise<void> {
    for (let tries = 0; !this.#deps.signal.aborted; ) {
      const item = nextOf(lane);
      if (item === undefined) return;
      if (!(await this.#isDone(item, channelId))) {
        await this.#block(lane);
        await this.#deps.clock.sleep(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tries), this.#deps.signal);
        tries += 1;
        continue;
      }
      tries = 0;
      lane.isBlocked = false;
      if (lane.earlier[0] === item) lane.earlier.shift();
      else if (lane.live[0] === item) lane.live.shift();
      if (item.spooled !== null) await this.#unspool(item.spooled, channelId);
    }
  }

  /** False when it has to be tried again. What cannot be read will not be readable later: it is left out. */
  async #isDone({ work }: Item, channelId: string): Promise<boolean> {
    const { logger } = this.#deps;
    try {
      await work();
      return true;
    } catch (error) {
      if (isPassing(error)) {
        logger.warn(
          { err: error, chatId: channelId },
          "an event could not be stored; it waits in the spool and is tried again",
        );
        return false;
      }
      logger.error({ err: error, chatId: channelId }, "an event could not be read and is left out");
      return true;
    }
  }

  async #block(lane: Lane): Promise<void> {
    if (lane.isBlocked) return;
    lane.isBlocked = true;
    await Promise.all([...lane.earlier, ...lane.live].map((item) => this.#spool(item)));
  }

  /** Null when it is not kept. */
  #spool(item: Item): Promise<number | null> {
    const { event } = item;
    if (event === null) return Promise.resolve(null);
    item.spooled ??= this.#keep(event);
    return item.spooled;
  }

  async #keep(event: SpooledEvent): Promise<number | null> {
    const { spool, logger } = this.#deps;
    try {
      const n = await spool.add(event);
      if (n === null) logger.error({ chatId: event.channelId }, "the spool is full; an event is lost");
      return n;
    } catch (error) {
      logger.error({ err: error, chatId: event.channelId }, "an event could not be spooled");
      return null;
    }
  }

  async #unspool(spooled: Promise<number | null>, channelId: string): Promise<void> {
    try {
      const n = await spooled;
      if (n !== null) await this.#deps.spool.done(n);
    } catch (error) {
      this.#deps.logger.warn(
        { err: error, chatId: channelId },
        "the spool could not be written; an event may be told twice",
      );
    }
  }
}

/** What of a lane may be worked on now. */
function nextOf({ earlier, live, isHeld }: Lane): Item | undefined {
  return earlier[0] ?? (isHeld ? undefined : live[0]);
}

/** Whether the same work may go right later. */
function isPassing(error: unknown): boolean {
  if (error instanceof RestError) return error.failure.kind !== "refused";
  return hasCode(error, "BUS_OVERLOADED") || hasCode(error, "BUS_UNAVAILABLE");
}

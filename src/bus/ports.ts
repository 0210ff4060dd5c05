/**
 * What the bus needs from outside: atomic steps over mailboxes, a ready-queue, logs of what goes out, and lossy signals.
 * Implemented by `redis/` (one file a port), handed in by `gateway.ts`. Types only.
 *
 * Every method may throw `BUS_UNAVAILABLE` (nothing is known to have happened; repeating it is harmless);
 * methods that take a fence throw `LEASE_LOST` when it is stale, and then nothing has happened.
 */
import type {
  InboundMessage,
  MailboxMessage,
  OutboundMessage,
  Outgoing,
  Route,
  SessionKey,
  TurnResult,
} from "./messages.js";

/** A session that is ready under a wake number; late, stale or doubled ones are no-ops. */
export interface Wake {
  key: SessionKey;
  wake: number;
  /** Not before this many ms from now. */
  delayMs: number;
}

export interface PublishEntry {
  key: SessionKey;
  inboundKey: string;
  message: InboundMessage;
  /** Waits this long for a next fragment, sliding, five times as long at most; 0 for commands and media. */
  debounceMs: number;
  /** Whether it may be taken into a running turn of its route; false for commands. */
  joins: boolean;
  /** Whether a parked session takes new messages in at once (its queue mode). */
  wakesParked: boolean;
}

/**
 * `replaced`: it was the edit of a message that waits; `ignored`: that of one which is answered. `wake` is set whenever the
 * session is scheduled, also for a duplicate: its first publisher may have died.
 */
export interface Published {
  status: "stored" | "replaced" | "duplicate" | "ignored";
  wake: Wake | null;
}

export interface StopRequest {
  key: SessionKey;
  /** The `/stop` message's own inbound key; null from a program that repeats by itself. */
  inboundKey: string | null;
  /** `routeKeyOf` of the route to stop, or `*` for every route of the session. */
  route: string;
}

/** What anyone may do to a session, holder or not. */
export interface Intake {
  /** Appends to the mailbox, once. Throws `BUS_OVERLOADED` over a bound, and then nothing is stored. */
  publish(entry: PublishEntry): Promise<Published>;
  /** Marks what waits and runs as stopped, takes the waiting out, says how many; repeated: the same number. */
  stop(request: StopRequest): Promise<{ stopped: number; wakes: Wake[] }>;
  /** Sends without a lease, once: answers to commands that go round the queue. */
  reply(outgoing: readonly Outgoing[]): Promise<{ wakes: Wake[] }>;
  /** Stores the answer a parked call waits for (48 h, whatever the state) and wakes the session if it is parked. */
  unpark(key: SessionKey, waitId: string, payload: string): Promise<{ wakes: Wake[] }>;
  /** The present wake of a scheduled session; null when it is not scheduled. */
  peek(key: SessionKey): Promise<Wake | null>;
}

export interface FileStamp {
  inode: string;
  bytes: number;
  fence: number;
}

export interface Settlement {
  key: SessionKey;
  fence: number;
  /** What is answered, with its result; leaves the mailbox by inbound key. */
  settled: ReadonlyArray<{ inboundKey: string; result: TurnResult }>;
  outgoing: readonly Outgoing[];
  file: FileStamp | null;
  /** `next`: go on with the next message or become idle. `stay`: keep holding, whatever waits. */
  afterwards: "next" | "stay";
  /** False: refuse with `stopped` when a stop covers what is settled. True: this settlement is that stop. */
  honoursStop: boolean;
}

export type Settled =
  | { kind: "idle" | "stay"; wakes: Wake[] }
  /** The next message waits and is the holder's now. */
  | { kind: "next"; message: MailboxMessage; fragments: readonly MailboxMessage[]; isStopped: boolean; wakes: Wake[] }
  | { kind: "stopped" };

export interface Emission {
  key: SessionKey;
  fence: number;
  /** Grows by one with each emission under a fence; one that was seen is not repeated. */
  batch: number;
  outgoing: readonly Outgoing[];
  /** The stream that is open after this emission. */
  openStream: { streamId: string; turnId: string; route: Route } | null;
}

export interface Check {
  key: SessionKey;
  fence: number;
  /** Inbound keys of the turn's messages. */
  inboundKeys: readonly string[];
  /** `routeKeyOf` of the turn. */
  route: string;
  /** How many newer messages of that route to take in at most. */
  take: number;
}

export interface Yielding {
  key: SessionKey;
  fence: number;
  /** `fail` counts a try of the oldest message (the last one gives it up); `fair` and `drain` do not. */
  why: "fair" | "drain" | "fail";
  delayMs: number;
  file: FileStamp | null;
  /** Why it failed: for the dead letter, never for the user. */
  reason: string;
}

export interface Parking {
  key: SessionKey;
  fence: number;
  waitIds: readonly string[];
  /** Epoch, ms. */
  untilMs: number;
  file: FileStamp | null;
  inboundKeys: readonly string[];
  /** Whether new mail wakes the session before the answer (its queue mode). */
  takesMail: boolean;
}

/** What only the holder may do. */
export interface Holding {
  /** Before every step: which of the turn's messages a stop covers, and what is taken in. */
  check(check: Check): Promise<{ stopped: string[]; taken: MailboxMessage[] }>;
  settle(settlement: Settlement): Promise<Settled>;
  emit(emission: Emission): Promise<{ wakes: Wake[] }>;
  yield(yielding: Yielding): Promise<{ wakes: Wake[]; gaveUp: boolean }>;
  /** Gives the session up until a call is answered or the time has come; `ready`: go on at once. */
  park(parking: Parking): Promise<{ kind: "parked"; wakes: Wake[] } | { kind: "ready" }>;
  /** Answers stored for parked calls: wait id → payload. */
  answers(key: SessionKey, waitIds: readonly string[]): Promise<Map<string, string>>;
}

/** What every process does from time to time, so that nothing stays behind a dead one. */
export interface Upkeep {
  /** Takes ended leases, those of dead processes of this host, and parked sessions whose time came. */
  reap(): Promise<Wake[]>;
  /** Sessions scheduled for longer than they should be; those whose job is gone get a new wake number. */
  sweep(jobWaits: (wake: Wake) => Promise<boolean>): Promise<Wake[]>;
  /** Depths over all processes. */
  depths(): Promise<Depths>;
}

export interface Depths {
  scheduled: number;
  running: number;
  parked: number;
  waitingForSlot: number;
  /** Live workers over all processes. */
  workers: number;
  /** Age of the session that has been scheduled for longest, ms; null when none is. */
  oldestScheduledMs: number | null;
}

/** Consumer of the ready-queue. */
export interface Consumer {
  /** Fetches nothing more and waits for what is running. */
  close(): Promise<void>;
  /** False when it stopped by itself: a health check asks. */
  isRunning(): boolean;
  /** Fetches only while less than this runs, at least 1; what runs goes on. */
  limit(concurrency: number): void;
  /** Whether nothing waited when it last looked, and nothing was fetched since. */
  isDrained(): boolean;
}

/** Sessions that are ready. Nothing rests on it: what it loses, the sweep finds. */
export interface ReadyQueue {
  add(wake: Wake): Promise<void>;
  /** Whether a job for this wake still waits (or is delayed); false when it is active, failed or gone. */
  waits(wake: Wake): Promise<boolean>;
  consume(concurrency: number, work: (key: SessionKey, wake: number) => Promise<void>): Promise<Consumer>;
}

/** Results of inbound messages, for direct callers. */
export interface Results {
  get(inboundKey: string): Promise<TurnResult | null>;
  /** Calls back once when the result stands, also when it already does. Returns how to stop waiting. */
  watch(inboundKey: string, onResult: (result: TurnResult) => void): Promise<() => Promise<void>>;
}

/** Signals that may be lost: deltas and typing for accounts that edit, hints for whoever runs a session. */
export interface LiveSignals {
  /** A session was stopped; whoever runs it should look. */
  onHint(listener: (key: SessionKey) => void): Promise<() => Promise<void>>;
  /** Lossy events on their way to an account (`outbox` routes) or a direct caller (`result` routes, by reply key). */
  onLive(address: string, listener: (message: OutboundMessage) => void): Promise<() => Promise<void>>;
}
